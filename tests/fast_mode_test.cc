// The limits of what `fast` may change (SEMANTICS 5): compiled code against the enclosures of the
// reference mode, and, where nothing may change, against the bits of `strict`.
//
// Quotients that reach a discrete step are drawn at exact ties, where a = k * b rounds to a
// neighbour of a multiple, so that the last bit of a / b decides. Sums and products are
// drawn near overflow, where the order decides between a number, inf and NaN.
#include <cmath>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "interp/enclosure.h"
#include "interp/reference.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"
#include "uops/dtype.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};

Op ParseFor(absl::string_view text, DType type) {
  const auto op = Parse(absl::StrReplaceAll(
      text, {{"T[", absl::StrCat(Name(type), "[")}, {"T(", absl::StrCat(Name(type), "(")}}));
  NESTOR_CHECK(op.ok(), op.status().ToString());
  return *op;
}

CompiledVariants Compiled(const loop::Program& program) {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  auto compiled = CompiledVariants::Compile(program, options);
  NESTOR_CHECK(compiled.ok(), compiled.status().ToString());
  return *std::move(compiled);
}

struct Drawn {
  std::map<std::string, Tensor> tensors;
  RunInputs inputs;

  void Add(const std::string& name, Tensor tensor) {
    tensors[name] = std::move(tensor);
    inputs.tensors[name] = tensors[name].view();
  }
};

// ---- Quotients

struct Quotients {
  const char* text;
  // No sum or other quotient is involved: results have the bits of `strict`, and each enclosure
  // has one value.
  bool exact = true;
  bool of_gradient = false;
};

constexpr Quotients kQuotients[] = {
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = floor(a[i] / b) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = ceil(a[i] / b) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = sign(a[i] / b - 1.0) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = i32(a[i] / b) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = u8(min(max(round(a[i] / b) + 128.0, 0.0), 255.0)) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = round(a[i] / b / 2.0) * b }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = where(a[i] / b >= 1.0, 1.0, T(0)) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = a[i] / b == floor(a[i] / b) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y = argmax[i](a[i] / b) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y = argmin[i](abs(a[i] / b)) }"},
    {"op f(a: T[N], b: T[]) -> (y) { t[i] = a[i] / b; m = max[k](t[k]); y[i] = t[i] == m }"},
    {"op f(a: T[N], b: T[]) -> (y, m) { m = max[k](a[k] / b); y[i] = m == a[i] / b }", false},
    // The element that a quotient names.
    {"op f(a: T[N], b: T[]) -> (y) { j[i] = i64(a[i] / b); y[i] = a[j[i] | 0.5] }"},
    {"op f(a: T[N], b: T[]) -> (y) { j[i] = i64(a[i] / b); y[i] = where(j[i] == 1, a[i], b) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = mod(a[i], b) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = floordiv(a[i], b) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = mod(a[i], b) }", true, /*of_gradient=*/true},
    // A divisor for each row, and through a tensor; counts of decisions.
    {"op f(a: T[N], c: T[M]) -> (y) { y[m, i] = floor(a[i] / c[m]) }"},
    {"op f(a: T[N], b: T[]) -> (y) { y = sum[i](i64(floor(a[i] / b))) }"},
    {"op f(a: T[N], b: T[]) -> (y) { t[i] = a[i] / b; u[i] = max(t[i], -t[i]); y[i] = floor(u[i]) }"},
    // The same quotient where it decides and where it does not.
    {"op f(a: T[N], b: T[]) -> (y, z) { z[i] = a[i] / b; y[i] = floor(z[i]) }", false},
    {"op f(a: T[N], b: T[]) -> (y, z) { t[i] = exp(-(a[i] / b)); y[i] = t[i] < 0.5; z[i] = t[i] * b }",
     false},
    {"op f(a: T[N], b: T[]) -> (y) { y[i] = a[i] / b - floor(a[i] / b) }", false},
    {"op f(a: T[N], b: T[]) -> (y) { s = sum[k](a[k] / b); y[i] = floor(a[i] / s) }", false},
};

