// The fast judge's law, against the oracle: each bound of each element, where it is known,
// lies in the oracle's enclosure. Tested on every scalar op with sets of every kind for operands,
// and on every accumulation at the limits of exactness and range. Then the contents of a verdict.
// //tests:fast_judge_random_test and //tests:fast_judge_test hold programs against the law.
#include "check/bounds/fast_judge.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "check/bounds/fast_judge_testing.h"
#include "check/random.h"
#include "gtest/gtest.h"
#include "interp/enclosure.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

FastJudge JudgeOf(absl::string_view text) { return *FastJudge::Create(*ParseOp(text)); }

// ---- Scalar ops

// Values where rules change: zeros, ones, subnormals, powers of two and their
// neighbours, large ones.
double SpecialValue(DType type, Random& random) {
  const double unit = static_cast<double>(random.Bits() >> 11) * 0x1p-53;
  const double sign = random.Chance(50) ? 1 : -1;
  switch (random.Below(10)) {
    case 0: return sign * 0.0;
    case 1: return sign;
    case 2: return sign * std::ldexp(1.0, static_cast<int>(random.Between(-4, 4)));
    case 3: return sign * std::ldexp(1 + unit, static_cast<int>(random.Between(-140, 127)));
    case 4: return sign * std::ldexp(unit, -126);
    case 5: return sign * ToLongDouble(Highest(DType::kI8)) * (1 + random.Below(3) * 0x1p-23);
    case 6:
      return sign * (random.Chance(50) ? FormatOf(type).Largest()
                                       : std::numeric_limits<double>::infinity());
    case 7: return static_cast<double>(random.Between(-5, 5)) / 2;
    default: return 8 * unit - 4;
  }
}

Tensor SpecialTensor(DType type, int64_t size, Random& random) {
  std::vector<double> values(size);
  for (double& value : values) value = SpecialValue(type, random);
  return Tensor::Of(type, {size}, values);
}

// Each operand is a point, a product (which is not rounded), a set of some width, or a wide one.
const char* const kOperandForms[] = {"@[i]", "@[i] * c[i]", "exp(@[i] * c[i])",
                                     "sum[k](where(k == 0, @[i], c[i] * c[i]))"};

std::string OperandText(const char* form, char name) {
  std::string text(form);
  text.replace(text.find('@'), 1, 1, name);
  return text;
}

std::string RowProgram(const ScalarOpRow& row, const char* form, DType type) {
  std::vector<std::string> args;
  for (int i = 0; i < row.arity; ++i) args.push_back(OperandText(form, i == 0 ? 'a' : 'b'));
  if (row.op == ScalarOp::kSelect)
    args[0] = absl::StrCat(OperandText(form, 'b'), " < ", OperandText(form, 'a'));
  std::string call = absl::StrCat(row.op == ScalarOp::kCast ? "i32" : row.name, "(");
  for (size_t i = 0; i < args.size(); ++i) absl::StrAppend(&call, i > 0 ? ", " : "", args[i]);
  const std::string t(Name(type));
  return absl::StrCat("op f(a: ", t, "[N], b: ", t, "[N], c: ", t, "[N]) -> (y) { y[i] = ", call,
                      absl::StrContains(form, "[k]") ? ") where k < 3 }" : ") }");
}

TEST(FastJudge, BoundsOfScalarOps) {
  BoundCounts counts;
  Random random(1);
  constexpr int64_t size = 300;
  for (const ScalarOpRow& row : AllScalarOps()) {
    if (!Accepts(row.operands, DType::kF32)) continue;
    for (DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
      if (row.result == ResultType::kBitsOf && type != DType::kF32) continue;
      for (const char* form : kOperandForms) {
        const std::string text = RowProgram(row, form, type);
        const absl::StatusOr<Op> op = ParseOp(text);
        ASSERT_TRUE(op.ok()) << text << "\n" << op.status();
        absl::StatusOr<FastJudge> judge = FastJudge::Create(*op);
        ASSERT_TRUE(judge.ok()) << text << "\n" << judge.status();
        const Tensor a = SpecialTensor(type, size, random), b = SpecialTensor(type, size, random),
                     c = SpecialTensor(type, size, random);
        const RunInputs inputs{{{"a", a.view()}, {"b", b.view()}, {"c", c.view()}}, {}, {}};
        EXPECT_EQ(BoundsViolation(*op, inputs, *judge, counts), "") << text;
      }
    }
  }
  std::cerr << counts << "\n";
}

