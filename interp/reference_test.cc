// Programs in the reference mode: kernels that do the same in another allowed way
// are accepted, wrong ones are not. A kernel here is a loop_ir program that the
// native interpreter runs, bit for bit as written.
#include "interp/reference.h"

#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor {
namespace {

struct Data {
  Tensor x, w;
  RunInputs inputs;
};

constexpr int64_t kRows = 3, kColumns = 40;

// x and w around zero, of size `scale`.
Data Draw(DType type, double scale, double offset, uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto draw = [&](absl::Span<const int64_t> shape) {
    std::vector<double> values;
    for (int64_t i = 0; i < *NumElements(shape); ++i)
      values.push_back(offset + scale * ((engine() >> 11) * 0x1p-52 - 1));
    return Tensor::Of(type, shape, values);
  };
  Data data{draw({kRows, kColumns}), draw({kColumns}), {}};
  data.inputs.tensors = {{"x", data.x.view()}, {"w", data.w.view()}};
  return data;
}

loop::Program ParseBody(absl::string_view type, absl::string_view body) {
  const std::string text = absl::StrCat("program p(x: ", type, "[N, C], w: ", type,
                                        "[C]) -> (y: ", type, "[N, C]) {\n", body, "\n}\n");
  const auto program = loop::ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  if (!program.ok()) return loop::Program();
  EXPECT_TRUE(Verify(*program).ok()) << Verify(*program) << "\n" << text;
  return *program;
}

// The sum over a row at every element of the row.
constexpr char kSum[] = R"(for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, k] }
  for c in [0, C) { y[n, c] = s } })";
constexpr char kDot[] =
    R"(for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, k] * w[k] }
  for c in [0, C) { y[n, c] = s } })";
constexpr char kMean[] = R"(for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, k] }
  for c in [0, C) { y[n, c] = s / f32(index(C)) } })";
constexpr char kSoftmax[] =
    R"(for n in [0, N) { temp e: f32[C]  acc m: f32 = max  for k in [0, C) { m max= x[n, k] }
  acc s: f32 = sum  for c in [0, C) { e[c] = exp(x[n, c] - m)  s += e[c] }  for c in [0, C) { y[n, c] = e[c] / s } })";
constexpr char kNorm[] =
    R"(for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, k] }  temp m: f32  m = s / f32(index(C))
  acc v: f32 = sum  for k in [0, C) { v += square(x[n, k] - m) }
  for c in [0, C) { y[n, c] = (x[n, c] - m) * rsqrt(v / f32(index(C)) + 0.00001) * w[c] } })";
constexpr char kRelu[] =
    "for n in [0, N) { for c in [0, C) { y[n, c] = relu(x[n, c] * w[c] + 1.0) } }";
constexpr char kScan[] = R"(for n in [0, N) { for c in [0, C) {
  temp last: f32  last = y[n, c - 1 | 0.0]  y[n, c] = x[n, c] * w[c] + last - w[c] } })";
constexpr char kScanOfSigns[] = R"(for n in [0, N) { for c in [0, C) {
  y[n, c] = y[n, c - 1 | 0.0] + where(index(c % 2) == 0, x[n, c], -x[n, c]) } })";
constexpr char kLinear[] =
    R"(for n in [0, N) { for c in [0, C) { y[n, c] = w[c] * y[n, c - 1 | 1.0] + x[n, c] } })";
// Computes each element anew, from its last term to the first.
#define LINEAR_FROM_THE_END(factor)                                                 \
  "for n in [0, N) { for c in [0, C) { temp s: f32  s = 0.0  temp p: f32  p = 1.0 " \
  " for k in [0, c + 1) { s = s + p * x[n, c - k]  p = p * " factor " }  y[n, c] = s + p } }"
// Composes blocks of eight steps, and then takes them.
constexpr char kLinearInBlocks[] = R"(for n in [0, N) { temp h: f32  h = 1.0  for b in [0, C/8) {
  temp a: f32  a = 1.0  temp s: f32  s = 0.0
  for r in [0, 8) { y[n, 8*b + r] = w[8*b + r] * (a * h + s) + x[n, 8*b + r]
    s = w[8*b + r] * s + x[n, 8*b + r]  a = w[8*b + r] * a }
  h = a * h + s } })";