constexpr double kDivisors[] = {41, 49, 3, 7, 10, 0.1, 0.3, 1.0 / 255, 47, -41, 1e-3, 6.1};
constexpr int64_t kLength = 67;

// Multiples of the divisor and their neighbours, halves of them, and anything.
Scalar DrawDividend(DType type, const Scalar& divisor, std::mt19937_64& random) {
  const double b = divisor.ToDouble();
  const double multiple = static_cast<double>(static_cast<int64_t>(random() % 140) - 20);
  switch (random() % 4) {
    case 0: return Scalar::Float(type, multiple * b / 2);
    case 1: return Scalar::Float(type, (static_cast<double>(random() % 4096) / 16 - 64) * b);
    default: break;
  }
  const Scalar tie = Scalar::Float(type, multiple * b);
  const int64_t step =
      random() % 2 == 0 || tie.ToDouble() == 0 ? 0 : static_cast<int64_t>(random() % 3) - 1;
  return Scalar{type, tie.bits + static_cast<Bits>(step)}.Canonical();
}

Tensor TensorOf(DType type, const Dims& shape, absl::Span<const Scalar> values) {
  std::vector<double> numbers;
  for (const Scalar& value : values) numbers.push_back(value.ToDouble());
  return Tensor::Of(type, shape, numbers);
}

// b divides, c divides by rows; other arguments than these and `a` are adjoints, of ones.
Drawn DrawQuotients(const Op& op, DType type, int seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  const Scalar divisor = Scalar::Float(type, kDivisors[seed % std::size(kDivisors)]);
  std::vector<Scalar> dividends, divisors;
  for (int64_t i = 0; i < kLength; ++i) dividends.push_back(DrawDividend(type, divisor, random));
  dividends[3] = divisor;
  for (double b : kDivisors) divisors.push_back(Scalar::Float(type, b));
  Drawn drawn;
  for (const Argument& arg : op.args) {
    if (arg.name == "a") drawn.Add("a", TensorOf(type, {kLength}, dividends));
    else if (arg.name == "b") drawn.Add("b", TensorOf(type, {}, {divisor}));
    else if (arg.name == "c")
      drawn.Add("c", TensorOf(type, {static_cast<int64_t>(divisors.size())}, divisors));
    else
      drawn.Add(arg.name,
                TensorOf(type, {kLength}, std::vector<Scalar>(kLength, Scalar::Float(type, 1))));
  }
  return drawn;
}

Finding CheckExact(const CompiledVariants& compiled, const RunInputs& inputs,
                   const std::vector<ReferenceTensor>& bounds) {
  for (const ReferenceTensor& result : bounds) {
    for (const Enclosure& e : result.elements) {
      if (!OnlyMember(result.type, e))
        return absl::StrCat("the reference leaves open: ", ToString(e));
    }
  }
  const Results want = Run(compiled.unfused(), inputs);
  Counts counts;
  for (const CompiledVariants::Variant& variant : compiled.variants()) {
    const Finding finding =
        Compare(want, RunJit(*variant.executable, inputs), Describe(variant.options, {}), counts);
    if (finding) return finding;
  }
  return absl::nullopt;
}

Finding CheckQuotients(const Quotients& quotients, const Op& op, DType type) {
  const CompiledVariants compiled = Compiled(Lower(op));
  const JitRunOptions runs[] = {{}};
  for (int seed = 1; seed <= 24; ++seed) {
    const Drawn drawn = DrawQuotients(op, type, seed);
    const auto bounds = InterpretReference(compiled.unfused(), drawn.inputs);
    if (!bounds.ok()) return bounds.status().ToString();
    Counts counts;
    Finding finding = quotients.exact ? CheckExact(compiled, drawn.inputs, *bounds) : absl::nullopt;
    if (!finding) finding = compiled.Check(drawn.inputs, runs, /*bounded=*/true, counts);
    if (finding) return absl::StrCat(*finding, "\nseed ", seed, "\n", InputsText(drawn.inputs));
  }
  return absl::nullopt;
}

