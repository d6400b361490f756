// Gradients against differences, to first and second order: of every macro op at its sample shapes,
// of every scalar op with a float result at points of its domain away from its kinks, and of the
// programs of gradient_programs.txt. Values worked out by hand are in gradient_traps_test.cc.
#include <cmath>
#include <fstream>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autodiff/gradient.h"
#include "gtest/gtest.h"
#include "macro_ops/library.h"
#include "re2/re2.h"
#include "tensor/binding.h"
#include "tests/gradient_testing.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

using Random = std::mt19937_64;

// ---- Macro ops ----

// Values in shuffled order on a grid, one for each argument and not symmetric, so that no two
// values or magnitudes are within the reach of the differences: max and its like are smooth there.
// Integers within their bound.
Tensor DrawArgument(DType type, const SampleArgument& arg, int number, Random& random) {
  std::vector<double> values(*NumElements(arg.shape));
  const double count = static_cast<double>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double place = (static_cast<double>(i) + 0.31 + 0.17 * number) / count;
    if (!IsFloat(type)) values[i] = static_cast<double>(random() % arg.bound.value_or(10));
    else values[i] = arg.bound ? place * static_cast<double>(*arg.bound) : 4 * place - 1.8;
  }
  std::shuffle(values.begin(), values.end(), random);
  return Tensor::Of(type, arg.shape, values);
}

// The op of a module at a sample, with type variables `type`, and its inputs.
struct Case {
  Op op;
  Values values;
  absl::flat_hash_map<std::string, Scalar> params;
};
absl::StatusOr<Case> MakeCase(const Module& module, const std::string& name, const Sample& sample,
                              DType variable, Random& random) {
  Case c;
  ArgumentSpecs specs;
  for (const SampleArgument& arg : sample.args) {
    DType type = variable;
    for (const ast::Argument& syntax : module.Syntax(name).args) {
      if (syntax.name == arg.name) type = TypeByName(syntax.type.text).value_or(type);
    }
    specs[arg.name] = {type, static_cast<int>(arg.shape.size())};
    c.values[arg.name] = DrawArgument(type, arg, static_cast<int>(c.values.size()), random);
  }
  absl::StatusOr<Op> op = module.Instantiate(name, specs);
  if (!op.ok()) return op.status();
  for (const auto& [param, literal] : sample.params) {
    if (op->FindParam(param) == nullptr) return absl::NotFoundError(param);
    c.params[param] = *ParseLiteral(literal, op->FindParam(param)->type);
  }
  c.op = *std::move(op);
  return c;
}

void CheckSample(const Module& module, const std::string& name, const Sample& sample) {
  Random random(3);
  const absl::StatusOr<Case> c = MakeCase(module, name, sample, DType::kF64, random);
  ASSERT_TRUE(c.ok()) << c.status();
  for (const auto& [arg, value] : c->values)
    ASSERT_LT(value.num_elements(), 1000) << arg << " is too large for differences";
  CheckBothOrders(Function(c->op, c->params), c->values, random);
}

std::string SampleText(const std::string& name, const Sample& sample) {
  std::string text = name;
  for (const SampleArgument& arg : sample.args)
    absl::StrAppend(&text, " ", arg.name, "=", ShapeText(arg.shape));
  for (const auto& [param, literal] : sample.params)
    absl::StrAppend(&text, " ", param, "=", literal);
  return text;
}

// Whether it maps floats to floats: then it has a gradient, perhaps 0.
bool IsDifferentiable(const std::string& name) {
  const absl::StatusOr<Op> op = MacroLibrary().Instantiate(name, {});
  return op.ok() && !FloatArguments(*op).empty() && !FloatResults(*op).empty();
}

TEST(Gradient, OfMacroOps) {
  for (const MacroOp& op : MacroOps()) {
    if (!IsDifferentiable(op.name)) continue;
    for (const Sample& sample : op.samples) {
      SCOPED_TRACE(SampleText(op.name, sample));
      CheckSample(MacroLibrary(), op.name, sample);
    }
  }
}