// A sum begins with the last element of a product.
#define PRODUCT_THEN_SUM(step)                                                          \
  "for n in [0, N) { for c in [0, min(C, 2)) { y[n, c] = y[n, c - 1 | 1.0] * x[n, c] }" \
  " for c in [2, C) { y[n, c] = y[n, c - 1] " step " x[n, c] } }"
constexpr char kProductThenSum[] = PRODUCT_THEN_SUM("+");
constexpr char kWrongProductThenSum[] = PRODUCT_THEN_SUM("*");
// The step is no mere sum.
constexpr char kSmoothed[] = R"(for n in [0, N) { for c in [0, C) {
  y[n, c] = abs(y[n, c - 1 | 0.0]) + where(index(c % 2) == 0, x[n, c], -x[n, c]) } })";
constexpr char kEvenFirst[] = R"(for n in [0, N) { for c in [0, C) { acc s: f32 = sum
  for k in [0, c/2 + 1) { s += x[n, 2*k] }  for k in [0, (c + 1)/2) { s += -x[n, 2*k + 1] }  y[n, c] = s } })";
constexpr char kHalf[] =
    R"(for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += f32(x[n, k]) }
  for c in [0, C) { y[n, c] = f16(s) } })";

TEST(Reference, AcceptsAllowedAndRejectsWrongKernels) {
  const struct {
    const char* what;
    bool right;
    const char* law;
    const char* kernel;
    double scale = 1, offset = 0;
    const char* type = "f32";
  } kCases[] = {
      {"backwards", true, kSum,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, C - 1 - k] }  for c in [0, C) { y[n, c] = s } }"},
      {"in lanes", true, kSum,
       "for n in [0, N) { acc a: f32[8] = sum  for k in [0, C) { a[k % 8] += x[n, k] }  acc s: f32 = sum  "
       "for l in [0, 8) { s += a[l] }  for c in [0, C) { y[n, c] = s } }"},
      {"in f64", true, kSum,
       "for n in [0, N) { acc s: f64 = sum  for k in [0, C) { s += f64(x[n, k]) }  for c in [0, C) { y[n, c] = f32(s) } }"},
      {"without the last term", false, kSum,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C - 1) { s += x[n, k] }  for c in [0, C) { y[n, c] = s } }"},
      {"the first term twice", false, kSum,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C + 1) { s += x[n, k % C] }  for c in [0, C) { y[n, c] = s } }"},
      {"FMA", true, kDot,
       "for n in [0, N) { temp s: f32  s = 0.0  for k in [0, C) { s = fma(x[n, k], w[k], s) }  for c in [0, C) { y[n, c] = s } }"},
      {"unsigned terms", false, kDot,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, k] * abs(w[k]) }  for c in [0, C) { y[n, c] = s } }"},
      {"in bf16", false, kDot,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += f32(bf16(x[n, k])) * w[k] }  for c in [0, C) { y[n, c] = s } }"},
      {"times the reciprocal", true, kMean,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, k] }  for c in [0, C) { y[n, c] = s * (1.0 / f32(index(C))) } }"},
      {"a sum for a mean", false, kMean, kSum},
      {"unbiased", false, kMean,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, k] }  for c in [0, C) { y[n, c] = s / f32(index(C - 1)) } }"},
      {"softmax by the reciprocal", true, kSoftmax,
       "for n in [0, N) { temp e: f32[C]  acc m: f32 = max  for k in [0, C) { m max= x[n, C - 1 - k] }  acc s: f32 = sum  "
       "for c in [0, C) { e[c] = exp(x[n, c] - m)  s += e[c] }  temp r: f32  r = 1.0 / s  for c in [0, C) { y[n, c] = e[c] * r } }"},
      {"no max subtracted", false, kSoftmax,
       "for n in [0, N) { temp e: f32[C]  acc s: f32 = sum  for c in [0, C) { e[c] = exp(x[n, c])  s += e[c] }  "
       "for c in [0, C) { y[n, c] = e[c] / s } }",
       100},
      {"max over too little", false, kSoftmax,
       "for n in [0, N) { temp e: f32[C]  acc m: f32 = max  for k in [0, C) { m max= x[n, k] }  acc s: f32 = sum  "
       "for c in [1, C) { s += exp(x[n, c] - m) }  for c in [0, C) { y[n, c] = exp(x[n, c] - m) / s } }"},
      {"norm, rescaled", true, kNorm,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, C - 1 - k] }  temp m: f32  m = s * (1.0 / f32(index(C)))  "
       "acc v: f32 = sum  for k in [0, C) { v += square(x[n, k] - m) }  for c in [0, C) { y[n, c] = (x[n, c] - m) * rsqrt(v / f32(index(C)) + 0.00001) * w[c] } }"},
      {"E[x^2] - E[x]^2", false, kNorm,
       "for n in [0, N) { acc s: f32 = sum  acc q: f32 = sum  for k in [0, C) { s += x[n, k]  q += square(x[n, k]) }  temp m: f32  m = s / f32(index(C))  "
       "for c in [0, C) { y[n, c] = (x[n, c] - m) * rsqrt(q / f32(index(C)) - m * m + 0.00001) * w[c] } }",
       1, 300},
      {"no epsilon", false, kNorm,
       "for n in [0, N) { acc s: f32 = sum  for k in [0, C) { s += x[n, k] }  temp m: f32  m = s / f32(index(C))  "
       "acc v: f32 = sum  for k in [0, C) { v += square(x[n, k] - m) }  for c in [0, C) { y[n, c] = (x[n, c] - m) * rsqrt(v / f32(index(C))) * w[c] } }"},
      {"relu of an FMA", true, kRelu,
       "for n in [0, N) { for c in [0, C) { y[n, c] = max(fma(x[n, c], w[c], 1.0), 0.0) } }"},
      {"no relu", false, kRelu,
       "for n in [0, N) { for c in [0, C) { y[n, c] = x[n, c] * w[c] + 1.0 } }", 2},
      {"a scan backwards", true, kScan,
       "for n in [0, N) { for c in [0, C) { acc s: f32 = sum  for k in [0, c + 1) { s += x[n, c - k] * w[c - k]  "
       "s += -w[c - k] }  y[n, c] = s } }"},
      {"a scan without its last term", false, kScan,
       "for n in [0, N) { for c in [0, C) { acc s: f32 = sum  for k in [0, c + 1) { s += x[n, k] * w[k] }  y[n, c] = s } }"},
      {"a scan that overflows on the way", true, kScanOfSigns, kEvenFirst, 0, 3e38},
      {"a scan that goes on from another one", false, kProductThenSum, kWrongProductThenSum},
      {"what is no scan", false, kSmoothed, kEvenFirst, 0, 3e38},
      {"a linear recurrence from its end", true, kLinear, LINEAR_FROM_THE_END("w[c - k]")},
      {"the same of factors above 1", true, kLinear, LINEAR_FROM_THE_END("w[c - k]"), 1, 2},
      {"a linear recurrence in blocks", true, kLinear, kLinearInBlocks},
      {"a linear recurrence in blocks that overflow", true, kLinear, kLinearInBlocks, 1e20, 1e25},
      {"a linear recurrence with other factors", false, kLinear,
       LINEAR_FROM_THE_END("w[(c - k + 1) % C]")},
      {"f16 summed in f64", true, kHalf,
       "for n in [0, N) { acc s: f64 = sum  for k in [0, C) { s += f64(x[n, k]) }  for c in [0, C) { y[n, c] = f16(s) } }",
       1, 0, "f16"},
      {"f16 summed in f16", false, kHalf,
       "for n in [0, N) { acc s: f16 = sum  for k in [0, C) { s += x[n, k] }  for c in [0, C) { y[n, c] = s } }",
       1, 0, "f16"},
  };
  for (const auto& c : kCases) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Data data = Draw(*TypeByName(c.type), c.scale, c.offset, seed);
      const auto want = InterpretReference(ParseBody(c.type, c.law), data.inputs);
      const auto got = Interpret(ParseBody(c.type, c.kernel), data.inputs);
      ASSERT_TRUE(want.ok() && got.ok()) << c.what << ": " << want.status() << got.status();
      const absl::Status status = CheckEnclosed((*want)[0], (*got)[0]);
      EXPECT_EQ(status.ok(), c.right) << c.what << " seed " << seed << ": " << status;
    }
  }
}

