// The fast judge's law, against the oracle: each bound of each element, where it is known,
// lies in the oracle's enclosure. On every scalar op with sets of every kind for operands, on
// random programs and their gradients, and on the macro library and its gradients.
//
// NESTOR_RANDOM_SEED and NESTOR_RANDOM_COUNT in the environment choose other programs.
#include "check/fast_judge.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "autodiff/gradient.h"
#include "check/program_generator.h"
#include "check/random.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "interp/reference.h"
#include "loop_ir/lower.h"
#include "uops/module.h"
#include "uops/print.h"

namespace nestor {
namespace {

int64_t Setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

std::string InputsText(const RunInputs& inputs) {
  std::string text;
  for (const auto& [name, extent] : inputs.dims) absl::StrAppend(&text, name, " = ", extent, "\n");
  for (const auto& [name, value] : inputs.params) absl::StrAppend(&text, name, " = ", LiteralText(value), "\n");
  for (const auto& [name, view] : inputs.tensors) {
    absl::StrAppend(&text, name, ": ", Name(view.type), ShapeText(view.shape), " = ", ToString(view), "\n");
  }
  return text;
}

struct Counts {
  int64_t programs = 0, without_bounds = 0, refused = 0, elements = 0, known = 0, wide = 0;
};

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
  return out << counts.programs << " programs, " << counts.without_bounds << " without bounds, " << counts.refused
             << " runs refused, of " << counts.elements << " elements " << counts.known << " known, " << counts.wide
             << " as more than one value";
}

bool IsKnown(double low, double high) {
  const bool ordered = low < high || (low == high && std::signbit(low) >= std::signbit(high));
  return std::isfinite(low) && std::isfinite(high) && ordered;
}

// The ends of a known set are values of the type.
std::string OutsideText(const ReferenceTensor& want, const Tensor& low, const Tensor& high, Counts& counts) {
  for (size_t i = 0; i < want.elements.size(); ++i) {
    const double l = low.values<double>()[i], h = high.values<double>()[i];
    ++counts.elements;
    if (!IsKnown(l, h)) continue;
    ++counts.known;
    counts.wide += l < h;
    for (const double end : {l, h}) {
      const Scalar value = Scalar::Float(want.type, end);
      if (IsFloat(want.type) && value.ToDouble() != end) return absl::StrCat("at ", i, ": ", end, " is no value");
      if (Encloses(want.elements[i], value)) continue;
      return absl::StrCat("at ", i, ": [", LiteralText(Scalar::Float(DType::kF64, l)), ", ",
                          LiteralText(Scalar::Float(DType::kF64, h)), "] is not within ", ToString(want.elements[i]));
    }
  }
  return "";
}

// "", or which bound is not in its enclosure.
std::string Violation(const Op& op, FastJudge& judge, const RunInputs& inputs, Counts& counts) {
  InterpreterOptions options;
  options.max_steps = 10000000;
  const auto want = InterpretReference(Lower(op), inputs, options);
  const auto bounds = judge.Bounds(inputs);
  if (!want.ok() || !bounds.ok()) {
    ++counts.refused;
    // The oracle may fear an index that a set does not decide.
    const bool undecided = !want.ok() && absl::StrContains(want.status().message(), "undecided");
    return want.ok() == bounds.ok() || undecided ? "" : absl::StrCat(want.status().ToString(), " against ", bounds.status().ToString());
  }
  for (size_t i = 0; i < want->size(); ++i) {
    const std::string text = OutsideText((*want)[i], (*bounds)[2 * i], (*bounds)[2 * i + 1], counts);
    if (!text.empty()) return absl::StrCat("result ", op.results[i].name, " ", text);
  }
  return "";
}

// ---- Random programs

std::string ViolationOfRandom(const Op& op, uint64_t seed, const InputOptions& options, Counts& counts) {
  ++counts.programs;
  auto judge = FastJudge::Create(op);
  if (!judge.ok()) {
    ++counts.without_bounds;
    return absl::IsUnimplemented(judge.status()) ? "" : judge.status().ToString();
  }
  for (uint64_t draw = 0; draw < 4; ++draw) {
    const RandomInputsResult made = RandomInputs(op, 4 * seed + draw, options);
    const std::string violation = Violation(op, *judge, made.inputs, counts);
    if (!violation.empty()) return absl::StrCat(violation, "\n", InputsText(made.inputs));
  }
  return "";
}

// The same in other types: f64 has no bounds.
absl::optional<Op> With(const Op& op, const char* f64, const char* f32) {
  const std::string text = absl::StrReplaceAll(PrintOp(op), {{"f64", f64}, {"f32", f32}});
  absl::StatusOr<Op> parsed = ParseOp(text);
  if (!parsed.ok()) return absl::nullopt;
  return *std::move(parsed);
}

using Derived = absl::optional<Op> (*)(const Op&);

absl::optional<Op> Itself(const Op& op) { return op; }

absl::optional<Op> InF32(const Op& op) { return With(op, "f32", "f32"); }
absl::optional<Op> InHalf(const Op& op) { return With(op, "f16", "bf16"); }

absl::optional<Op> GradientOf(const Op& op) {
  const auto gradient = Gradient(op);
  if (!gradient.ok()) return absl::nullopt;
  return InF32(gradient->op);
}

void TestPrograms(int64_t count, const GeneratorOptions& base, const InputOptions& inputs, Derived derived = Itself) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1);
  count = Setting("NESTOR_RANDOM_COUNT", count);
  Counts counts;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    GeneratorOptions options = base;
    options.nodes = 1 + static_cast<int>(seed % base.nodes);
    const absl::optional<Op> op = derived(RandomOp(seed, options));
    if (!op) continue;
    EXPECT_EQ(ViolationOfRandom(*op, seed, inputs, counts), "") << "seed " << seed << "\n" << PrintOp(*op);
  }
  std::cerr << counts << "\n";
}