Tensor Converted(const Tensor& tensor, DType type) {
  if (!IsFloat(tensor.type())) return tensor;
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const char* element = static_cast<const char*>(tensor.data()) + i * ByteSize(tensor.type());
    values.push_back(Load(tensor.type(), element).ToDouble());
  }
  return Tensor::Of(type, tensor.shape(), values);
}

// The roundings that a value of the op's results may have gone through, to first order: the lengths
// of its reductions, and 4 for each elementwise node.
double CountSteps(const Op& op, const Values& values,
                  const absl::flat_hash_map<std::string, Scalar>& params) {
  RunInputs inputs;
  inputs.params = params;
  for (const Argument& arg : op.args) inputs.tensors[arg.name] = values.at(arg.name).view();
  const auto binding = Bind(SignatureOf(op), inputs);
  EXPECT_TRUE(binding.ok()) << binding.status();
  const std::vector<bool> live = Reachable(op.graph, op.ResultNodes());
  double steps = 1;
  for (int i = 0; i < op.graph.size(); ++i) {
    steps += live[i] && op.graph.As<Map>(NodeId{i}) != nullptr ? 4 : 0;
    const Reduce* reduce = op.graph.As<Reduce>(NodeId{i});
    if (!live[i] || reduce == nullptr || !binding.ok()) continue;
    const Dims extents =
        *EvaluateShape(op.graph.pool(), op.graph.shape(reduce->x), *binding, "a reduction");
    double length = 1;
    for (size_t axis = extents.size() - reduce->count; axis < extents.size(); ++axis)
      length *= static_cast<double>(extents[axis]);
    steps += length;
  }
  return steps;
}

// The gradient in the narrower types against the one in f64 at the same values: roundings times the
// precision of the type times the largest magnitudes.
void CheckNarrow(const MacroOp& macro, const Sample& sample, DType type) {
  Random random(3), again(3);
  const absl::StatusOr<Case> narrow = MakeCase(MacroLibrary(), macro.name, sample, type, random);
  const absl::StatusOr<Case> wide =
      MakeCase(MacroLibrary(), macro.name, sample, DType::kF64, again);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  ASSERT_TRUE(wide.ok()) << wide.status();
  // The same $params, defaults included: as the narrow type rounds them.
  absl::flat_hash_map<std::string, Scalar> wide_params = narrow->params;
  for (const ParamInfo& param : narrow->op.params) {
    if (param.value) wide_params.emplace(param.name, *param.value);
  }
  for (auto& [name, value] : wide_params) {
    if (IsFloat(value.type))
      value = Scalar::Float(wide->op.FindParam(name)->type, value.ToDouble());
  }
  Values wide_values;
  for (const auto& [name, value] : narrow->values)
    wide_values[name] = Converted(value, DType::kF64);
  const auto narrow_gradient = Differentiable::Make(Function(narrow->op, narrow->params));
  const auto wide_gradient = Differentiable::Make(Function(wide->op, wide_params));
  ASSERT_TRUE(narrow_gradient.ok() && wide_gradient.ok())
      << narrow_gradient.status() << wide_gradient.status();
  const absl::StatusOr<Values> results = wide_gradient->function()(wide_values);
  ASSERT_TRUE(results.ok()) << results.status();
  Values adjoints, wide_adjoints;
  for (const std::string& name : wide_gradient->of()) {
    adjoints[name] = Converted(RandomTensor(results->at(name).shape(), random), type);
    wide_adjoints[name] = Converted(adjoints[name], DType::kF64);
  }
  const absl::StatusOr<Values> args = narrow_gradient->GradientArguments(narrow->values, adjoints);
  const absl::StatusOr<Values> got = (*narrow_gradient)(narrow->values, adjoints),
                               want = (*wide_gradient)(wide_values, wide_adjoints);
  ASSERT_TRUE(args.ok() && got.ok() && want.ok()) << got.status() << want.status();
  double largest = 1;
  for (const auto& [name, tensor] : *want) largest = std::max(largest, Largest(tensor));
  const double eps = type == DType::kF32 ? 0x1p-23 : type == DType::kF16 ? 0x1p-10 : 0x1p-7;
  const double tolerance =
      CountSteps(narrow_gradient->report().op, *args, narrow->params) * eps * largest;
  for (const auto& [name, tensor] : *want) {
    EXPECT_EQ(got->at(name).type(), type) << name;
    const Tensor close = Converted(got->at(name), DType::kF64);
    ASSERT_EQ(ShapeText(close.shape()), ShapeText(tensor.shape())) << name;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const double x = close.values<double>()[i], y = tensor.values<double>()[i];
      // (adam's default $beta2 is 1 in bf16, and its step 0 / 0 in any type.)
      const bool both_nan = std::isnan(x) && std::isnan(y);
      EXPECT_TRUE(both_nan || std::fabs(x - y) <= tolerance)
          << "the gradient by " << name << "[" << i << "] is " << x << ", in f64 " << y
          << ", within " << tolerance;
    }
  }
}