// A product stays unrounded after an operation that returns its operand bit for bit, whatever its
// value, and after no other, even if that does so for all operands but a zero.
TEST(Reference, LeavesOutWhatGivesItsOperandBack) {
  const struct {
    const char* of_product;
    bool may_be_left_out;
  } kCases[] = {
      {"p", true},
      {"p * 1.0", true},
      {"1.0 * p", true},
      {"p / 1.0", true},
      {"p - 0.0", true},
      {"p + -0.0", true},
      {"-0.0 + p", true},
      {"max(p, p)", true},
      {"min(p, p)", true},
      {"copy(p)", true},
      {"-(-p)", true},
      {"f32(p)", true},
      {"p + 0.0", false},
      {"0.0 + p", false},
      {"p - -0.0", false},
      {"p * 0.5 * 2.0", false},
      {"p / 0.5 / 2.0", false},
      {"max(p, -8.0)", false},
      {"fma(p, 1.0, -0.0)", false},
      {"abs(p) * sign(p)", false},
      {"p * -1.0 * -1.0", false},
  };
  const loop::Program kernel = ParseBody(
      "f32", "for n in [0, N) { for c in [0, C) { y[n, c] = fma(x[n, c], w[c], w[c]) } }");
  for (const auto& c : kCases) {
    const loop::Program law = ParseBody(
        "f32",
        absl::StrCat(
            "for n in [0, N) { for c in [0, C) { temp p: f32  p = x[n, c] * w[c]  y[n, c] = (",
            c.of_product, ") + w[c] } }"));
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Data data = Draw(DType::kF32, 1, 0, seed);
      const auto want = InterpretReference(law, data.inputs);
      const auto got = Interpret(kernel, data.inputs);
      ASSERT_TRUE(want.ok() && got.ok()) << c.of_product << ": " << want.status() << got.status();
      EXPECT_EQ(CheckEnclosed((*want)[0], (*got)[0]).ok(), c.may_be_left_out)
          << c.of_product << " seed " << seed;
    }
  }
}