// A quotient may be a product with the reciprocal only where no discrete step sees it:
// 49 * (1 / 49) is less than 1.
TEST(FastJudge, BoundsOfQuotients) {
  BoundCounts counts;
  std::vector<double> dividends, divisors;
  for (int64_t i = 0; i < 64 * 64; ++i)
    dividends.push_back(1 + i / 64), divisors.push_back(1 + i % 64);
  for (DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
    const Tensor a = Tensor::Of(type, {4096}, dividends), b = Tensor::Of(type, {4096}, divisors);
    const RunInputs inputs{{{"a", a.view()}, {"b", b.view()}}, {}, {}};
    for (const char* body : {"y[i] = q[i]", "y[i] = floor(q[i])", "y[i] = q[i] < 1.0",
                             "y[i] = i32(q[i] * 2.0)", "y[i] = floor(q[i]) + q[i]",
                             "m[i] = sum[j](q[i + j]) where i < N, j < 2; y[i] = ceil(m[i])",
                             "y[i] = round(max(q[i], 1.0))", "y[i] = mod(q[i], 1.0)",
                             "y = argmax[i](abs(1.0 - q[i]))"}) {
      const std::string text =
          absl::StrCat("op f(a: T[N], b: T[N]) -> (y) { q[i] = a[i] / b[i]; ", body, " }");
      const absl::StatusOr<Op> op = ParseOp(absl::StrReplaceAll(text, {{"T", Name(type)}}));
      ASSERT_TRUE(op.ok()) << text << "\n" << op.status();
      absl::StatusOr<FastJudge> judge = FastJudge::Create(*op);
      ASSERT_TRUE(judge.ok()) << judge.status();
      EXPECT_EQ(BoundsViolation(*op, inputs, *judge, counts), "") << Name(type) << " " << body;
    }
  }
  std::cerr << counts << "\n";
}

// The odd inverse of x modulo 2^32, by Newton's steps.
uint32_t Inverse(uint32_t x) {
  uint32_t inverse = x;
  for (int i = 0; i < 4; ++i) inverse *= 2 - x * inverse;
  return inverse;
}

// Products a * b in [1, 2) that lie 2^-47 beyond a tie of f32, on the side of its odd
// neighbor, and c that moves it back to 2^-60 beyond the tie. f64 rounds a * b + c to the tie, and
// from there f32 rounds to the even neighbor.
TEST(FastJudge, BoundsBesideTies) {
  std::vector<float> a, b, c;
  constexpr uint32_t kTop = uint32_t{1} << 24, kTie = uint32_t{1} << 23;
  for (uint32_t x = kTop / 4 * 3 + 1; a.size() < 4000; x += 2) {
    for (const bool below : {false, true}) {
      const uint32_t rest = below ? 3 * kTie - 1 : kTie + 1;
      const uint32_t y = Inverse(x) * rest % (uint32_t{1} << 25);
      if (y >= kTop || static_cast<uint64_t>(x) * y < uint64_t{1} << 47) continue;
      a.push_back(std::ldexp(static_cast<float>(x), -23));
      b.push_back(std::ldexp(static_cast<float>(y), -24));
      c.push_back((below ? 1 : -1) * (0x1p-47f - 0x1p-60f));
    }
  }
  const int64_t size = static_cast<int64_t>(a.size());
  const Tensor x = Tensor::Of<float>({size}, a), y = Tensor::Of<float>({size}, b),
               z = Tensor::Of<float>({size}, c);
  const RunInputs inputs{{{"a", x.view()}, {"b", y.view()}, {"c", z.view()}}, {}, {}};
  BoundCounts counts;
  for (const char* body : {"a[i] * b[i] + c[i]", "-c[i] - a[i] * b[i]", "fma(a[i], b[i], c[i])",
                           "a[i] * b[i] - -c[i]"}) {
    const std::string text =
        absl::StrCat("op f(a: f32[N], b: f32[N], c: f32[N]) -> (y) { y[i] = ", body, " }");
    FastJudge judge = JudgeOf(text);
    EXPECT_EQ(BoundsViolation(*ParseOp(text), inputs, judge, counts), "") << body;
  }
  std::cerr << counts << "\n";
}