TEST(Gradient, OfMacroOpsInNarrowTypes) {
  for (const MacroOp& op : MacroOps()) {
    if (!IsDifferentiable(op.name)) continue;
    for (const Sample& sample : op.samples) {
      for (DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
        SCOPED_TRACE(absl::StrCat(SampleText(op.name, sample), " ", Name(type)));
        CheckNarrow(op, sample, type);
      }
    }
  }
}

// ---- Scalar ops ----

// No two are equal, whole, or near a whole multiple of one another.
constexpr double kPoints[] = {0.31, 0.73, 1.47, 2.63, 3.19, -0.37, -0.83, -1.29, -2.57};

TEST(Gradient, OfScalarOps) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    const auto result = ResultTypeOf(row.op, DType::kF64, DType::kF64);
    // Casts are in the table below.
    if (!result || !IsFloat(*result) || row.result == ResultType::kTarget) continue;
    SCOPED_TRACE(row.name);
    const bool choice = row.result == ResultType::kChoice;
    const char* const kSignatures[] = {"a: f64[]", "a: f64[], b: f64[]",
                                       "a: f64[], b: f64[], c: f64[]"};
    const char* const kCalls[] = {"(a)", "(a, b)", "(a, b, c)"};
    const std::string text =
        absl::StrCat("op f(", choice ? "a: bool[], b: f64[], c: f64[]" : kSignatures[row.arity - 1],
                     ") -> (y) { y = ", row.name, kCalls[row.arity - 1], " }");
    const absl::StatusOr<Op> op = ParseOp(text);
    ASSERT_TRUE(op.ok()) << op.status() << "\n" << text;
    const Function function(*op, {});
    Random random(9);
    int checked = 0;
    for (int number = 0; number < 60; ++number) {
      Values values;
      std::set<size_t> used;
      std::string point;
      for (const Argument& arg : op->args) {
        size_t pick = random() % std::size(kPoints);
        while (!used.insert(pick).second) pick = random() % std::size(kPoints);
        const double x = row.arity == 1 ? kPoints[number % std::size(kPoints)] : kPoints[pick];
        values[arg.name] = Tensor::Of(
            arg.type, {}, {arg.type == DType::kBool ? static_cast<double>(number % 2) : x});
        absl::StrAppend(&point, arg.name, " = ", x, " ");
      }
      const absl::StatusOr<Values> y = function(values);
      ASSERT_TRUE(y.ok()) << y.status();
      if (!std::isfinite(y->at("y").values<double>()[0])) continue;
      // Not smooth in b.
      if (absl::string_view(row.name) == "pow" && values["a"].values<double>()[0] < 0) continue;
      SCOPED_TRACE(point);
      CheckBothOrders(function, values, random);
      if (++checked >= 12 || (row.arity == 1 && number + 1 == std::size(kPoints))) break;
      if (testing::Test::HasFailure()) break;
    }
    EXPECT_GE(checked, 5) << "too few points in the domain";
  }
}

// ---- Programs ----