// One element moved by a few half-widths of its enclosure.
TEST(Reference, RejectsFourTimesTheBound) {
  for (const char* law : {kSum, kDot, kMean, kSoftmax, kNorm, kLinear}) {
    const Data data = Draw(DType::kF32, 1, 0, 7);
    const loop::Program program = ParseBody("f32", law);
    const auto want = InterpretReference(program, data.inputs);
    auto got = Interpret(program, data.inputs);
    ASSERT_TRUE(want.ok() && got.ok());
    EXPECT_TRUE(CheckEnclosed((*want)[0], (*got)[0]).ok());
    const Enclosure& e = (*want)[0].elements[kColumns + 5];
    (*got)[0].values<float>()[kColumns + 5] = static_cast<float>(e.low + (e.high - e.low) / 2 * 5);
    const absl::Status status = CheckEnclosed((*want)[0], (*got)[0]);
    EXPECT_TRUE(absl::StrContains(status.message(), "at [1, 5]: ")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), " half-widths")) << status;
  }
}

// The enclosure of one element, and programs that have none. x is 1 2 3 3 2 3, w 0.1 0.2 0.3, and s
// the sum of w, which is 0.6 up to the order.
TEST(Reference, Values) {
  const Tensor x = Tensor::Of<float>({6}, {1, 2, 3, 3, 2, 3}),
               w = Tensor::Of<float>({3}, {0.1f, 0.2f, 0.3f});
  RunInputs inputs;
  inputs.tensors = {{"x", x.view()}, {"w", w.view()}};
  const struct {
    const char* body;
    const char* want;  // or a piece of the error
  } kCases[] = {
      {"y[0] = 1.0 / 3.0", "0.333333343267440795898"},
      {"y[0] = s", "[0.599999964237213134766, 0.600000083446502685547]"},
      {"y[0] = where(s > 0.5, 1.0, 2.0)", "1"},
      {"y[0] = where(s == 0.6, 1.0, 2.0)", "[1, 2]"},
      {"y[0] = f32(i[0])", "[2, 3]"},
      // Exact in every order, and so decided.
      {"y[0] = 0.0  for c in [0, 6) { y[0] += x[c] }", "14"},
      {"acc t: f32 = sum  for c in [0, 6) { t += x[c] }  y[0] = where(t == 14.0, 1.0, 2.0)", "1"},
      {"acc p: f32 = prod  for c in [0, 6) { p *= x[c] }  y[0] = p", "108"},
      {"acc p: i32 = prod  for c in [0, 6) { p *= i32(x[c]) + i32(i[0]) }  y[0] = f32(p)",
       "[6000, 21600]"},
      // Products feed a sum unrounded.
      {"temp t: f32  t = w[0] * w[1]  y[0] = t + 1000000.0", "1000000"},
      {"y[0] = w[0] * w[0] - w[0] * w[0]",
       "[-4.09781930610364497625e-10, 4.09781930610364497625e-10]"},
      // An undecided index: the join over the elements, once for all uses in a load.
      {"y[0] = x[i[0]]", "3"},
      {"y[0] = x[i[0] + 1]", "[2, 3]"},
      {"y[0] = f32(index(i[0] - i[0]))", "0"},
      {"y[0] = x[0 | 9.0 if i[0] < 3]", "[1, 9]"},
      {"y[0] = x[i[0] + 3 | 9.0]", "[3, 9]"},
      {"temp j: i64[1]  j[0] = i64(s * 1e9)  y[0] = x[j[0] % 6]", "undecided element of j"},
      {"y[0] = x[i[0] + 4]", "access out of range: x[6] of [6]"},
      {"y[0] = 0.0  drop y[i[0] - 2] += 1.0",
       "in `drop y[i[0] - 2] += 1.0`: an index or condition depends on an undecided element of i, which may be 2 to 3"},
      {"y[0] = 0.0  drop y[0] if i[0] < 3 = 1.0", "undecided element of i"},
      // Every candidate that may win.
      {"acc b: f32 = argmax  for c in [0, 6) { b argmax= (x[c], index(c)) }  y[0] = f32(b)", "2"},
      {"acc b: f32 = argmin  for c in [0, 6) { b argmin= (where(x[c] == 2.0, s, 0.6), index(c)) }  y[0] = f32(b)",
       "[0, 4]"},
      {"acc b: f32 = argmax  for c in [0, 6) { b argmax= (where(x[c] == 2.0, nan, s), index(c)) }  y[0] = f32(b)",
       "1"},
      {"acc b: f32 = argmax  for c in [0, 0) { b argmax= (x[c], index(c)) }  y[0] = f32(b)", "-1"},
      // A dropped store evaluates nothing, and unwritten elements are found.
      {"y[0] = 1.0  drop y[0] if 1 < 0 = x[6]", "1"},
      {"drop y[0] if 1 < 0 = 1.0", "element 0 of y was not written"},
      {"temp t: f32  y[0] = t", "read of what was not written: t"},
      {"y[0] += 1.0", "read of what was not written"},
  };
  for (const auto& c : kCases) {
    const std::string text = absl::StrCat(
        "program p(x: f32[6], w: f32[3]) -> (y: f32[1]) { \n"
        "acc s: f32 = sum  for c in [0, 3) { s += w[c] }  temp i: i64[1]  i[0] = i64(s * 5.0)\n",
        c.body, "\n }");
    const auto program = loop::ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status() << text;
    const auto results = InterpretReference(*program, inputs);
    const std::string got = results.ok() ? ToString((*results)[0].elements[0])
                                         : std::string(results.status().message());
    EXPECT_TRUE(results.ok() ? got == c.want : absl::StrContains(got, c.want)) << text << "\n"
                                                                               << got;
  }
}