TEST(FastMode, KeepsQuotientsThatDecide) {
  for (const Quotients& quotients : kQuotients) {
    for (DType type : kFloats) {
      Op op = ParseFor(quotients.text, type);
      if (quotients.of_gradient) op = Gradient(op).value().op;
      const Finding finding = CheckQuotients(quotients, op, type);
      EXPECT_FALSE(finding.has_value()) << Name(type) << ": " << PrintOp(op) << "\n" << *finding;
    }
  }
}

// ---- Overflow

constexpr const char* kOverflowing[] = {
    "op f(x: T[M, N]) -> (y) { y[i] = sum[k](x[i, k]) }",
    "op f(x: T[M, N]) -> (y) { y[k] = sum[i](x[i, k]) }",
    "op f(x: T[M, N]) -> (y) { y = sum[i, k](x[i, k]) }",
    "op f(x: T[M, N]) -> (y) { y[i] = sum[k](x[i, k] * x[0, k]) }",
    "op f(x: T[M, N]) -> (y) { y[i] = prod[k](x[i, k]) }",
    "op f(x: T[M, N]) -> (y) { y = prod[i, k](x[i, k]) }",
    "op f(x: T[M, N]) -> (y) { s[i] = sum[k](x[i, k]); y[i, k] = x[i, k] - s[i] * 0.5 }",
};

// Terms have one kind for each seed: large with alternating signs, which cancel in order; large
// with one sign; eighths; large ones and their inverses in turn; all kinds. In three kinds most
// terms are small.
Scalar DrawNearOverflow(DType type, int kind, int64_t i, std::mt19937_64& random) {
  const double largest = static_cast<double>(FormatOf(type).Largest()), root = std::sqrt(largest);
  const double sign = random() % 2 == 0 ? 1 : -1,
               unit = 0.5 + static_cast<double>(random() % 512) / 1024;
  const bool even = i % 2 == 0;
  if (kind == 0) return Scalar::Float(type, (even ? 1 : -1) * (0.6 + unit / 10) * largest);
  if (kind == 3) return Scalar::Float(type, even ? unit * largest : 1 / (unit * largest));
  if (random() % 4 != 0) return Scalar::Float(type, sign * unit);
  const double specials[] = {largest, root, 1 / root, 1 / largest, 0, INFINITY};
  switch (kind) {
    case 1: return Scalar::Float(type, unit * largest);
    case 2: return Scalar::Float(type, sign * unit * largest / 8);
    default: return Scalar::Float(type, sign * unit * specials[random() % std::size(specials)]);
  }
}

Tensor DrawTerms(DType type, int seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  constexpr int64_t kLengths[] = {3, 8, 16, 33, 67};
  const Dims shape = {3, kLengths[seed % 5]};
  std::vector<Scalar> values;
  for (int64_t i = 0; i < 3 * shape[1]; ++i)
    values.push_back(DrawNearOverflow(type, seed / 5 % 5, i, random));
  return TensorOf(type, shape, values);
}

// The number of elements that are finite as written and not finite in `got`.
int CountOverflows(const Results& want, const Results& got) {
  int overflows = 0;
  Dims index((*want)[0].shape().size(), 0);
  do {
    const bool finite = std::isfinite(At((*want)[0], index).ToDouble());
    overflows += finite && !std::isfinite(At((*got)[0], index).ToDouble());
  } while (NextIndex((*want)[0].shape(), absl::MakeSpan(index)));
  return overflows;
}

Finding CheckOverflow(const CompiledVariants& compiled, DType type, int& overflows) {
  const JitRunOptions runs[] = {{}};
  for (int seed = 0; seed < 100; ++seed) {
    Drawn drawn;
    drawn.Add("x", DrawTerms(type, seed));
    Counts counts;
    const Finding finding = compiled.Check(drawn.inputs, runs, /*bounded=*/true, counts);
    if (finding) return absl::StrCat(*finding, "\nseed ", seed, "\n", InputsText(drawn.inputs));
    const Results want = Run(compiled.unfused(), drawn.inputs);
    for (const auto& variant : compiled.variants())
      overflows += CountOverflows(want, RunJit(*variant.executable, drawn.inputs));
  }
  return absl::nullopt;
}