struct Program {
  std::string title, text;
  Sample sample;
};
std::vector<Program> LoadPrograms() {
  std::vector<Program> programs;
  std::ifstream file("tests/gradient_programs.txt");
  EXPECT_TRUE(file.good());
  std::string text;
  while (std::getline(file, text)) {
    absl::string_view line = text;
    if (absl::ConsumePrefix(&line, "=== ")) {
      programs.push_back({std::string(line), "", {}});
    } else if (absl::ConsumePrefix(&line, "--- ")) {
      for (absl::string_view view : absl::StrSplit(line, ' ')) {
        const std::string word(view);
        std::string name, dims, bound;
        EXPECT_TRUE(RE2::FullMatch(word, R"((\w+)=\[([\d,]*)\](?:<(\d+))?)", &name, &dims, &bound))
            << word;
        SampleArgument arg{name, {}, absl::nullopt};
        for (absl::string_view dim : absl::StrSplit(dims, ',', absl::SkipEmpty())) {
          arg.shape.emplace_back();
          EXPECT_TRUE(absl::SimpleAtoi(dim, &arg.shape.back()));
        }
        int64_t limit;
        if (absl::SimpleAtoi(bound, &limit)) arg.bound = limit;
        programs.back().sample.args.push_back(std::move(arg));
      }
    } else if (!programs.empty()) {
      absl::StrAppend(&programs.back().text, line, "\n");
    }
  }
  return programs;
}

TEST(Gradient, OfPrograms) {
  const std::vector<Program> programs = LoadPrograms();
  EXPECT_GE(programs.size(), 40u);
  for (const Program& program : programs) {
    SCOPED_TRACE(program.title);
    const absl::StatusOr<Module> module = Module::Parse(program.text, &MacroLibrary());
    EXPECT_TRUE(module.ok()) << module.status();
    if (module.ok()) CheckSample(*module, "f", program.sample);
  }
}

// ---- Texts ----

TEST(Gradient, LinearMacroOpsHoldNoMulz) {
  for (const char* name : {"matmul", "linear", "conv2d", "avg_pool2d", "attention"}) {
    const absl::StatusOr<Op> op = MacroLibrary().Instantiate(name, {});
    ASSERT_TRUE(op.ok()) << op.status();
    const absl::StatusOr<GradientResult> gradient = Gradient(*op);
    ASSERT_TRUE(gradient.ok()) << gradient.status();
    EXPECT_FALSE(absl::StrContains(PrintOp(gradient->op), "mulz")) << PrintOp(gradient->op);
  }
}

// An empty request is every float result by every float argument, and the choice is deterministic.
TEST(Gradient, Defaults) {
  for (const MacroOp& macro : MacroOps()) {
    SCOPED_TRACE(macro.name);
    const absl::StatusOr<Op> op = MacroLibrary().Instantiate(macro.name, {});
    ASSERT_TRUE(op.ok()) << op.status();
    const absl::StatusOr<GradientResult> by_default = Gradient(*op);
    const absl::StatusOr<GradientResult> in_full =
        Gradient(*op, {FloatResults(*op), FloatArguments(*op), absl::nullopt});
    if (!IsDifferentiable(macro.name)) {
      EXPECT_FALSE(by_default.ok());
      continue;
    }
    ASSERT_TRUE(by_default.ok()) << by_default.status();
    ASSERT_TRUE(in_full.ok()) << in_full.status();
    EXPECT_EQ(by_default->op.name, macro.name + "_grad");
    EXPECT_EQ(PrintOp(by_default->op), PrintOp(in_full->op));
    EXPECT_EQ(by_default->mask, in_full->mask);
    EXPECT_EQ(by_default->results, in_full->results);
    const std::set<std::string> mask(by_default->mask.begin(), by_default->mask.end());
    for (const std::string& name : by_default->shapes)
      EXPECT_TRUE(mask.count(name)) << name << " is a shape and not in the mask";
    // Prescribing what it chose has the same effect.
    const std::set<std::string> shapes(by_default->shapes.begin(), by_default->shapes.end());
    std::vector<std::string> given;
    for (const std::string& name : by_default->mask) {
      if (!shapes.count(name)) given.push_back(name);
    }
    for (const std::string& name : FloatResults(*op)) given.push_back("g_" + name);
    const absl::StatusOr<GradientResult> prescribed = Gradient(*op, {{}, {}, given});
    ASSERT_TRUE(prescribed.ok()) << prescribed.status();
    EXPECT_EQ(PrintOp(by_default->op), PrintOp(prescribed->op));
  }
}

}  // namespace
}  // namespace nestor