// ---- Accumulations

// Three terms each, of values whose sums and products are just exact, or just not: at the
// last place, at the ends of the range, zeros.
std::vector<double> Terms(DType type) {
  const FloatFormat& format = FormatOf(type);
  const auto power = [](int exponent) { return std::ldexp(1.0, exponent); };
  const int p = FormatOf(AccumulatorType(type)).precision;
  const double last = power(1 - format.precision);
  return {-0.0,
          1,
          -1,
          1 + last,
          3,
          power(p - 1),
          power(p),
          -power(p),
          static_cast<double>(format.Largest()),
          static_cast<double>(format.LeastSubnormal())};
}

Tensor AllRows(DType type, const std::vector<double>& terms) {
  std::vector<double> values;
  const int64_t count = static_cast<int64_t>(terms.size()), rows = count * count * count;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0, rest = row; k < 3; ++k, rest /= count)
      values.push_back(terms[rest % count]);
  }
  return Tensor::Of(type, {rows, 3}, values);
}

// Long rows of powers of two and their neighbours, over all the range, in half of the rows
// first small ones and then large ones: partial products leave f64's range, too.
Tensor LongRows(DType type, Random& random) {
  const FloatFormat& format = FormatOf(type);
  constexpr int kTerms = 40;
  std::vector<double> values(200 * kTerms);
  for (size_t i = 0; i < values.size(); ++i) {
    int exponent = static_cast<int>(random.Between(format.min_exponent, format.max_exponent));
    if (!random.Chance(30)) exponent /= 16;
    const bool large = i % kTerms >= kTerms / 2, ordered = i / kTerms % 2 == 0;
    const int inwards = std::abs(exponent / 4);
    if (ordered) exponent = large ? format.max_exponent - inwards : format.min_exponent + inwards;
    values[i] = std::ldexp(random.Pick({1.0, -1.0, 1.25, 1.7}), exponent);
  }
  return Tensor::Of(type, {200, kTerms}, values);
}

// Many terms: on one grid, so that some sums are exact, and on none.
Tensor ManyTerms(DType type, Random& random) {
  std::vector<double> values(4 * 3000);
  for (size_t i = 0; i < values.size(); ++i) {
    const double unit = static_cast<double>(random.Bits() >> 11) * 0x1p-53;
    const double whole = static_cast<double>(random.Between(-2000, 2000));
    values[i] = i < values.size() / 2 ? whole : 4 * unit - 2;
  }
  return Tensor::Of(type, {4, 3000}, values);
}

void TestAccumulations(DType type, const Tensor& x, BoundCounts& counts) {
  const char* const bodies[] = {
      "y[i] = sum[k](x[i, k])", "y[i] = sum[k](x[i, k] * z[k])", "y[i] = prod[k](x[i, k])",
      "y[i] = sum[k](exp(z[k]) * x[i, k])", "y[i] = prod[k](x[i, k] * z[k])",
      "y[i]: T[N] += x[i, k]", "y[i]: T[N] *= x[i, k]", "y[i]: T[N] max= x[i, k] * z[k]",
      "y[i] = max[k](x[i, k])", "y[i] = argmax[k](x[i, k] * z[k])", "y[i] = argmin[k](x[i, k])",
      // Where a log of 0 has no known bound, neither has the result.
      "y[i] = argmax[k](log(abs(x[i, k])))", "y[i]: i32[N] += i32(log(abs(x[i, k])))",
      "y[i] = sum[k](where(x[i, k] > 0.0, 1, i32(log(abs(x[i, k])))))",
      "y[i] = any[k](x[i, k] < z[k] * 3.0)", "y[i] = sum[k](i32(x[i, k] > exp(z[k])))"};
  std::vector<double> factors;
  for (int64_t k = 0; k < x.shape()[1]; ++k)
    factors.push_back(k % 3 == 0 ? 1 : k % 3 == 1 ? 1.5 : -1.1);
  const Tensor z = Tensor::Of(type, {x.shape()[1]}, factors);
  for (const char* body : bodies) {
    const std::string text = absl::StrCat("op f(x: T[N, K], z: T[K]) -> (y) { ", body, " }");
    const absl::StatusOr<Op> op = ParseOp(absl::StrReplaceAll(text, {{"T", Name(type)}}));
    ASSERT_TRUE(op.ok()) << text << "\n" << op.status();
    absl::StatusOr<FastJudge> judge = FastJudge::Create(*op);
    ASSERT_TRUE(judge.ok()) << text << "\n" << judge.status();
    const RunInputs inputs{{{"x", x.view()}, {"z", z.view()}}, {}, {}};
    EXPECT_EQ(BoundsViolation(*op, inputs, *judge, counts), "") << Name(type) << " " << body;
  }
}