TEST(FastMode, OverflowsHalfWayOnlyWhereAnOrderDoes) {
  int overflows = 0;
  for (const char* text : kOverflowing) {
    for (DType type : kFloats) {
      const Finding finding = CheckOverflow(Compiled(Lower(ParseFor(text, type))), type, overflows);
      EXPECT_FALSE(finding.has_value()) << Name(type) << ": " << text << "\n" << *finding;
    }
  }
  std::cerr << overflows << " elements overflow in lanes alone\n";
  EXPECT_GT(overflows, 100);
}

// ---- Gradients of extrema

// Of results in the order of the signature. `values` has tensors besides those that are needed.
std::vector<Tensor> RunFast(const Op& op, const Drawn& values) {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  const auto executable = jit::Compile(Lower(op), options);
  NESTOR_CHECK(executable.ok(), executable.status().ToString());
  RunInputs inputs;
  for (const Argument& arg : op.args) inputs.tensors[arg.name] = values.inputs.tensors.at(arg.name);
  auto results = (*executable)->RunByName(inputs, nullptr);
  NESTOR_CHECK(results.ok(), results.status().ToString());
  return *std::move(results);
}

// The gradient may round the values in another way than the op: its result, if it were given, would
// be none of them, and the adjoint of its row would go nowhere.
TEST(FastMode, EachExtremumHandsItsAdjointOn) {
  constexpr const char* kBodies[] = {
      "y[i] = max[j](x[i, j] / s[i])",
      "y[i] = min[j](x[i, j] / 3.0)",
      "y[i] = max[j](x[i, j + 1] * w[j] + b[j] * w[j])",
      "y[i] = max[j](x[i, j] / sum[k](abs(x[i, k])))",
      "y[i] = min[j]((x[i, j] - s[i]) / sqrt(abs(w[j]) + 1e-5))",
      "t[i, j] = x[i, j] / s[i]; y[i]: T[N] max= t[i, j]",
      "y[i] = max[j](exp(x[i, j]) * w[j])",
  };
  constexpr int64_t kRows = 33, kColumns = 70;
  for (DType type : {DType::kF32, DType::kF64}) {
    for (const char* body : kBodies) {
      const Op op = ParseFor(
          absl::StrCat("op f(x: T[N, M], s: T[N], w: T[M], b: T[M]) -> (y) { ", body, " }"), type);
      const auto gradient = Gradient(op, {{}, {"x"}, {}});
      ASSERT_TRUE(gradient.ok()) << gradient.status() << "\n" << body;
      std::mt19937_64 random(3);
      Drawn values;
      values.Add("x", DrawTensor(type, {kRows, kColumns}, random, ValueKind::kModerate));
      values.Add("s", DrawTensor(type, {kRows}, random, ValueKind::kModerate));
      values.Add("g_y", Tensor::Of(type, {kRows}, std::vector<double>(kRows, 1.0)));
      for (const char* name : {"w", "b"})
        values.Add(name, DrawTensor(type, {kColumns}, random, ValueKind::kModerate));
      values.Add("y", RunFast(op, values)[0]);
      const Tensor g_x = std::move(RunFast(gradient->op, values)[0]);
      for (int64_t row = 0; row < kRows; ++row) {
        int attained = 0;
        for (int64_t column = 0; column < kColumns; ++column) {
          const char* element =
              static_cast<const char*>(g_x.data()) + (row * kColumns + column) * ByteSize(type);
          attained += Load(type, element).ToDouble() != 0;
        }
        EXPECT_GT(attained, 0) << body << " of " << Name(type) << ", row " << row;
      }
    }
  }
}

}  // namespace
}  // namespace nestor