TEST(FastJudge, BoundsOfRandomPrograms) {
  GeneratorOptions options;
  options.nodes = 12;
  TestPrograms(150, options, {});
}

TEST(FastJudge, BoundsOfRandomFloatPrograms) {
  GeneratorOptions options;
  options.nodes = 10;
  options.floats_only = true;
  TestPrograms(150, options, {}, InF32);
  TestPrograms(100, options, {}, InHalf);
}

TEST(FastJudge, BoundsOfModerateFloatPrograms) {
  GeneratorOptions options;
  options.nodes = 10;
  options.smooth = true;
  InputOptions inputs;
  inputs.moderate = true;
  TestPrograms(150, options, inputs, InF32);
  TestPrograms(100, options, inputs, InHalf);
}

TEST(FastJudge, BoundsOfGradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestPrograms(60, options, {}, GradientOf);
  options.smooth = true;
  TestPrograms(60, options, {}, GradientOf);
}

// ---- Scalar ops

// Values where rules change: zeros, ones, subnormals, powers of two and their neighbours, large ones.
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
    case 6: return sign * (random.Chance(50) ? FormatOf(type).Largest() : std::numeric_limits<double>::infinity());
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
const char* const kOperandForms[] = {"@[i]", "@[i] * c[i]", "exp(@[i] * c[i])", "sum[k](where(k == 0, @[i], c[i] * c[i]))"};

std::string OperandText(const char* form, char name) {
  std::string text(form);
  text.replace(text.find('@'), 1, 1, name);
  return text;
}

std::string RowProgram(const ScalarOpRow& row, const char* form, DType type) {
  std::vector<std::string> args;
  for (int i = 0; i < row.arity; ++i) args.push_back(OperandText(form, i == 0 ? 'a' : 'b'));
  if (row.op == ScalarOp::kSelect) args[0] = absl::StrCat(OperandText(form, 'b'), " < ", OperandText(form, 'a'));
  std::string call = absl::StrCat(row.op == ScalarOp::kCast ? "i32" : row.name, "(");
  for (size_t i = 0; i < args.size(); ++i) absl::StrAppend(&call, i > 0 ? ", " : "", args[i]);
  const std::string t(Name(type));
  return absl::StrCat("op f(a: ", t, "[N], b: ", t, "[N], c: ", t, "[N]) -> (y) { y[i] = ", call,
                      absl::StrContains(form, "[k]") ? ") where k < 3 }" : ") }");
}

TEST(FastJudge, BoundsOfScalarOps) {
  Counts counts;
  Random random(Setting("NESTOR_RANDOM_SEED", 1));
  const int64_t size = Setting("NESTOR_RANDOM_COUNT", 300);
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
        ++counts.programs;
        EXPECT_EQ(Violation(*op, *judge, inputs, counts), "") << text;
      }
    }
  }
  std::cerr << counts << "\n";
}

}  // namespace
}  // namespace nestor