TEST(Reference, ChecksShapesAndNamesTheWorst) {
  const ReferenceTensor want{
      DType::kF32, {2}, {FromEnds(DType::kF32, 1, 3), FromEnds(DType::kF32, 1, 2)}};
  const struct {
    Tensor got;
    const char* message;
  } kCases[] = {
      {Tensor::Of<float>({2}, {1, 2}), ""},
      {Tensor::Of<float>({2}, {3.5f, 5}),
       "at [1]: 5.0 is not in [1, 2], 7 half-widths from its middle"},
      {Tensor::Of<float>({2}, {-5, 2.5f}),
       "at [0]: -5.0 is not in [1, 3], 7 half-widths from its middle"},
      {Tensor::Of<float>({2}, {0, NAN}),
       "at [1]: nan is not in [1, 2]; nan is not possible here, in any order of sums and products"},
      {Tensor::Of<float>({1}, {1}), "f32[1], want f32[2]"},
      {Tensor::Of<double>({2}, {1, 2}), "f64[2], want f32[2]"},
  };
  for (const auto& c : kCases) EXPECT_EQ(CheckEnclosed(want, c.got).message(), c.message);
}

// The reference result of a program from x: f32[N] to y: f32.
ReferenceTensor ReferenceOf(absl::string_view body, const std::vector<float>& x) {
  const auto program =
      loop::ParseProgram(absl::StrCat("program p(x: f32[N]) -> (y: f32) { \n", body, "\n }"));
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  const Tensor tensor = Tensor::Of<float>({static_cast<int64_t>(x.size())}, x);
  RunInputs inputs;
  inputs.tensors = {{"x", tensor.view()}};
  const auto results = InterpretReference(*program, inputs);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0] : ReferenceTensor();
}

