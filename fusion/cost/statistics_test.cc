// Counts of small programs against numbers that were counted by hand.
#include "fusion/cost/statistics.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text_testing.h"

namespace nestor::loop {
namespace {

Program Around(absl::string_view items) {
  return Parsed(absl::StrCat("program p(x: f32[N, C], ids: i64[N]; $k: i64 = 2) -> (y: f32[N]) {\n",
                             items, "\n}\n"));
}

// "blocks loops statements flops".
TEST(Statistics, CountsOfText) {
  const struct {
    const char* program;
    Sizes sizes;
    const char* counts;
  } kCases[] = {
      {"for i in [0, N) { y[i] = 1.0 }", {{"N", 6}, {"C", 5}}, "1 1 1 0"},
      {"y[0] = 1.0 for i in [0, N) { y[i] = x[i, 0] }", {{"N", 6}, {"C", 5}}, "1 1 2 0"},
      {"for i in [0, N) { acc s: f32 = sum  for j in [0, C) { s += x[i, j] * 2.0 }  y[i] = s / f32(index(C)) }",
       {{"N", 6}, {"C", 5}},
       "1 2 2 66"},
      // Unary, composed, transcendental: one each. fma: two. The rest: none.
      {"for i in [0, N) { y[i] = neg(x[i, 0]) + rsqrt(exp(x[i, 1])) }",
       {{"N", 6}, {"C", 5}},
       "1 1 1 24"},
      {"for i in [0, N) { y[i] = fma(x[i, 0], x[i, 1], x[i, 2]) }",
       {{"N", 6}, {"C", 5}},
       "1 1 1 12"},
      {"for i in [0, N) { y[i] = where(x[i, 0] < 0.0, x[i, 1], f32(ids[i] * 2)) }",
       {{"N", 6}, {"C", 5}},
       "1 1 1 0"},
      {"for i in [0, N) { y[i] = x[i, 0 | 0.0] * f32(index(i * $k)) }",
       {{"N", 6}, {"C", 5}},
       "1 1 1 6"},
      {"for i in [0, N) { acc b: f32 = argmax  for c in [0, C) { b argmax= (x[i, c], index(c)) }  y[i] = x[i, b[]] }",
       {{"N", 6}, {"C", 5}},
       "1 2 2 30"},
      // Loops over loops' indices.
      {"for i in [0, N) { for j in [0, i) { y[i] += 1.0 } }", {{"N", 6}, {"C", 5}}, "1 2 1 15"},
      {"for i in [0, N) step 4 { for j in [i, min(N, i + 4)) { y[j] = x[j, 0] + 1.0 } }",
       {{"N", 6}, {"C", 5}},
       "1 2 1 6"},
      {"for i in [0, N) { for j in [0, i) { y[i] += 1.0 } }",
       {{"N", 100000}, {"C", 5}},
       "1 2 1 4.99995e+09"},
      {"for i in [0, N) { for j in [0, i) { for k in [j, i) { y[i] += 1.0 } } }",
       {{"N", 10}, {"C", 5}},
       "1 3 1 165"},
      {"for i in [$k, N) step 2 { y[i] = x[i, 0] + 1.0 }", {{"N", 6}, {"C", 5}}, "1 1 1 2"},
      {"for i in [$k, N) step 2 { y[i] = x[i, 0] + 1.0 }",
       {{"N", 6}, {"C", 5}, {"$k", 5}},
       "1 1 1 1"},
      {"for i in [0, N) { y[i] = x[i, 0] + 1.0 }", {{"N", 0}, {"C", 5}}, "1 1 1 0"},
  };
  for (const auto& c : kCases) {
    const auto statistics = StatisticsOf(Around(c.program), c.sizes);
    ASSERT_TRUE(statistics.ok()) << statistics.status() << c.program;
    EXPECT_EQ(absl::StrCat(statistics->blocks, " ", statistics->loops, " ", statistics->statements,
                           " ", statistics->flops),
              c.counts)
        << c.program;
  }
}

TEST(Statistics, ResultsOfArithmeticAreBytes) {
  const auto bytes = [](const char* text) {
    const auto statistics = StatisticsOf(Around(text), {{"N", 6}, {"C", 5}});
    EXPECT_TRUE(statistics.ok()) << statistics.status();
    return absl::StrCat(statistics->result_bytes, " ", statistics->product_bytes, " ",
                        statistics->quotient_bytes);
  };
  EXPECT_EQ(bytes("for i in [0, N) { y[i] = x[i, 0] }"), "0 0 0");
  EXPECT_EQ(bytes("for i in [0, N) { for j in [0, C) { y[i] += x[i, j] * 2.0 } }"), "240 120 0");
  EXPECT_EQ(bytes("for i in [0, N) { y[i] = fma(x[i, 0], x[i, 1], x[i, 2]) }"), "24 24 0");
  EXPECT_EQ(bytes("for i in [0, N) { y[i] = where(x[i, 0] < 0.0, x[i, 1], x[i, 2] / 3.0) }"),
            "72 24 24");
}

TEST(Statistics, Bytes) {
  const auto statistics = StatisticsOf(
      Parsed(
          "program p(x: f32[N], z: shape f32[C]) -> (y: f16[N]) { temp t: f64[N, C]  temp u: i64[C]  temp r: f32 "
          "for i in [0, N) { for j in [0, C) { t[i, j] = f64(x[i]) } } for j in [0, C) { u[j] = 1 } r = 1.0 "
          "for i in [0, N) { temp v: f32[i]  for j in [0, i) { v[j] = r } "
          "y[i] = f16(t[i, 0]) + f16(u[0]) + f16(v[i - 1 | 0.0]) } }"),
      {{"N", 8}, {"C", 3}});
  ASSERT_TRUE(statistics.ok()) << statistics.status();
  EXPECT_EQ(statistics->input_bytes, 32);
  EXPECT_EQ(statistics->output_bytes, 16);
  EXPECT_EQ(statistics->temp_bytes, 8 * 3 * 8 + 3 * 8 + 4 + 7 * 4);
  EXPECT_EQ(statistics->arena_lower_bound, 8 * 3 * 8 + 3 * 8 + 4);  // all alive in the last block
  EXPECT_EQ(statistics->private_bytes, 7 * 4);
  EXPECT_EQ(statistics->walked.loads, 32);
  EXPECT_EQ(statistics->walked.stores, 16);
}

TEST(Statistics, Errors) {
  const struct {
    const char* program;
    Sizes sizes;
    const char* message;
  } kCases[] = {
      {"for i in [0, N) { y[i] = 1.0 }", {{"N", 6}}, "no value is given for C"},
      {"for i in [0, N) { y[i] = 1.0 }", {{"N", 6}, {"C", -1}}, "dimension C = -1 is negative"},
      {"temp t: f32[N - C]  for i in [0, N) { t[0] = 1.0  y[i] = t[0] }",
       {{"N", 6}, {"C", 7}},
       "tensor t: an extent is negative: -1"},
      {"temp t: f32[N / C]  for i in [0, N) { t[0] = 1.0  y[i] = t[0] }",
       {{"N", 6}, {"C", 0}},
       "tensor t: an extent divides by zero"},
      {"temp t: f32[N, N]  for i in [0, N) { t[0, i] = 1.0  y[i] = t[0, i] }",
       {{"N", int64_t{1} << 31}, {"C", 1}},
       "overflows"},
      {"for i in [0, N) { y[i] = x[i * 1048576, 0] }",
       {{"N", int64_t{1} << 44}, {"C", 1}},
       "overflows"},
      {"for i in [0, N) { y[i] = x[i, 0] }",
       {{"N", int64_t{1} << 31}, {"C", int64_t{1} << 31}},
       "overflows"},
      {"for i in [0, N) { y[i] = x[i, 0] }", {{"N", int64_t{1} << 47}, {"C", 1}}, "iterations"},
      {"for i in [0, N) { y[i] = x[i, 0] }", {{"N", int64_t{1} << 62}, {"C", 1}}, "exceeds 2^48"},
  };
  for (const auto& c : kCases) {
    const auto statistics = StatisticsOf(Around(c.program), c.sizes);
    ASSERT_FALSE(statistics.ok()) << c.program;
    EXPECT_NE(std::string(statistics.status().message()).find(c.message), std::string::npos)
        << statistics.status();
  }
}

}  // namespace
}  // namespace nestor::loop