TEST(FastJudge, BoundsOfAccumulations) {
  BoundCounts counts;
  Random random(1);
  for (DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
    TestAccumulations(type, AllRows(type, Terms(type)), counts);
    TestAccumulations(type, LongRows(type, random), counts);
    TestAccumulations(type, ManyTerms(type, random), counts);
  }
  std::cerr << counts << "\n";
}

// ---- Verdicts

TEST(FastJudge, NamesTheElementsThatItDoesNotAccept) {
  FastJudge judge = JudgeOf("op f(x: f32[N]) -> (y, c) { y[i] = x[i] * 3.0; c[i] = x[i] > 0.0 }");
  const Tensor x = Tensor::Of<float>({4}, {1, -0.0f, 2, 0.1f});
  const Tensor c = Tensor::Of(DType::kBool, {4}, {1, 0, 1, 0});
  const RunInputs inputs{{{"x", x.view()}}, {}, {}};
  const Tensor right = Tensor::Of<float>({4}, {3, -0.0f, 6, 0.1f * 3.0f});
  FastVerdict verdict = *judge.Judge(inputs, {right.view(), c.view()});
  EXPECT_TRUE(verdict.results[0].open.empty());
  EXPECT_EQ(verdict.results[0].accepted, 4);
  EXPECT_EQ(verdict.results[1].open, std::vector<int64_t>({3}));
  EXPECT_FALSE(verdict.AllAccepted());

  const Tensor wrong = Tensor::Of<float>({4}, {std::nextafterf(3, 4), 0.0f, NAN, INFINITY});
  verdict = *judge.Judge(inputs, {wrong.view(), c.view()});
  EXPECT_EQ(verdict.results[0].open, std::vector<int64_t>({0, 1, 2, 3}));
}

TEST(FastJudge, ReadsResultsOfAnyLayout) {
  FastJudge judge = JudgeOf("op f(x: bf16[N, M]) -> (y) { y[j, i] = x[i, j] + 1.0 }");
  const Tensor x = Tensor::Of(DType::kBF16, {2, 3}, {1, 2, 3, 4, 5, 6});
  const RunInputs inputs{{{"x", x.view()}}, {}, {}};
  const Tensor y = Tensor::Of(DType::kBF16, {2, 3}, {2, 3, 4, 5, 6, 8});
  TensorView turned = y.view();
  turned.shape = {3, 2};
  turned.strides = {1, 3};
  EXPECT_EQ(judge.Judge(inputs, {turned})->results[0].open, std::vector<int64_t>({5}));
}

// A value that is loaded at an index computed from floats is known where the index is.
TEST(FastJudge, FollowsIndicesMadeOfFloats) {
  FastJudge judge = JudgeOf(
      "op f(x: f32[N], t: f32[M]) -> (y, b) { k[i] = i64(x[i]); y[i] = t[k[i] | 7]; b[i] = k[i] + k[k[i]] }");
  const Tensor x = Tensor::Of<float>({4}, {1.5, 0, NAN, 2}), t = Tensor::Of<float>({2}, {5, 6});
  const Tensor y = Tensor::Of<float>({4}, {6, 5, 5, 7}),
               b = Tensor::Of(DType::kI64, {4}, {1, 1, 1, 2});
  const FastVerdict verdict =
      *judge.Judge({{{"x", x.view()}, {"t", t.view()}}, {}, {}}, {y.view(), b.view()});
  EXPECT_EQ(verdict.results[0].open, std::vector<int64_t>({2}));
  EXPECT_EQ(verdict.results[1].open, std::vector<int64_t>({2, 3}));
}