// The report says whether an infinity or NaN is possible, and where it comes from.
TEST(Reference, ReportsWhatMayOverflow) {
  constexpr char kHalfWay[] = "a sum or product may overflow half-way, in some order of its terms";
  constexpr char kNoOrder[] = ", but no sum or product overflows in another order";
  constexpr char kSumOf[] = "acc s: f32 = sum  for i in [0, N) { s += x[i] }  y = s";
  constexpr char kProductOf[] = "acc p: f32 = prod  for i in [0, N) { p *= x[i] }  y = p";
  const struct {
    const char* body;
    std::vector<float> x;
    float got;
    std::string message;  // its end
  } kCases[] = {
      {kSumOf, {3e38f, 3e38f, -3e38f}, INFINITY, ""},
      {kSumOf, {3e38f, 3e38f, -3e38f}, 1, absl::StrCat("; inf is possible here: ", kHalfWay)},
      {kSumOf,
       {3e38f, 3e38f, -3e38f},
       -INFINITY,
       absl::StrCat(
           "; -inf is not possible here, in any order of sums and products; inf is possible here: ",
           kHalfWay)},
      {kSumOf, {3e38f, -3e38f, 1e38f}, 3, absl::StrCat("; inf is possible here: ", kHalfWay)},
      {kSumOf,
       {3e38f, 3e38f, -3e38f, -3e38f},
       3e38f,
       absl::StrCat("; inf or -inf or nan is possible here: ", kHalfWay)},
      {kSumOf,
       {3e38f, -3e38f, 3e37f},
       INFINITY,
       "; inf is not possible here, in any order of sums and products"},
      {kSumOf, {INFINITY, 1}, 3, absl::StrCat("; inf is possible here", kNoOrder)},
      {kSumOf,
       {INFINITY, 1},
       NAN,
       absl::StrCat(
           "; nan is not possible here, in any order of sums and products; inf is possible here",
           kNoOrder)},
      {kProductOf, {1e30f, 1e30f, 1e-30f}, -1, absl::StrCat("; inf is possible here: ", kHalfWay)},
      {kProductOf,
       {1e30f, 1e30f, 1e-30f},
       NAN,
       absl::StrCat(
           "; nan is not possible here, in any order of sums and products; inf is possible here: ",
           kHalfWay)},
      {kProductOf,
       {1e30f, 1e30f, 1e-30f, 1e-30f},
       -1,
       absl::StrCat("; inf or nan is possible here: ", kHalfWay)},
      {kProductOf,
       {1e20f, 1e10f, 1e-30f, 1e-30f},
       NAN,
       "; nan is not possible here, in any order of sums and products"},
      // The overflow reaches a value computed from it; a single operation overflows.
      {"acc s: f32 = sum  for i in [0, N) { s += x[i] }  temp t: f32  t = s * 2.0  y = sqrt(abs(t))",
       {2e38f, 2e38f, -3e38f},
       -1,
       absl::StrCat("; inf is possible here: ", kHalfWay)},
      {"y = x[0] * x[0]", {3e38f}, 1, absl::StrCat("; inf is possible here", kNoOrder)},
  };
  for (const auto& c : kCases) {
    const std::string message(
        CheckEnclosed(ReferenceOf(c.body, c.x), Tensor::Of<float>({}, {c.got})).message());
    EXPECT_TRUE(c.message.empty() ? message.empty() : absl::EndsWith(message, c.message))
        << c.body << ": " << message;
  }
}

