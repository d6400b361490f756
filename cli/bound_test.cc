// Bounds on a made-up machine with caches of 1, 16 and 256 KiB, whose rates are simple to
// count with.
#include "cli/bound.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"

namespace nestor::cli {
namespace {

// A result of four bytes takes a nanosecond; each cache, and memory, has half the rate of the
// one before.
const Rates& MadeUp() {
  static const Rates& rates = *new Rates{
      jit::Isa::kAvx2,
      1,
      {2, 0, 1},
      {{"first cache", 1 << 10, 8}, {"second cache", 16 << 10, 4}, {"last cache", 256 << 10, 2}}};
  return rates;
}

// The bound if each billion elements of x take so many seconds.
std::string BoundAt(int64_t n, const std::string& value, double nanoseconds,
                    const Rates& rates = MadeUp()) {
  const loop::Program program =
      loop::ParseProgram(
          absl::StrCat("program p(x: f32[N]) -> (y: f32[N]) {\n  for i in [0, N) { y[i] = ", value,
                       " }\n}\n"))
          .value();
  const loop::Sizes sizes = {{"N", n}};
  const auto touched = BytesTouched(program, sizes);
  EXPECT_EQ(*touched, 8.0 * static_cast<double>(n));
  const auto bound =
      BoundOf(program, sizes, *touched, nanoseconds * 1e-9 * static_cast<double>(n), rates);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return absl::StrFormat("%s %.2f", bound->by, bound->share);
}

TEST(Bound, FollowsFromWhereTheDataLies) {
  EXPECT_EQ(BoundAt(100, "x[i]", 1), "first cache 1.00");
  EXPECT_EQ(BoundAt(1000, "x[i]", 2.5), "second cache 0.80");
  EXPECT_EQ(BoundAt(10000, "x[i]", 5), "last cache 0.80");
  EXPECT_EQ(BoundAt(100000, "x[i]", 10), "memory 0.80");
}

TEST(Bound, OfArithmetic) {
  EXPECT_EQ(BoundAt(100, "x[i] * x[i] * 3.0 * x[i]", 4), "compute 0.75");
  // There are as many pipes for sums as for products.
  EXPECT_EQ(BoundAt(100, "x[i] + x[i] + 3.0 + x[i] + x[i] + x[i]", 4), "compute 0.62");
}

TEST(Bound, NothingThatIsLoadedIsLatency) {
  EXPECT_EQ(BoundAt(100, "x[i]", 10), "latency 0.10");
  EXPECT_EQ(BoundAt(0, "x[i]", 1), "latency 0.00");
}

TEST(Bound, AShareIsAtMostOne) { EXPECT_EQ(BoundAt(100, "x[i] * x[i] * 3.0", 1), "compute 1.00"); }

TEST(Bound, ThreadsShareMemoryAlone) {
  Rates two = MadeUp();
  two.threads = 2;
  EXPECT_EQ(BoundAt(10000, "x[i]", 2.5, two), "last cache 0.80");
  EXPECT_EQ(BoundAt(100000, "x[i]", 10, two), "memory 0.80");
}

// Prefetches add no traffic to that of the loop itself.
TEST(Bound, OfAProgramThatPrefetches) {
  const loop::Program program = loop::ParseProgram(R"(
program p(x: f32[N, C]) -> (y: f32[N, C]) {
  for i in [0, N) {
    for j in [0, C) vector(8) prefetch x[i + 1, j] { y[i, j] = x[i, j] }
  }
})")
                                    .value();
  const auto bound = BoundOf(program, {{"N", 100}, {"C", 1000}}, 8e5, 1e-3, MadeUp());
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->by, "memory");
}

// A tensor that one part passes on to another goes through the nearest memory with room for it.
TEST(Bound, OfAPartThatOthersFeed) {
  const loop::Program program = loop::ParseProgram(R"(
program p(x: f32[N]) -> (y: f32[N], z: f32[N]) {
  temp t: f32[N]
  for i in [0, N) { t[i] = x[i] + 1.0 }
  for i in [0, N) { y[i] = t[i] + 2.0 }
  for i in [0, N) { z[i] = t[i] + y[i] }
})")
                                    .value();
  const auto bound_of = [&](size_t item, int64_t n) {
    const std::vector<size_t> items = {item + 1};  // after the declaration
    const auto bound = BoundOf(PartOf(program, items), {{"N", n}}, 16.0 * static_cast<double>(n),
                               1e-8 * static_cast<double>(n), MadeUp());
    EXPECT_TRUE(bound.ok()) << bound.status();
    return absl::StrFormat("%s %.2f", bound->by, bound->share);
  };
  // x is read, and t written; t is read, and y written.
  EXPECT_EQ(bound_of(0, 100000), "memory 0.80");
  EXPECT_EQ(bound_of(1, 100000), "memory 0.80");
  EXPECT_EQ(bound_of(2, 100000), "memory 1.00");
  // The last cache holds t, but not all that the call touches.
  EXPECT_EQ(bound_of(1, 20000), "latency 0.40");
}

TEST(PartOf, KeepsItemsByTheirNumber) {
  const loop::Program program = loop::ParseProgram(R"(
program p(x: f32[N]) -> (y: f32[N], z: f32[N], w: f32[N]) {
  for i in [0, N) { y[i] = x[i] }
  for i in [0, N) { z[i] = x[i] }
  for i in [0, N) { w[i] = x[i] }
})")
                                    .value();
  const std::string text = loop::ToText(PartOf(program, {0, 2}));
  EXPECT_NE(text.find("y[i] = "), std::string::npos);
  EXPECT_EQ(text.find("z[i] = "), std::string::npos);
  EXPECT_NE(text.find("] = x", text.find("w[")), std::string::npos);
}

}  // namespace
}  // namespace nestor::cli