TEST(FastJudge, KnowsFills) {
  FastJudge judge = JudgeOf(
      "op f(x: f32[N]; $p: f32, $q: bool) -> (y, z, c, d) { y[i] = x[i + 1 | $p] where i < N;"
      " z[i] = x[i + 1 | 7] where i < N; a[i] = exp(x[i]) > 2.0;"
      " c[i] = a[i + 1 | $q] where i < N; d[i] = a[i + 1] where i < N }");
  const Tensor x = Tensor::Of<float>({3}, {0, 1, 0.5});
  RunInputs inputs{{{"x", x.view()}}, {}, {}};
  for (bool q : {false, true}) {
    inputs.params = {{"$p", Scalar::Of(DType::kF32, -3.5f)}, {"$q", Scalar::Of(DType::kBool, q)}};
    const Tensor y = Tensor::Of<float>({3}, {1, 0.5, -3.5}),
                 z = Tensor::Of<float>({3}, {1, 0.5, 7});
    const Tensor c = Tensor::Of(DType::kBool, {3}, {1, 0, q ? 1.0 : 0.0}),
                 d = Tensor::Of(DType::kBool, {3}, {1, 0, 0});
    const absl::StatusOr<FastVerdict> verdict =
        judge.Judge(inputs, {y.view(), z.view(), c.view(), d.view()});
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_TRUE(verdict->AllAccepted());
  }
}

TEST(FastJudge, ServesManySizes) {
  FastJudge judge = JudgeOf("op f(x: f32[N, K]) -> (y) { y[i] = sum[k](x[i, k]) }");
  for (int64_t n : {3, 0, 17, 3}) {
    const Tensor x = *Tensor::Create(DType::kF32, {n, 5}), y = *Tensor::Create(DType::kF32, {n});
    const absl::StatusOr<FastVerdict> verdict =
        judge.Judge({{{"x", x.view()}}, {}, {}}, {y.view()});
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_EQ(verdict->results[0].accepted, n);
  }
}

TEST(FastJudge, NamesWhatDoesNotFit) {
  FastJudge judge = JudgeOf("op f(x: f32[N]) -> (y) { y[i] = -x[i] }");
  const Tensor x = Tensor::Of<float>({2}, {1, 2}), wide = Tensor::Of(DType::kF64, {2}, {1, 2});
  const RunInputs inputs{{{"x", x.view()}}, {}, {}};
  EXPECT_EQ(judge.Judge(inputs, {wide.view()}).status().message(),
            "op f: result y is f64[2], want f32[2]");
  EXPECT_EQ(judge.Judge(inputs, {}).status().message(), "op f has 1 result, not 0");
  EXPECT_TRUE(
      absl::IsInvalidArgument(judge.Judge({{{"z", x.view()}}, {}, {}}, {x.view()}).status()));
}

TEST(FastJudge, SaysWhatHasNoBounds) {
  const std::pair<const char*, const char*> cases[] = {
      {"op f(x: f64[N]) -> (y) { y[i] = x[i] }", "op f: no inner bounds: result y is f64"},
      {"op f(x: f32[N]) -> (y) { k[i] = i64(x[i]); y[k[i]]: f32[N] += x[i] }",
       "op f: no inner bounds: a place to store to was made of a float"},
      {"op f(x: i32[N]) -> (y) { for t < N { y[t] = y[t - 1] + x[t] } }",
       "op f: no inner bounds: a recurrence of integers or bools"},
  };
  for (const auto& [text, message] : cases) {
    const absl::StatusOr<Op> op = ParseOp(text);
    ASSERT_TRUE(op.ok()) << op.status();
    EXPECT_EQ(FastJudge::Create(*op).status(), absl::UnimplementedError(message));
  }
}

}  // namespace
}  // namespace nestor