// A discrete step sees a quotient as it is written, every other use may see the product
// with the reciprocal: 41 * (1 / 41) is below 1.
TEST(Reference, StepsSeeQuotientsAsWritten) {
  const struct {
    const char* body;
    const char* want;
  } kCases[] = {
      {"y = x[0] / x[0]", "[0.999999940395355224609, 1]"},
      {"y = floor(x[0] / x[0])", "1"},
      {"y = where(x[0] / x[0] == 1.0, 1.0, 2.0)", "1"},
      {"y = f32(i64(x[0] / x[0]))", "1"},
      {"acc a: f32 = argmax  for i in [0, N) { a argmax= (x[i] / x[0], index(i)) }  y = f32(a)",
       "0"},
      {"y = floordiv(x[0] / x[0], 1.0)", "1"},
      // The quotient goes through tensors, and has both uses at once.
      {"temp t: f32  t = x[0] / x[0]  y = floor(t)", "1"},
      {"temp t: f32  t = x[0] / x[0]  y = floor(t) - t", "[0, 5.9604644775390625e-08]"},
      {"temp t: f32  t = x[0] / x[0]  temp u: f32  u = t * floor(t)  y = ceil(u) - u",
       "[0, 5.9604644775390625e-08]"},
      {"acc s: f32 = max  for i in [0, N) { s max= x[i] / x[0] }  y = floor(s) - s",
       "[0, 5.9604644775390625e-08]"},
      // The result of a step divides and selects; mod passes its operands on.
      {"y = floor(x[0] / x[0]) / x[0]", "0.0243902429938316345215"},
      {"y = mod(x[0] / x[0], 1.0)", "[-5.9604644775390625e-08, 2]"},
  };
  for (const auto& c : kCases) {
    const ReferenceTensor got = ReferenceOf(c.body, {41, 41});
    ASSERT_EQ(got.elements.size(), 1u) << c.body;
    EXPECT_EQ(ToString(got.elements[0]), c.want) << c.body;
  }
}

TEST(Reference, Limits) {
  const Data data = Draw(DType::kF32, 1, 0, 1);
  InterpreterOptions steps, bytes;
  steps.max_steps = 10;
  bytes.max_bytes = 1000;
  for (const InterpreterOptions& options : {steps, bytes}) {
    EXPECT_EQ(InterpretReference(ParseBody("f32", kSum), data.inputs, options).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

}  // namespace
}  // namespace nestor
