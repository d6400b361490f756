// Gradients, in three ways:
//
//   - every macro op at its sample shapes, first and second order, against central differences;
//   - every scalar op with a float result likewise, at points of its domain away from its kinks;
//   - the law's traps (SEMANTICS 4), as a table of programs with values worked out by hand.
//
// Differences are taken in f64 and extrapolated (Richardson: (4 D(h/2) - D(h)) / 3 has an error of
// order h^4). A second derivative of an op is a gradient of its gradient op, whose arguments may
// hold results of the op: those depend on the op's inputs in turn, so the total is
//
//   d<v, G(g, x, y(x))>/dx  =  G's gradient by x  +  the op's gradient, at the adjoint
//                              that is G's gradient by y
//
// and this total is equal to differences of G.
#include <cmath>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autodiff/gradient.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "macro_ops/library.h"
#include "re2/re2.h"
#include "tensor/binding.h"
#include "uops/call.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

using Values = std::map<std::string, Tensor>;
using Random = std::mt19937_64;

constexpr double kStep = 0x1p-10;

std::vector<std::string> FloatArguments(const Op& op) {
  std::vector<std::string> names;
  for (const Argument& arg : op.args) {
    if (IsFloat(arg.type) && !arg.shape_only) names.push_back(arg.name);
  }
  return names;
}

std::vector<std::string> FloatResults(const Op& op) {
  std::vector<std::string> names;
  for (const Result& result : op.results) {
    if (IsFloat(op.graph.type(result.node))) names.push_back(result.name);
  }
  return names;
}

// An op that can be run, with fixed $params.
class Function {
 public:
  Function(Op op, absl::flat_hash_map<std::string, Scalar> params)
      : op_(std::move(op)), program_(Lower(op_)), params_(std::move(params)) {}

  const Op& op() const { return op_; }
  const absl::flat_hash_map<std::string, Scalar>& params() const { return params_; }

  // Its arguments are among `values`; the results by name.
  absl::StatusOr<Values> operator()(const Values& values) const {
    RunInputs inputs;
    for (const Argument& arg : op_.args) {
      const auto value = values.find(arg.name);
      if (value == values.end())
        return absl::InternalError(absl::StrCat("no value for ", arg.name));
      inputs.tensors[arg.name] = value->second.view();
    }
    for (const ParamInfo& param : op_.params) {
      const auto value = params_.find(param.name);
      if (value != params_.end()) inputs.params[param.name] = value->second;
    }
    absl::StatusOr<std::vector<Tensor>> results = Interpret(program_, inputs);
    if (!results.ok()) return results.status();
    Values named;
    for (size_t i = 0; i < op_.results.size(); ++i)
      named[op_.results[i].name] = std::move((*results)[i]);
    return named;
  }

 private:
  Op op_;
  loop::Program program_;
  absl::flat_hash_map<std::string, Scalar> params_;
};

// Every gradient op prints in the notation and reads back, and its signature is that of its report.
void ExpectWellFormed(const Op& op, const GradientRequest& request,
                      const GradientResult& gradient) {
  const std::string text = PrintOp(gradient.op);
  const absl::StatusOr<Op> parsed = ParseOp(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_TRUE(SameOp(*parsed, gradient.op)) << text << "\nreads back as\n" << PrintOp(*parsed);
  EXPECT_EQ(gradient.results.size(), request.wrt.size());
  for (const std::string& name : gradient.results)
    EXPECT_NE(gradient.op.FindResult(name), nullptr) << name;
  for (const std::string& name : gradient.mask) {
    EXPECT_TRUE(op.FindArgument(name) || op.FindResult(name)) << name;
    EXPECT_NE(gradient.op.FindArgument(name), nullptr) << name << "\n" << text;
  }
  for (const std::string& name : gradient.shapes) {
    const Argument* arg = gradient.op.FindArgument(name);
    EXPECT_TRUE(arg != nullptr && arg->shape_only) << name << "\n" << text;
  }
}

// An op with its gradient op by `wrt` for adjoints of all float results.
class Differentiable {
 public:
  static absl::StatusOr<Differentiable> Make(const Function& function,
                                             GradientRequest request = {}) {
    if (request.wrt.empty()) request.wrt = FloatArguments(function.op());
    if (request.of.empty()) request.of = FloatResults(function.op());
    absl::StatusOr<GradientResult> gradient = Gradient(function.op(), request);
    if (!gradient.ok()) return gradient.status();
    ExpectWellFormed(function.op(), request, *gradient);
    return Differentiable(function, std::move(request), *std::move(gradient));
  }

  const Function& function() const { return function_; }
  const Function& gradient_function() const { return gradient_; }
  const GradientResult& report() const { return report_; }
  const std::vector<std::string>& wrt() const { return request_.wrt; }
  const std::vector<std::string>& of() const { return request_.of; }
  // The gradient op's argument that is the adjoint of of()[i].
  const std::string& AdjointName(size_t i) const { return report_.op.args[i].name; }

  // The arguments of the gradient op: adjoints (by the result's name; 0 where none is given), and
  // the op's own arguments and results.
  absl::StatusOr<Values> GradientArguments(const Values& values, const Values& adjoints) const {
    absl::StatusOr<Values> results = function_(values);
    if (!results.ok()) return results.status();
    Values args = values;
    for (auto& [name, tensor] : *results) args[name] = tensor;
    for (size_t i = 0; i < of().size(); ++i) {
      const auto adjoint = adjoints.find(of()[i]);
      const Tensor& result = results->at(of()[i]);
      args[AdjointName(i)] = adjoint != adjoints.end()
                                 ? adjoint->second
                                 : *Tensor::Create(result.type(), result.shape());
    }
    return args;
  }

  // The gradient by argument name.
  absl::StatusOr<Values> operator()(const Values& values, const Values& adjoints) const {
    absl::StatusOr<Values> args = GradientArguments(values, adjoints);
    if (!args.ok()) return args.status();
    absl::StatusOr<Values> results = gradient_(*args);
    if (!results.ok()) return results.status();
    Values gradients;
    for (size_t i = 0; i < wrt().size(); ++i)
      gradients[wrt()[i]] = std::move(results->at(report_.results[i]));
    return gradients;
  }

 private:
  Differentiable(const Function& function, GradientRequest request, GradientResult report)
      : function_(function), request_(std::move(request)), report_(std::move(report)),
        gradient_(report_.op, function.params()) {}

  Function function_;
  GradientRequest request_;
  GradientResult report_;
  Function gradient_;
};

void AddTo(Tensor& sum, const Tensor& term) {
  ASSERT_EQ(ShapeText(sum.shape()), ShapeText(term.shape()));
  for (int64_t i = 0; i < sum.num_elements(); ++i)
    sum.values<double>()[i] += term.values<double>()[i];
}

// The total derivative of <directions, gradient> by every argument and, under the names of the
// gradient op, by the adjoints; see the top. All float tensors are f64.
class SecondOrder {
 public:
  static absl::StatusOr<SecondOrder> Make(const Differentiable& first) {
    absl::StatusOr<Differentiable> second = Differentiable::Make(first.gradient_function());
    if (!second.ok()) return second.status();
    return SecondOrder(first, *std::move(second));
  }

  absl::StatusOr<Values> operator()(const Values& values, const Values& adjoints,
                                    const Values& directions) const {
    absl::StatusOr<Values> args = first_.GradientArguments(values, adjoints);
    if (!args.ok()) return args.status();
    Values outer;  // by the name of the gradient op's result
    for (size_t i = 0; i < first_.wrt().size(); ++i)
      outer[first_.report().results[i]] = directions.at(first_.wrt()[i]);
    absl::StatusOr<Values> partial = second_(*args, outer);
    if (!partial.ok()) return partial.status();
    Values through;  // adjoints of the op's results
    for (const std::string& name : first_.of()) {
      if (partial->count(name)) through[name] = partial->at(name);
    }
    absl::StatusOr<Values> inner = first_(values, through);
    if (!inner.ok()) return inner.status();
    Values total;
    for (const std::string& name : first_.wrt()) {
      total[name] = inner->at(name);
      if (partial->count(name)) AddTo(total[name], partial->at(name));
    }
    for (size_t i = 0; i < first_.of().size(); ++i) {
      const auto found = partial->find(first_.AdjointName(i));
      if (found != partial->end()) total[found->first] = found->second;
    }
    return total;
  }

  const Differentiable& second() const { return second_; }

 private:
  SecondOrder(const Differentiable& first, Differentiable second)
      : first_(first), second_(std::move(second)) {}
  const Differentiable first_;
  const Differentiable second_;
};

// ---- Differences ----

struct Objective {
  double value = 0;      // sum of weight * element
  double magnitude = 0;  // sum of |weight * element|
};
Objective Weigh(const Values& weights, const Values& values) {
  Objective total;
  for (const auto& [name, weight] : weights) {
    const Tensor& tensor = values.at(name);
    for (int64_t i = 0; i < weight.num_elements(); ++i) {
      const double term = weight.values<double>()[i] * tensor.values<double>()[i];
      total.value += term;
      total.magnitude += std::fabs(term);
    }
  }
  return total;
}

double Largest(const Tensor& tensor) {
  double largest = 0;
  for (double x : tensor.values<double>())
    largest = x == x ? std::max(largest, std::fabs(x)) : largest;
  return largest;
}

// Compares `gradient` (by argument) of `objective` at `values` with differences: at every element,
// or at every n-th if there are more than `most`. The tolerance is one part in a million of the
// argument's largest derivative (h^4 = 1e-12 times a fifth derivative), and the objective's
// rounding over h.
void ExpectDifferences(const Values& values, const Values& gradient,
                       const std::function<absl::StatusOr<Objective>(const Values&)>& objective,
                       int64_t most = 40) {
  const absl::StatusOr<Objective> here = objective(values);
  ASSERT_TRUE(here.ok()) << here.status();
  for (const auto& [name, derivative] : gradient) {
    ASSERT_TRUE(values.count(name)) << name;
    Values moved = values;
    Tensor& x = moved[name];
    ASSERT_EQ(ShapeText(derivative.shape()), ShapeText(x.shape())) << "the gradient by " << name;
    const double noise = 256 * 0x1p-52 * here->magnitude / kStep;
    const double tolerance = 1e-6 * Largest(derivative) + noise;
    const int64_t stride = x.num_elements() / most + 1;
    for (int64_t i = 0; i < x.num_elements(); i += stride) {
      double& element = x.values<double>()[i];
      const double center = element;
      const auto at = [&](double offset) {
        element = center + offset;
        const absl::StatusOr<Objective> there = objective(moved);
        EXPECT_TRUE(there.ok()) << there.status();
        element = center;
        return there.ok() ? there->value : std::nan("");
      };
      const double wide = (at(kStep) - at(-kStep)) / (2 * kStep),
                   narrow = (at(kStep / 2) - at(-kStep / 2)) / kStep;
      const double difference = (4 * narrow - wide) / 3, got = derivative.values<double>()[i];
      EXPECT_TRUE(std::fabs(got - difference) <= tolerance)
          << "the gradient by " << name << "[" << i << "] (at " << center << ") is " << got
          << ", differences give " << difference << " within " << tolerance;
    }
  }
}

Tensor RandomTensor(absl::Span<const int64_t> shape, Random& random) {
  Tensor tensor = *Tensor::Create(DType::kF64, shape);
  for (double& x : tensor.values<double>()) x = (random() >> 11) * 0x1p-52 - 1;
  return tensor;
}

// The first order against differences of the op, the second against differences of the first.
void CheckBothOrders(const Function& function, const Values& values, Random& random) {
  const absl::StatusOr<Values> results = function(values);
  ASSERT_TRUE(results.ok()) << results.status();
  const absl::StatusOr<Differentiable> first = Differentiable::Make(function);
  ASSERT_TRUE(first.ok()) << first.status();
  Values adjoints;
  for (const std::string& name : first->of())
    adjoints[name] = RandomTensor(results->at(name).shape(), random);
  const absl::StatusOr<Values> gradient = (*first)(values, adjoints);
  ASSERT_TRUE(gradient.ok()) << gradient.status() << "\n" << PrintOp(first->report().op);
  {
    SCOPED_TRACE(absl::StrCat("first order:\n", PrintOp(first->report().op)));
    ExpectDifferences(values, *gradient, [&](const Values& at) -> absl::StatusOr<Objective> {
      const absl::StatusOr<Values> y = function(at);
      if (!y.ok()) return y.status();
      return Weigh(adjoints, *y);
    });
  }
  const absl::StatusOr<SecondOrder> second = SecondOrder::Make(*first);
  ASSERT_TRUE(second.ok()) << second.status() << "\n" << PrintOp(first->report().op);
  Values directions;
  for (const auto& [name, tensor] : *gradient)
    directions[name] = RandomTensor(tensor.shape(), random);
  const absl::StatusOr<Values> total = (*second)(values, adjoints, directions);
  ASSERT_TRUE(total.ok()) << total.status() << "\n" << PrintOp(second->second().report().op);
  SCOPED_TRACE(absl::StrCat("second order:\n", PrintOp(second->second().report().op)));
  // The adjoints are variables as well, under the names that the gradient op has for them.
  Values both = values;
  for (size_t i = 0; i < first->of().size(); ++i)
    both[first->AdjointName(i)] = adjoints.at(first->of()[i]);
  ExpectDifferences(
      both, *total,
      [&](const Values& at) -> absl::StatusOr<Objective> {
        Values moved_adjoints;
        for (size_t i = 0; i < first->of().size(); ++i)
          moved_adjoints[first->of()[i]] = at.at(first->AdjointName(i));
        const absl::StatusOr<Values> y = (*first)(at, moved_adjoints);
        if (!y.ok()) return y.status();
        return Weigh(directions, *y);
      },
      16);
}

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

// Programs against differences: a title, the program, `---` and its arguments as in a sample of the
// macro library. The first group subtracts a maximum, which a gradient may leave out only where it
// cancels; the others combine accesses, reductions and scatters.
constexpr char kPrograms[] = R"(
=== softmax and what it is made of
op f(x: T[N, C]) -> (y, e) {
  e[n, c] = exp(x[n, c] - max[k](x[n, k]))
  y[n, c] = e[n, c] / sum[k](e[n, k])
}
--- x=[2,3]
=== exp less the maximum, not divided
op f(x: T[N, C]) -> (y) { y[n, c] = exp(x[n, c] - max[k](x[n, k])) }
--- x=[2,3]
=== a softmax with one more in the denominator
op f(x: T[N, C]) -> (y) {
  e[n, c] = exp(x[n, c] - max[k](x[n, k]))
  y[n, c] = e[n, c] / (1.0 + sum[k](e[n, k]))
}
--- x=[2,3]
=== divided by the sum of squares
op f(x: T[N, C]) -> (y) {
  e[n, c] = exp(x[n, c] - max[k](x[n, k]))
  y[n, c] = e[n, c] / sum[k](e[n, k] * e[n, k])
}
--- x=[2,3]
=== squares divided by the sum of squares
op f(x: T[N, C]) -> (y) {
  e[n, c] = exp(x[n, c] - max[k](x[n, k]))
  y[n, c] = e[n, c] * e[n, c] / sum[k](e[n, k] * e[n, k])
}
--- x=[2,3]
=== logsumexp
op f(x: T[N, C]) -> (y) {
  m[n] = max[k](x[n, k])
  y[n] = m[n] + log(sum[k](exp(x[n, k] - m[n])))
}
--- x=[2,3]
=== logsumexp without what was subtracted
op f(x: T[N, C]) -> (y) { y[n] = log(sum[c](exp(x[n, c] - max[k](x[n, k])))) }
--- x=[2,3]
=== logsumexp with twice what was subtracted
op f(x: T[N, C]) -> (y) {
  m[n] = max[k](x[n, k])
  y[n] = m[n] + m[n] + log(sum[k](exp(x[n, k] - m[n])))
}
--- x=[2,3]
=== twice the maximum, and its square behind exp
op f(x: T[N, C]) -> (y, z) {
  m[n] = max[k](x[n, k])
  y[n] = m[n] + m[n]
  z[n] = exp(m[n]) * exp(m[n])
}
--- x=[2,3]
=== a sum and a product of the shifted, and the maximum once
op f(x: T[N, C]) -> (y, z) {
  m[n] = max[k](x[n, k])
  y[n] = sum[k](x[n, k] - m[n]) + m[n]
  z[n] = prod[k](exp(x[n, k] - m[n])) * exp(m[n])
}
--- x=[2,3]
=== the maximum less the shifted
op f(x: T[N, C]) -> (y, z) {
  m[n] = max[k](x[n, k])
  y[n, c] = m[n] - (x[n, c] - m[n])
  z[n, c] = exp(x[n, c] - m[n]) / exp(m[n])
}
--- x=[2,3]
=== the maximum of another row is added back
op f(x: T[N, N]) -> (y, z) {
  m[n] = max[k](x[n, k])
  y[i, j] = x[i, j] - m[i] + m[j]
  z[i, j] = exp(x[i, j] - m[i]) * exp(m[j])
}
--- x=[3,3]
=== what was shifted has gaps that were not
op f(x: T[N, C]) -> (y, z) {
  m[n] = max[k](x[n, k])
  d[n, c] = x[n, c] - m[n]
  e[n, c] = exp(d[n, c])
  y[n, c] = d[n, c if c > 0] + m[n]
  z[n, c] = e[n, c | 1.0 if c > 0] * exp(m[n])
}
--- x=[2,3]
=== the maximum negated
op f(x: T[N, C]) -> (y, z) {
  m[n] = max[k](x[n, k])
  y[n] = -m[n] - m[n]
  z[n, c] = exp(-m[n] - x[n, c]) / exp(m[n])
}
--- x=[2,3]
=== a softmax times its maximum
op f(x: T[N, C]) -> (y) {
  m[n] = max[k](x[n, k])
  e[n, c] = exp(x[n, c] - m[n])
  y[n, c] = e[n, c] / sum[k](e[n, k]) * m[n]
}
--- x=[2,3]
=== a softmax with a temperature that is an input
op f(x: T[N, C], t: T[]) -> (y) {
  m[n] = max[k](x[n, k])
  e[n, c] = exp((x[n, c] - m[n]) * t)
  y[n, c] = e[n, c] / sum[k](e[n, k])
}
--- x=[2,3] t=[]
=== the maximum over one axis, the sum over another
op f(x: T[N, C]) -> (y) {
  m[c] = max[n](x[n, c])
  e[n, c] = exp(x[n, c] - m[c])
  y[n, c] = e[n, c] / sum[k](e[n, k])
}
--- x=[2,3]
=== the maximum of something else
op f(x: T[N, C], z: T[N, C]) -> (y) {
  m[n] = max[k](z[n, k] * x[n, k])
  e[n, c] = exp(x[n, c] - m[n])
  y[n, c] = e[n, c] / sum[k](e[n, k])
}
--- x=[2,3] z=[2,3]
=== a maximum for the numerator, another for the denominator
op f(x: T[N, C]) -> (y) {
  a[n] = max[k](x[n, k])
  b[n] = min[k](x[n, k])
  s[n] = sum[k](exp(x[n, k] - b[n]))
  y[n, c] = exp(x[n, c] - a[n]) / s[n]
}
--- x=[2,3]
=== a softmax with a bias behind the exp
op f(x: T[N, C], b: T[C]) -> (y) {
  e[n, c] = exp(x[n, c] - max[k](x[n, k])) + b[c]
  y[n, c] = e[n, c] / sum[k](e[n, k])
}
--- x=[2,3] b=[3]
=== less the minimum, over the range
op f(x: T[N, C]) -> (y) {
  low[n] = min[k](x[n, k])
  high[n] = max[k](x[n, k])
  y[n, c] = (x[n, c] - low[n]) / (high[n] - low[n])
}
--- x=[2,3]
=== divided by the largest magnitude
op f(x: T[N, C]) -> (y) {
  z[n, c] = x[n, c] / max[k](abs(x[n, k]))
  y[n, c] = z[n, c] / sqrt(sum[k](square(z[n, k])))
}
--- x=[2,3]
=== x less its maximum, and its differences
op f(x: T[N]) -> (y, z) {
  d[i] = x[i] - max[k](x[k])
  y[i] = d[i]
  z[i] = d[i] - d[0] where i < N
}
--- x=[4]
=== the largest logit and a softmax
op f(x: T[N, C]) -> (y, m) {
  m[n] = max[k](x[n, k])
  e[n, c] = exp(x[n, c] - m[n])
  y[n, c] = e[n, c] / sum[k](e[n, k])
}
--- x=[2,3]
=== a gate of the shifted value
op f(x: T[N, C]) -> (y) {
  d[n, c] = x[n, c] - max[k](x[n, k])
  e[n, c] = where(d[n, c] < -1.1, exp(d[n, c]), d[n, c] * d[n, c] + 1.0)
  y[n, c] = e[n, c] / sum[k](e[n, k])
}
--- x=[2,3]
=== entropy
op f(x: T[N, C]) -> (y) {
  p = softmax(x)
  y[n] = -sum[c](p[n, c] * log(p[n, c]))
}
--- x=[2,3]
=== normalised rows
op f(x: T[N, C]) -> (y) { y[n, c] = x[n, c] * rsqrt(sum[k](x[n, k] * x[n, k]) + 0.1) }
--- x=[2,3]
=== variance both ways
op f(x: T[N]) -> (a, b) {
  m = sum[i](x[i]) / N
  a = sum[i](square(x[i] - m)) / N
  b = sum[i](x[i] * x[i]) / N - m * m
}
--- x=[5]
=== a bilinear form
op f(x: T[N], a: T[N, M], y: T[M]) -> (z) { z = sum[i, j](x[i] * a[i, j] * y[j]) }
--- x=[2] a=[2,3] y=[3]
=== three factors, broadcast three ways
op f(a: T[I, J], b: T[J, K], c: T[I, K]) -> (y) { y[i, j, k] = a[i, j] * b[j, k] * c[i, k] + a[i, j] }
--- a=[2,2] b=[2,3] c=[2,3]
=== a product of sums and a sum of products
op f(x: T[N, K]) -> (y, z) {
  y = prod[n](sum[k](x[n, k]))
  z = sum[n](prod[k](x[n, k]))
}
--- x=[3,3]
=== a product over two axes of a computed value
op f(x: T[N, K, L]) -> (y) { y[n] = prod[k, l](sin(x[n, k, l]) + 2.0) }
--- x=[2,2,2]
=== products over what the step before gave
op f(x: T[L, J], w: T[J, J]) -> (y) {
  for t < L { y[t, j] = x[t, j] + prod[k](y[t - 1, k | 0.5] * w[k, j] + 1.5) }
}
--- x=[3,2] w=[2,2]
=== products in a window
op f(x: T[N]) -> (y) { y[i] = prod[r](x[i + r - 1 | 2.0]) where i < N, r < 3 }
--- x=[4]
=== the largest of sums
op f(x: T[N, K], w: T[K, M]) -> (y) { y[n] = max[m](sum[k](x[n, k] * w[k, m])) }
--- x=[2,3] w=[3,4]
=== a strided, dilated, padded convolution
op f(x: T[N], w: T[R]) -> (y) { y[i] = sum[r](x[i*3 + r*2 - 1] * w[r]) where i < 3 }
--- x=[8] w=[3]
=== a transposed convolution
op f(x: T[N], w: T[R]) -> (y) { y[2*i + r]: T[2*N + R] += x[i] * w[r] }
--- x=[3] w=[3]
=== a scatter that is squared and gathered
op f(x: T[N], ids: i64[N], back: i64[M]) -> (y) {
  d[ids[n]]: T[4] += x[n] * x[n]
  y[m] = d[back[m]] * d[0]
}
--- x=[5] ids=[5]<4 back=[3]<4
=== scattered maxima
op f(x: T[N], ids: i64[N]) -> (y) {
  d[ids[n]]: T[3] max= x[n] * x[n]
  y[n] = d[ids[n]] * x[n]
}
--- x=[6] ids=[6]<3
=== a running sum
op f(x: T[N]) -> (y) {
  c[i] = sum[k](x[k if k <= i]) where i < N
  y[i] = c[i] * c[i]
}
--- x=[5]
=== a triangle
op f(a: T[N, N], x: T[N]) -> (y) { y[i] = sum[j](a[i, j if j <= i] * x[j]) }
--- a=[3,3] x=[3]
=== the diagonal and its mirror
op f(x: T[N, N]) -> (y) { y[i] = x[i, i] * x[i, N - 1 - i] }
--- x=[3,3]
=== an index over, and modulo
op f(x: T[N]) -> (y) { y[i] = x[i / 2] * x[i % N] * x[N - 1 - i / 2] where i < 2*N }
--- x=[3]
=== gathers of gathers
op f(x: T[N], ids: i64[M]) -> (y) { y[m] = x[ids[ids[m]]] * x[ids[m]] }
--- x=[3] ids=[3]<3
=== two indices gathered
op f(x: T[N, M], i: i64[K], j: i64[K]) -> (y) { y[k] = square(x[i[k], j[k]]) }
--- x=[3,2] i=[4]<3 j=[4]<2
=== reshape, transpose and slice
op f(x: T[A, B]) -> (y) {
  r[i] = x[i / B, i % B] where i < A*B
  y[i] = r[i + 2] * r[A*B - 1 - i] where i < A*B - 2
}
--- x=[2,3]
=== a concat of computed pieces
op f(x: T[N], z: T[M]) -> (y) {
  a[i] = sin(x[i])
  b[i] = exp(z[i])
  y[i] = a[i if i < N] + b[i - N if i >= N] where i < N + M
}
--- x=[2] z=[3]
=== a gate by another tensor
op f(x: T[N], z: T[N]) -> (y) { y[i] = where(x[i] > z[i], x[i] * z[i], x[i] / z[i]) + max(x[i], z[i]) * min(x[i], z[i]) }
--- x=[5] z=[5]
=== gelu between two matrices
op f(x: T[N, K], a: T[K, H], b: T[H, M]) -> (y) {
  h = matmul(x, a)
  g[n, i] = gelu(h[n, i])
  y = matmul(g, b)
}
--- x=[2,2] a=[2,3] b=[3,2]
=== conv, norm, relu, pool
op f(x: T[N, C, H, W], w: T[O, C, R, S]) -> (y) {
  c = conv2d(x, w; pad=1)
  m[o] = sum[n, h, v](c[n, o, h, v]) / (N*H*W)
  r[n, o, h, v] = relu(c[n, o, h, v] - m[o])
  y = max_pool2d(r; k=2, stride=2)
}
--- x=[1,2,4,4] w=[2,2,3,3]
=== cross entropy of a linear layer
op f(x: T[N, K], w: T[C, K], b: T[C], labels: i64[N]) -> (loss) {
  z = linear(x, w, b)
  loss = cross_entropy(z, labels)
}
--- x=[3,2] w=[4,2] b=[4] labels=[3]<4
)";

// ---- The traps ----

// A case: a title, a program (its last op is the one), `---`, and then
//   NAME = TYPE[DIMS] VALUES       an argument, or g_RESULT, an adjoint (1 everywhere if not given)
//   $NAME = LITERAL                a $param
//   d NAME == TYPE[DIMS] VALUES    the gradient by an argument (within 4 ulp)
//   dd NAME == ...                 the total derivative of the sum of all the gradients' elements
//   of/wrt/given NAME NAME ..      the request
//   takes/shapes/results NAME ..   exactly what the report names: of the op's arguments and results
//                                  (shapes included), of shapes, of gradients
//   lacks PIECE                    what the printed gradient must not hold
//   error PIECE                    the request is refused; may_refuse PIECE: it may be
// @{TEXT*COUNT} in a program stands for TEXT repeated, # for the number of the repetition.
constexpr char kTraps[] = R"(
=== fan-out sums
op f(x: f64[N]) -> (y) { y[i] = x[i] * x[i] }
---
x = f64[3] 1 -2 0
d x == f64[3] 2 -4 0
dd x == f64[3] 2 2 2

=== fan-out of fan-out
op f(x: f64[]) -> (y) { y = x * x * x + x }
---
x = f64[] 2
d x == f64[] 13
dd x == f64[] 12

=== fan-out through a temporary
op f(x: f64[N]) -> (y) {
  t[i] = exp(x[i])
  y[i] = t[i] * t[i] + t[i]
}
---
x = f64[1] 0
d x == f64[1] 3
dd x == f64[1] 5

=== the divisor's gradient is negative
op f(a: f64[], b: f64[]) -> (y) { y = a / b }
---
a = f64[] 3
b = f64[] 2
d a == f64[] 0.5
d b == f64[] -0.75

=== the subtrahend's and a negation's too
op f(a: f64[], b: f64[]) -> (y) { y = a - b + -b }
---
a = f64[] 3
b = f64[] 2
d a == f64[] 1
d b == f64[] -2

=== binary max shares ties, NaN's too
op f(a: f64[N], b: f64[N]) -> (y) { y[i] = max(a[i], b[i]) }
---
a = f64[7] 1 2 3 nan nan 1 -0.0
b = f64[7] 2 2 1 nan 1 nan 0
d a == f64[7] 0 0.5 1 0.5 1 0 0.5
d b == f64[7] 1 0.5 0 0.5 0 1 0.5

=== binary min shares ties, NaN's too
op f(a: f64[N], b: f64[N]) -> (y) { y[i] = min(a[i], b[i]) }
---
a = f64[7] 1 2 3 nan nan 1 -0.0
b = f64[7] 2 2 1 nan 1 nan 0
d a == f64[7] 1 0.5 0 0.5 1 0 0.5
d b == f64[7] 0 0.5 1 0.5 0 1 0.5

=== max of a value with itself passes all
op f(a: f64[]) -> (y) { y = max(a, a) }
---
a = f64[] 3
d a == f64[] 1

=== reduced max shares ties of two, of three, of none, of infinities
op f(x: f64[N, K]) -> (y) { y[n] = max[k](x[n, k]) }
---
x = f64[4, 4] 1 3 3 0   2 2 2 1   0 1 2 3   -inf -inf -inf -inf
g_y = f64[4] 6 6 6 6
d x == f64[4, 4] 0 3 3 0   2 2 2 0   0 0 0 6   1.5 1.5 1.5 1.5
takes x y
shapes

=== reduced max of NaNs
op f(x: f64[N, K]) -> (y) { y[n] = max[k](x[n, k]) }
---
x = f64[3, 3] nan nan nan   1 nan 2   nan 3 nan
g_y = f64[3] 6 6 6
d x == f64[3, 3] 2 2 2   0 6 0   3 0 3

=== reduced min shares ties
op f(x: f64[N, K]) -> (y) { y[n] = min[k](x[n, k]) }
---
x = f64[3, 3] 1 3 1   2 2 2   nan 1 nan
g_y = f64[3] 6 6 6
d x == f64[3, 3] 3 0 3   2 2 2   3 0 3

=== reduced max over both axes, and of a computed value
op f(x: f64[N, K]) -> (y) { y = max[n, k](x[n, k] * x[n, k]) }
---
x = f64[2, 2] 1 -3 3 2
g_y = f64[] 2
d x == f64[2, 2] 0 -6 6 0

=== prod with no, one, two and three zeros, to second order
op f(x: f64[N, K]) -> (y) { y[n] = prod[k](x[n, k]) }
---
x = f64[4, 3] 2 3 4   0 3 4   0 0 4   0 0 0
d x == f64[4, 3] 12 8 6   12 0 0   0 0 0   0 0 0
dd x == f64[4, 3] 7 6 5   7 4 3   4 4 0   0 0 0

=== prod of four, two of them zeros, to second order
op f(x: f64[K]) -> (y) { y = prod[k](x[k]) }
---
x = f64[4] 0 2 0 3
d x == f64[4] 0 0 0 0
dd x == f64[4] 6 0 6 0

=== prod over two axes
op f(x: f64[N, K]) -> (y) { y = prod[n, k](x[n, k]) }
---
x = f64[2, 2] 2 0 3 5
d x == f64[2, 2] 0 30 0 0

=== prod over two axes, zeros in one row, and in two
op f(x: f64[B, N, K]) -> (y) { y[b] = prod[n, k](x[b, n, k]) }
---
x = f64[2, 2, 3] 0 2 3 1 5 2   0 2 3 1 0 2
d x == f64[2, 2, 3] 60 0 0 0 0 0   0 0 0 0 0 0

=== the log that where did not take, to second order
op f(x: f64[N]) -> (y) { y[i] = where(x[i] > 0.0, log(x[i]), 0.0) }
---
x = f64[4] 0 -1 2 -0.0
d x == f64[4] 0 0 0.5 0
dd x == f64[4] 0 0 -0.25 0

=== the sqrt that where did not take
op f(x: f64[N]) -> (y) { y[i] = where(x[i] > 0.0, sqrt(x[i]), 0.0) }
---
x = f64[3] 0 -1 4
d x == f64[3] 0 0 0.25
dd x == f64[3] 0 0 -0.03125

=== the rsqrt and recip that where did not take
op f(x: f64[N]) -> (y) { y[i] = where(x[i] > 0.0, rsqrt(x[i]) + recip(x[i]), 0.0) }
---
x = f64[3] 0 -1 4
d x == f64[3] 0 0 -0.125
dd x == f64[3] 0 0 0.0546875

=== the pow that where did not take
op f(x: f64[N]) -> (y) { y[i] = where(x[i] > 0.0, pow(x[i], 0.5), 0.0) }
---
x = f64[3] 0 -1 4
d x == f64[3] 0 0 0.25
dd x == f64[3] 0 0 -0.03125

=== the pow by both operands that where did not take
op f(x: f64[N], p: f64[N]) -> (y) { y[i] = where(x[i] > 0.0, pow(x[i], p[i]), 0.0) }
---
x = f64[3] 0 -1 1
p = f64[3] -1 0.5 2
d x == f64[3] 0 0 2
d p == f64[3] 0 0 0
dd x == f64[3] 0 0 3
dd p == f64[3] 0 0 1

=== the quotient that where did not take
op f(a: f64[N], b: f64[N]) -> (y) { y[i] = where(b[i] != 0.0, a[i] / b[i], 0.0) }
---
a = f64[3] 1 3 0
b = f64[3] 0 2 0
d a == f64[3] 0 0.5 0
d b == f64[3] 0 -0.75 0
dd a == f64[3] 0 -0.25 0
dd b == f64[3] 0 0.5 0

=== the exp that where did not take
op f(x: f64[N]) -> (y) { y[i] = where(x[i] < 100.0, exp(x[i]), 0.0) }
---
x = f64[2] 1000 0
d x == f64[2] 0 1
dd x == f64[2] 0 1

=== the mod that where did not take
op f(a: f64[N], b: f64[N]) -> (y) { y[i] = where(b[i] != 0.0, mod(a[i], b[i]), 0.0) }
---
a = f64[2] 5 5
b = f64[2] 0 3
d a == f64[2] 0 1
d b == f64[2] 0 -1

=== where in where
op f(x: f64[N]) -> (y) { y[i] = where(x[i] > 0.0, where(x[i] > 1.0, log(x[i] - 1.0), 0.0), sqrt(-x[i])) }
---
x = f64[3] 1 3 -4
d x == f64[3] 0 0.5 -0.25
dd x == f64[3] 0 -0.25 -0.03125

=== a product of infinities that where did not take
op f(x: f64[N]) -> (y) { y[i] = where(x[i] > 0.0, log(x[i]) * log(x[i]), 0.0) }
---
x = f64[3] 0 -1 1
d x == f64[3] 0 0 0
dd x == f64[3] 0 0 2

=== a product of overflows that where did not take
op f(x: f64[N]) -> (y) { y[i] = where(x[i] < 100.0, exp(x[i]) * exp(x[i]), 0.0) }
---
x = f64[2] 1000 0
d x == f64[2] 0 2
dd x == f64[2] 0 4

=== the square, the sine and the fma of what where did not take
op f(x: f64[N]) -> (y) {
  l[i] = log(x[i])
  y[i] = where(x[i] > 0.5, square(l[i]) + sin(l[i]) + fma(l[i], x[i], l[i]), 0.0)
}
---
x = f64[3] 0 -1 1
d x == f64[3] 0 0 3

=== a sum of what where took
op f(x: f64[N, K]) -> (y) { y[n] = sum[k](where(x[n, k] > 0.0, x[n, k] * log(x[n, k]), 0.0)) }
---
x = f64[1, 3] 0 1 -2
d x == f64[1, 3] 0 1 0
dd x == f64[1, 3] 0 1 0

=== the loser of a max may be infinite
op f(x: f64[N]) -> (y, z) {
  y[i] = max(log(x[i]), -5.0) + relu(sqrt(x[i]) - 0.5)
  z = max[i](log(x[i]))
}
---
x = f64[3] 0 1 0.0625
d x == f64[3] 0 2.5 16

=== an entry that no gather reads
op f(x: f64[N], ids: i64[M]) -> (y) {
  e[i] = log(x[i])
  y[m] = e[ids[m]] * e[ids[m]]
}
---
x = f64[3] 0 1 0
ids = i64[2] 1 1
d x == f64[3] 0 0 0
dd x == f64[3] 0 4 0

=== what where did not take, through a chain of rows
op f(x: f64[N]) -> (y) {
  l[i] = log(x[i])
  s[i] = sqrt(l[i]) * l[i] + sin(l[i])
  y[i] = where(x[i] > 0.5, s[i], 0.0)
}
---
x = f64[3] 0 -1 1
d x == f64[3] 0 0 1

=== an element that no access reads contributes 0
op f(x: f64[N]) -> (y) {
  t[i] = log(x[i])
  y[i] = t[i if i > 0] where i < N
}
---
x = f64[3] 0 1 2
d x == f64[3] 0 1 0.5
dd x == f64[3] 0 -1 -0.25

=== a window that leaves out an element
op f(x: f64[N]) -> (y) {
  t[i] = sqrt(x[i])
  y = sum[i](t[i + 1])
    where i < N - 1
}
---
x = f64[3] 0 1 4
d x == f64[3] 0 0.5 0.25

=== log of padding: the fill has no gradient
op f(x: f64[N]) -> (y) { y[i] = log(x[i - 1 | 1.0]) where i < N + 2 }
---
x = f64[2] 2 4
d x == f64[2] 0.5 0.25

=== abs and relu at 0
op f(x: f64[N]) -> (y, z) {
  y[i] = abs(x[i])
  z[i] = relu(x[i])
}
---
x = f64[4] 0 -0.0 2 -3
g_z = f64[4] 10 10 10 10
d x == f64[4] 0 0 11 -1
dd x == f64[4] 0 0 0 0

=== pow with a constant exponent takes no log
op f(x: f64[N]) -> (y) { y[i] = pow(x[i], 3.0) }
---
x = f64[3] -2 0 2
d x == f64[3] 12 0 12
dd x == f64[3] -12 0 12
lacks log(

=== pow with a $param as exponent takes no log
op f(x: f64[N]; $p: f64) -> (y) { y[i] = pow(x[i], $p) }
---
x = f64[3] -2 0 2
$p = 2.0
d x == f64[3] -4 0 4
dd x == f64[3] 2 2 2
lacks log(

=== pow at exponents 0 and 1
op f(x: f64[N]) -> (y) { y[i] = pow(x[i], 0.0) + pow(x[i], 1.0) }
---
x = f64[3] 0 -2 3
d x == f64[3] 1 1 1
dd x == f64[3] 0 0 0

=== pow by its exponent
op f(p: f64[N]) -> (y) { y[i] = pow(1.0, p[i]) }
---
p = f64[2] 0 3
d p == f64[2] 0 0

=== pow of 0 by its exponent
op f(a: f64[N], p: f64[N]) -> (y) { y[i] = pow(a[i], p[i]) }
---
a = f64[2] 0 0
p = f64[2] 2 1
d a == f64[2] 0 1
d p == f64[2] 0 0

=== diagonal access
op f(x: f64[N, N]) -> (y) { y[i] = x[i, i] }
---
x = f64[3, 3] 1 2 3 4 5 6 7 8 9
g_y = f64[3] 1 2 3
d x == f64[3, 3] 1 0 0 0 2 0 0 0 3

=== diagonal and plain access
op f(x: f64[N, N]) -> (y) { y[i, j] = x[i, i] * x[i, j] }
---
x = f64[2, 2] 1 2 3 4
d x == f64[2, 2] 4 1 4 11

=== overlapping shifts
op f(x: f64[N]) -> (y) { y[i] = x[i] + x[i + 1] + x[i + 2] where i < N - 2 }
---
x = f64[5] 1 2 3 4 5
d x == f64[5] 1 2 3 2 1

=== overlapping windows
op f(x: f64[N]) -> (y) { y[i] = sum[r](x[i + r]) where i < N - 2, r < 3 }
---
x = f64[5] 1 2 3 4 5
g_y = f64[3] 1 10 100
d x == f64[5] 1 11 111 110 100

=== strided windows that leave a gap, and ones that overlap
op f(x: f64[N]) -> (y, z) {
  y[i] = sum[r](x[2*i + r]) where i < 2, r < 3
  z[i] = x[3*i] where i < 2
}
---
x = f64[5] 1 2 3 4 5
g_z = f64[2] 10 20
d x == f64[5] 11 1 2 21 1

=== windows over padding
op f(x: f64[N], w: f64[R]) -> (y) { y[i] = sum[r](x[i + r - 1] * w[r]) where i < N }
---
x = f64[3] 1 2 3
w = f64[3] 10 20 30
d x == f64[3] 30 60 50
d w == f64[3] 3 6 5

=== reversal, transposition, division and remainder of an index
op f(x: f64[N]) -> (y, z, w) {
  y[i] = x[N - 1 - i] where i < N
  z[i] = x[i / 2] where i < 2*N
  w[i] = x[i % N] where i < N + 1
}
---
x = f64[2] 1 2
g_y = f64[2] 1 2
g_z = f64[4] 10 20 30 40
g_w = f64[3] 100 200 300
d x == f64[2] 432 271

=== a permutation
op f(x: f64[A, B, C]) -> (y) { y[c, a, b] = x[a, b, c] }
---
x = f64[1, 2, 2] 1 2 3 4
g_y = f64[2, 1, 2] 1 2 3 4
d x == f64[1, 2, 2] 1 3 2 4
takes

=== broadcasts are summed
op f(x: f64[N], z: f64[M], s: f64[]) -> (y) { y[i, j] = x[i] + z[j] * s }
---
x = f64[2] 1 2
z = f64[3] 3 4 5
s = f64[] 2
g_y = f64[2, 3] 1 2 3 4 5 6
d x == f64[2] 6 15
d z == f64[3] 10 14 18
d s == f64[] 88

=== max_pool2d with overlap: one winner in four windows
op f(x: f64[N, C, H, W]) -> (y) { y = max_pool2d(x; k=2, stride=1) }
---
x = f64[1, 1, 3, 3] 1 2 3 4 9 5 6 7 8
d x == f64[1, 1, 3, 3] 0 0 0 0 4 0 0 0 0

=== max_pool2d with overlap and ties
op f(x: f64[N, C, H, W]) -> (y) { y = max_pool2d(x; k=2, stride=1) }
---
x = f64[1, 1, 3, 3] 0 0 0 0 0 0 0 0 0
d x == f64[1, 1, 3, 3] 0.25 0.5 0.25 0.5 1 0.5 0.25 0.5 0.25

=== max_pool2d: padding takes nothing
op f(x: f64[N, C, H, W]) -> (y) { y = max_pool2d(x; k=2, stride=2, pad=1) }
---
x = f64[1, 1, 2, 2] -1 -2 -3 -4
d x == f64[1, 1, 2, 2] 1 1 1 1

=== gather with repeated ids, and ids beyond
op f(table: f64[V, D], ids: i64[N]) -> (y) { y[n, d] = table[ids[n], d] }
---
table = f64[3, 2] 1 2 3 4 5 6
ids = i64[5] 0 2 0 7 -1
g_y = f64[5, 2] 1 2 3 4 5 6 7 8 9 10
d table == f64[3, 2] 6 8 0 0 3 4
takes table ids
shapes table

=== gather of a computed value
op f(x: f64[N], ids: i64[M]) -> (y) {
  e[i] = exp(x[i])
  y[m] = e[ids[m]] * e[ids[m]]
}
---
x = f64[2] 0 5
ids = i64[2] 0 0
d x == f64[2] 4 0
dd x == f64[2] 8 0

=== scatter += hands back what was stored
op f(x: f64[N, D], ids: i64[N]; $V) -> (d) { d[ids[n], c]: f64[$V, D] += x[n, c] }
---
x = f64[4, 2] 1 2 3 4 5 6 7 8
ids = i64[4] 2 0 2 9
$V = 3
g_d = f64[3, 2] 1 2 3 4 5 6
d x == f64[4, 2] 5 6 1 2 5 6 0 0

=== scatter += of a product
op f(x: f64[N], w: f64[N], ids: i64[N]) -> (d) { d[ids[n]]: f64[2] += x[n] * w[n] }
---
x = f64[3] 1 2 3
w = f64[3] 4 5 6
ids = i64[3] 1 1 0
g_d = f64[2] 10 100
d x == f64[3] 400 500 60
d w == f64[3] 100 200 30

=== scatter max= shares ties
op f(x: f64[N], ids: i64[N]) -> (d) { d[ids[n]]: f64[3] max= x[n] }
---
x = f64[5] 3 3 1 5 9
ids = i64[5] 0 0 0 1 8
g_d = f64[3] 6 7 8
d x == f64[5] 3 3 0 7 0

=== scatter max= of NaNs, and of what nothing is stored to
op f(x: f64[N], ids: i64[N]) -> (d) { d[ids[n]]: f64[3] max= x[n] }
---
x = f64[5] nan nan 1 -inf -inf
ids = i64[5] 0 0 0 2 2
g_d = f64[3] 6 7 8
d x == f64[5] 3 3 0 4 4

=== reductions over nothing
op f(x: f64[N, K]) -> (y, z, w) {
  y[n] = max[k](x[n, k])
  z[n] = prod[k](x[n, k])
  w = sum[n, k](x[n, k] * x[n, k])
}
---
x = f64[2, 0]
d x == f64[2, 0]
dd x == f64[2, 0]

=== scatter min= shares ties
op f(x: f64[N], ids: i64[N]) -> (d) { d[ids[n]]: f64[3] min= x[n] }
---
x = f64[4] 3 1 1 5
ids = i64[4] 0 0 0 1
g_d = f64[3] 6 7 8
d x == f64[4] 0 3 3 7

=== scatter *= uses products of the others, or is refused
op f(x: f64[N], ids: i64[N]) -> (d) { d[ids[n]]: f64[2] *= x[n] }
---
may_refuse scatter
x = f64[5] 2 3 0 7 4
ids = i64[5] 0 0 1 1 1
g_d = f64[2] 1 10
d x == f64[5] 3 2 280 0 0

=== concat: two masked accesses; only shapes are needed
op f(x: f64[N], z: f64[M]) -> (y) { y[i] = x[i if i < N] + z[i - N if i >= N] where i < N + M }
---
x = f64[2] 1 2
z = f64[3] 3 4 5
g_y = f64[5] 1 2 3 4 5
d x == f64[2] 1 2
d z == f64[3] 3 4 5
takes x z
shapes x z

=== concat by where
op f(x: f64[N], z: f64[M]) -> (y) { y[i] = where(i < N, x[i], z[i - N]) where i < N + M }
---
x = f64[2] 1 2
z = f64[3] 3 4 5
g_y = f64[5] 1 2 3 4 5
d x == f64[2] 1 2
d z == f64[3] 3 4 5

=== reshape; only the shape is needed
op f(x: f64[R, C]) -> (y) { y[i] = x[i / C, i % C] where i < R*C }
---
x = f64[2, 3] 1 2 3 4 5 6
g_y = f64[6] 1 2 3 4 5 6
d x == f64[2, 3] 1 2 3 4 5 6
takes x
shapes x

=== sum and mean; only the shape is needed
op f(x: f64[N, K]) -> (y) { y[n] = sum[k](x[n, k]) / K }
---
x = f64[1, 4] 1 2 3 4
d x == f64[1, 4] 0.25 0.25 0.25 0.25
takes x
shapes x

=== an input that is not reached has gradient 0
op f(x: f64[N], z: f64[M]) -> (y) { y[i] = x[i] }
---
x = f64[2] 1 2
z = f64[3] 1 2 3
d x == f64[2] 1 1
d z == f64[3] 0 0 0

=== an input that is reached only through integers
op f(x: f64[N]) -> (y) {
  a[i] = i64(x[i])
  y[i] = f64(a[i])
}
---
x = f64[2] 1.5 -2.5
d x == f64[2] 0 0

=== several results and inputs
op f(a: f64[N], b: f64[N]) -> (p, q) {
  p[i] = a[i] * b[i]
  q[i] = a[i] + p[i]
}
---
a = f64[1] 2
b = f64[1] 3
g_q = f64[1] 10
d a == f64[1] 43
d b == f64[1] 22

=== one result of several
op f(a: f64[N], b: f64[N]) -> (p, q) {
  p[i] = a[i] * b[i]
  q[i] = a[i] + p[i]
}
---
a = f64[1] 2
b = f64[1] 3
of p
wrt b
d b == f64[1] 2
takes a

=== an integer result beside a float one
op f(a: f64[N, K]) -> (best, at) {
  best[n] = max[k](a[n, k])
  at[n] = argmax[k](a[n, k])
}
---
a = f64[1, 3] 1 5 2
d a == f64[1, 3] 0 1 0

=== floor, ceil, round, sign and comparisons give 0
op f(x: f64[N]) -> (y) { y[i] = floor(x[i]) + ceil(x[i]) + round(x[i]) + sign(x[i]) + f64(x[i] > 0.0) }
---
x = f64[3] 2.5 0 -1.2
d x == f64[3] 0 0 0

=== a factor that is floored is a factor still
op f(x: f64[N]) -> (y) { y[i] = x[i] * floor(x[i]) }
---
x = f64[2] 2.5 -1.5
d x == f64[2] 2 -2

=== float casts pass, in the operand's type
op f(x: f32[N]) -> (y) { y[i] = f64(x[i]) * f64(x[i]) }
---
x = f32[2] 3 -2
d x == f32[2] 6 -4

=== argmax as an index
op f(x: f64[N, K]) -> (y) {
  a[n] = argmax[k](x[n, k])
  y[n] = x[n, a[n]]
}
---
x = f64[2, 3] 1 5 2 7 0 7
d x == f64[2, 3] 0 1 0 1 0 0

=== an index as a value, a dimension and a $param
op f(x: f64[N]; $k) -> (y) { y[i] = x[i] * i + x[i] * $k + x[i] / N }
---
x = f64[2] 1 2
$k = 10
d x == f64[2] 10.5 11.5

=== clamp by min and max shares at its edges; between it passes
op f(x: f64[N]) -> (y) { y[i] = min(max(x[i], -1.0), 1.0) }
---
x = f64[3] 0.5 2 -3
d x == f64[3] 1 0 0

=== copy passes
op f(x: f64[N]) -> (y) { y[i] = copy(x[i]) * 2.0 }
---
x = f64[2] 1 2
d x == f64[2] 2 2

=== mulz is a product in its own gradient
op f(a: f64[N], b: f64[N]) -> (y) { y[i] = mulz(a[i], b[i]) }
---
a = f64[3] 0 2 3
b = f64[3] inf 5 0
g_y = f64[3] 0 1 1
d a == f64[3] 0 5 0
d b == f64[3] 0 2 3

=== called ops
op sq(x: T[N]) -> (y) { y[i] = x[i] * x[i] }
op f(x: f64[N]) -> (z) {
  a = sq(x)
  b = sq(a)
  z[i] = a[i] + b[i]
}
---
x = f64[1] 2
d x == f64[1] 36

=== matmul needs both factors
op f(a: f64[M, K], b: f64[K, N]) -> (c) { c = matmul(a, b) }
---
a = f64[1, 2] 1 2
b = f64[2, 1] 3 4
g_c = f64[1, 1] 10
d a == f64[1, 2] 30 40
d b == f64[2, 1] 10 20
takes a b
shapes
lacks mulz

=== softmax needs its result alone
op f(x: f64[N, C]) -> (y) { y = softmax(x) }
---
x = f64[1, 2] 0 0
g_y = f64[1, 2] 1 0
d x == f64[1, 2] 0.25 -0.25
takes y
shapes

=== softmax with the result prescribed
op f(x: f64[N, C]) -> (y) { y = softmax(x) }
---
x = f64[1, 2] 0 0
g_y = f64[1, 2] 4 0
given g_y y
d x == f64[1, 2] 1 -1
takes y

=== softmax with the input prescribed
op f(x: f64[N, C]) -> (y) { y = softmax(x) }
---
x = f64[1, 2] 0 0
g_y = f64[1, 2] 4 0
given g_y x
d x == f64[1, 2] 1 -1
takes x

=== softmax with more than it needs: exactly that is taken
op f(x: f64[N, C]) -> (y) { y = softmax(x) }
---
x = f64[1, 2] 0 0
g_y = f64[1, 2] 4 0
given y x g_y
d x == f64[1, 2] 1 -1
takes x y

=== conv2d by its input alone: the input's shape is needed
op f(x: f64[N, C, H, W], w: f64[O, C, R, S]) -> (y) { y = conv2d(x, w; stride=2) }
---
x = f64[1, 1, 3, 2] 1 2 3 4 5 6
w = f64[1, 1, 1, 2] 10 20
wrt x
d x == f64[1, 1, 3, 2] 10 20 0 0 10 20
takes x w
shapes x
lacks mulz

=== conv2d by its input alone, as prescribed
op f(x: f64[N, C, H, W], w: f64[O, C, R, S]) -> (y) { y = conv2d(x, w; stride=2) }
---
x = f64[1, 1, 3, 2] 1 2 3 4 5 6
w = f64[1, 1, 1, 2] 10 20
wrt x
given w g_y
d x == f64[1, 1, 3, 2] 10 20 0 0 10 20
takes x w
shapes x

=== two results that are one value
op f(x: f64[N]) -> (y, z) {
  y[i] = exp(x[i])
  z[i] = exp(x[i])
}
---
x = f64[1] 0
g_z = f64[1] 10
d x == f64[1] 11
dd x == f64[1] 11

=== a result that is an argument, and one that is a constant
op f(x: f64[N]) -> (y, z) {
  y[i] = x[i]
  z[i] = 2.0 where i < N
}
---
x = f64[2] 1 2
g_y = f64[2] 3 4
d x == f64[2] 3 4

=== exp, sigmoid, tanh and sqrt need their results alone
op f(x: f64[N]) -> (a, b, c, d) {
  a[i] = exp(x[i])
  b[i] = sigmoid(x[i])
  c[i] = tanh(x[i])
  d[i] = sqrt(x[i] + 1.0)
}
---
x = f64[1] 0
d x == f64[1] 2.75
takes a b c d

=== a sum needs nothing
op f(a: f64[N], b: f64[N]) -> (y) { y[i] = a[i] + 2.0 * b[i] }
---
a = f64[1] 0
b = f64[1] 0
d a == f64[1] 1
d b == f64[1] 2
takes
shapes

=== log needs its operand
op f(x: f64[N]) -> (y) { y[i] = log(x[i]) }
---
x = f64[1] 4
d x == f64[1] 0.25
takes x
shapes

=== a name that is taken
op f(x: f64[N], g_x: f64[N]) -> (y) { y[i] = x[i] * g_x[i] }
---
x = f64[1] 2
g_x = f64[1] 3
d x == f64[1] 3
d g_x == f64[1] 2
results g_x_2 g_g_x

=== an adjoint whose name is taken by an argument
op f(x: f64[N], g_y: f64[N]) -> (y) { y[i] = x[i] * g_y[i] }
---
x = f64[1] 2
g_y = f64[1] 3
d x == f64[1] 3
d g_y == f64[1] 2

=== a long chain
op f(x: f64[]) -> (y) {
  t0 = x
@{  t# = t#-1 + 0.0
*2000}
  y = t2000 * x
}
---
x = f64[] 3
d x == f64[] 6

=== wrt an integer
op f(x: f64[N], ids: i64[N]) -> (y) { y[i] = x[ids[i]] }
---
wrt ids
error argument ids

=== wrt a bool
op f(x: f64[N], b: bool[N]) -> (y) { y[i] = where(b[i], x[i], 0.0) }
---
wrt x b
error argument b

=== wrt an unknown name
op f(x: f64[N]) -> (y) { y[i] = x[i] }
---
wrt xx
error 'xx'

=== of an integer
op f(x: f64[N, K]) -> (y) { y[n] = argmax[k](x[n, k]) }
---
of y
error result y

=== of an unknown name
op f(x: f64[N]) -> (y) { y[i] = x[i] }
---
of z
error 'z'

=== given an unknown name
op f(x: f64[N]) -> (y) { y[i] = x[i] }
---
given g_y z
error 'z'

=== given does not suffice: softmax
op f(x: f64[N, C]) -> (y) { y = softmax(x) }
---
given g_y
error needs x

=== given does not suffice: matmul
op f(a: f64[M, K], b: f64[K, N]) -> (c) { c = matmul(a, b) }
---
given g_c a
error needs b

=== given does not suffice: the adjoint itself
op f(x: f64[N]) -> (y) { y[i] = exp(x[i]) }
---
given x
error needs g_y
)";

struct Trap {
  std::string title, program;
  Values values, expected, expected_second;
  absl::flat_hash_map<std::string, Scalar> params;
  GradientRequest request;
  std::map<std::string, std::vector<std::string>> reports;
  std::vector<std::string> lacks;
  std::string error, may_refuse;
};

Tensor ParseTensor(const std::string& text) {
  std::string type_name, dims, values;
  EXPECT_TRUE(RE2::FullMatch(text, R"((\w+)\[([^\]]*)\]\s*(.*))", &type_name, &dims, &values))
      << text;
  const DType type = TypeByName(type_name).value_or(DType::kF64);
  std::vector<int64_t> shape;
  for (absl::string_view dim : absl::StrSplit(dims, ',', absl::SkipWhitespace())) {
    shape.emplace_back();
    EXPECT_TRUE(absl::SimpleAtoi(dim, &shape.back())) << text;
  }
  std::vector<double> numbers;
  for (absl::string_view value : absl::StrSplit(values, ' ', absl::SkipEmpty())) {
    numbers.emplace_back();
    EXPECT_TRUE(absl::SimpleAtod(value, &numbers.back())) << text;
  }
  return Tensor::Of(type, shape, numbers);
}

std::string Expand(const std::string& text) {
  const size_t begin = text.find("@{");
  if (begin == std::string::npos) return text;
  const size_t star = text.find('*', begin), end = text.find('}', star);
  int count = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text.substr(star + 1, end - star - 1), &count));
  const std::string piece = text.substr(begin + 2, star - begin - 2);
  std::string result = text.substr(0, begin);
  for (int i = 1; i <= count; ++i) {
    std::string numbered = piece;
    RE2::GlobalReplace(&numbered, "#-1", absl::StrCat(i - 1));
    RE2::GlobalReplace(&numbered, "#", absl::StrCat(i));
    result += numbered;
  }
  return result + text.substr(end + 1);
}

void ParseDirective(const std::string& line, Trap& trap) {
  std::string word, name, rest;
  if (RE2::FullMatch(line, R"((d|dd) (\w+) == (.*))", &word, &name, &rest)) {
    (word == "d" ? trap.expected : trap.expected_second)[name] = ParseTensor(rest);
  } else if (RE2::FullMatch(line, R"((\$\w+) = (\S+))", &name, &rest)) {
    int64_t integer;
    trap.params[name] =
        absl::SimpleAtoi(rest, &integer) ? Scalar::I64(integer) : *ParseLiteral(rest, DType::kF64);
  } else if (RE2::FullMatch(line, R"((\w+) = (.*))", &name, &rest)) {
    trap.values[name] = ParseTensor(rest);
  } else if (RE2::FullMatch(line, R"((\w+)\s*(.*))", &word, &rest)) {
    const std::vector<std::string> names = absl::StrSplit(rest, ' ', absl::SkipEmpty());
    if (word == "of") trap.request.of = names;
    else if (word == "wrt") trap.request.wrt = names;
    else if (word == "given") trap.request.given = names;
    else if (word == "takes" || word == "shapes" || word == "results") trap.reports[word] = names;
    else if (word == "lacks") trap.lacks.push_back(rest);
    else if (word == "error") trap.error = rest;
    else if (word == "may_refuse") trap.may_refuse = rest;
    else ADD_FAILURE() << trap.title << ": cannot read '" << line << "'";
  }
}

std::vector<Trap> LoadTraps() {
  std::vector<Trap> traps;
  bool program = false;
  for (absl::string_view view : absl::StrSplit(kTraps, '\n')) {
    const std::string line(view);
    if (absl::StartsWith(line, "=== ")) {
      traps.emplace_back();
      traps.back().title = line.substr(4);
      program = true;
    } else if (line == "---") {
      traps.back().program = Expand(traps.back().program);
      program = false;
    } else if (program) {
      absl::StrAppend(&traps.back().program, line, "\n");
    } else if (!line.empty()) {
      ParseDirective(line, traps.back());
    }
  }
  return traps;
}

void ExpectNear(const std::string& what, const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.type(), want.type()) << what;
  ASSERT_EQ(ShapeText(got.shape()), ShapeText(want.shape())) << what;
  const double ulp = got.type() == DType::kF64 ? 0x1p-52 : 0x1p-23;
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const auto element = [i](const Tensor& t) {
      return Load(t.type(), static_cast<const char*>(t.data()) + i * ByteSize(t.type())).ToDouble();
    };
    const double x = element(got), y = element(want);
    const bool both_nan = std::isnan(x) && std::isnan(y);
    EXPECT_TRUE(both_nan || x == y || std::fabs(x - y) <= 4 * ulp * std::fabs(y))
        << what << "[" << i << "] is " << x << ", want " << y << "\n"
        << ToString(got);
  }
}

Tensor Ones(const Tensor& like) {
  return Tensor::Of(like.type(), like.shape(), std::vector<double>(like.num_elements(), 1.0));
}

void ExpectReports(const Trap& trap, const GradientResult& report) {
  std::vector<std::string> takes = report.mask;
  takes.insert(takes.end(), report.shapes.begin(), report.shapes.end());
  const std::map<std::string, std::vector<std::string>> got = {
      {"takes", takes}, {"shapes", report.shapes}, {"results", report.results}};
  for (const auto& [what, want] : trap.reports) {
    const std::vector<std::string>& names = got.at(what);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()),
              std::set<std::string>(want.begin(), want.end()))
        << what;
  }
  for (const std::string& piece : trap.lacks)
    EXPECT_FALSE(absl::StrContains(PrintOp(report.op), piece)) << piece;
}

// No partial derivative of the second-order gradient is NaN either.
void ExpectThirdOrderIsNumber(const SecondOrder& second, const Differentiable& first,
                              const Values& values, const Values& adjoints,
                              const Values& directions) {
  const absl::StatusOr<Differentiable> third =
      Differentiable::Make(second.second().gradient_function());
  ASSERT_TRUE(third.ok()) << third.status();
  Values outer;
  for (size_t i = 0; i < first.wrt().size(); ++i)
    outer[first.report().results[i]] = directions.at(first.wrt()[i]);
  const absl::StatusOr<Values> first_args = first.GradientArguments(values, adjoints);
  ASSERT_TRUE(first_args.ok()) << first_args.status();
  const absl::StatusOr<Values> args = second.second().GradientArguments(*first_args, outer);
  ASSERT_TRUE(args.ok()) << args.status();
  const absl::StatusOr<Values> second_order = second.second()(*first_args, outer);
  ASSERT_TRUE(second_order.ok()) << second_order.status();
  Values ones;
  for (size_t i = 0; i < third->of().size(); ++i)
    ones[third->of()[i]] = Ones(second_order->at(second.second().wrt()[i]));
  const absl::StatusOr<Values> partials = (*third)(*args, ones);
  ASSERT_TRUE(partials.ok()) << partials.status();
  for (const auto& [name, tensor] : *partials) {
    for (double x : tensor.values<double>()) {
      EXPECT_FALSE(std::isnan(x)) << "third order, by " << name << ": " << ToString(tensor) << "\n"
                                  << PrintOp(third->report().op);
    }
  }
}

void RunTrap(const Trap& trap) {
  const absl::StatusOr<Module> module = Module::Parse(trap.program, &MacroLibrary());
  ASSERT_TRUE(module.ok()) << module.status();
  const absl::StatusOr<Op> op = module->Instantiate("", {});
  ASSERT_TRUE(op.ok()) << op.status();
  const Function function(*op, trap.params);
  if (!trap.error.empty()) {
    const absl::Status status = Gradient(*op, trap.request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), trap.error)) << status;
    return;
  }
  const absl::StatusOr<Differentiable> first = Differentiable::Make(function, trap.request);
  if (!first.ok() && !trap.may_refuse.empty()) {
    EXPECT_EQ(first.status().code(), absl::StatusCode::kInvalidArgument) << first.status();
    EXPECT_TRUE(absl::StrContains(first.status().message(), trap.may_refuse)) << first.status();
    return;
  }
  ASSERT_TRUE(first.ok()) << first.status();
  SCOPED_TRACE(PrintOp(first->report().op));
  ExpectReports(trap, first->report());
  const absl::StatusOr<Values> results = function(trap.values);
  ASSERT_TRUE(results.ok()) << results.status();
  Values adjoints;
  for (const std::string& name : first->of()) {
    const auto given = trap.values.find("g_" + name);
    const bool is_adjoint = given != trap.values.end() && op->FindArgument("g_" + name) == nullptr;
    adjoints[name] = is_adjoint ? given->second : Ones(results->at(name));
  }
  const absl::StatusOr<Values> gradient = (*first)(trap.values, adjoints);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_FALSE(trap.expected.empty());
  for (const auto& [name, want] : trap.expected) ExpectNear("d " + name, gradient->at(name), want);
  if (trap.expected_second.empty()) return;
  const absl::StatusOr<SecondOrder> second = SecondOrder::Make(*first);
  ASSERT_TRUE(second.ok()) << second.status();
  SCOPED_TRACE(PrintOp(second->second().report().op));
  Values directions;
  for (const auto& [name, tensor] : *gradient) directions[name] = Ones(tensor);
  const absl::StatusOr<Values> total = (*second)(trap.values, adjoints, directions);
  ASSERT_TRUE(total.ok()) << total.status();
  for (const auto& [name, want] : trap.expected_second)
    ExpectNear("dd " + name, total->at(name), want);
  ExpectThirdOrderIsNumber(*second, *first, trap.values, adjoints, directions);
}

struct Program {
  std::string title, text;
  Sample sample;
};
std::vector<Program> LoadPrograms() {
  std::vector<Program> programs;
  for (absl::string_view line : absl::StrSplit(kPrograms, '\n')) {
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

TEST(Gradient, Traps) {
  const std::vector<Trap> traps = LoadTraps();
  EXPECT_GE(traps.size(), 80u);
  for (const Trap& trap : traps) {
    SCOPED_TRACE(trap.title);
    RunTrap(trap);
  }
}

// ---- Gradients that an author gave ----

Op Parsed(const char* text) {
  absl::StatusOr<Op> op = ParseOp(text);
  EXPECT_TRUE(op.ok()) << op.status() << "\n" << text;
  return op.ok() ? *std::move(op) : Op();
}

// A wrong factor shows which gradient was taken.
TEST(Gradient, OfAnOpWithItsOwn) {
  Op square = Parsed("op square_it(x: f64[N]) -> (y) { y[i] = x[i] * x[i] }");
  square.gradient = std::make_shared<const Op>(Parsed(
      "op square_it_grad(g_y: f64[N], x: f64[N]) -> (g_x) { g_x[i] = 7.0 * g_y[i] * x[i] }"));
  const Op twice = Parsed("op twice(y: f64[N]) -> (z) { z[i] = 2.0 * y[i] }");
  const std::vector<std::string> results = {"z"};
  const Op ops[] = {square, twice};
  const absl::StatusOr<Op> both = Combine("both", ops, results);
  ASSERT_TRUE(both.ok()) << both.status();
  for (const auto& [op, want] : {std::pair(*both, 42.0), std::pair(square, 21.0)}) {
    SCOPED_TRACE(op.name);
    const absl::StatusOr<Differentiable> first = Differentiable::Make(Function(op, {}));
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::StatusOr<Values> gradient = (*first)(
        {{"x", Tensor::Of<double>({1}, {3})}}, {{first->of()[0], Tensor::Of<double>({1}, {1})}});
    ASSERT_TRUE(gradient.ok()) << gradient.status();
    EXPECT_EQ(gradient->at("x").values<double>()[0], want) << PrintOp(first->report().op);
  }
}

// The adjoint of a value that two results share reaches the op's own gradient once.
TEST(Gradient, OfAnOpWithItsOwnOfWhichTwoResultsAreOneValue) {
  Op pair = Parsed("op pair(x: f64[N]) -> (y, z) {\n  y[i] = 2.0 * x[i]\n  z[i] = y[i]\n}");
  pair.gradient = std::make_shared<const Op>(Parsed(
      "op pair_grad(g_y: f64[N], g_z: f64[N]) -> (g_x) { g_x[i] = 2.0 * g_y[i] + 2.0 * g_z[i] }"));
  const absl::StatusOr<Op> caller = Combine("caller", {pair});
  ASSERT_TRUE(caller.ok()) << caller.status();
  const absl::StatusOr<Differentiable> first = Differentiable::Make(Function(*caller, {}));
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::StatusOr<Values> gradient =
      (*first)({{"x", Tensor::Of<double>({1}, {5})}},
               {{"y", Tensor::Of<double>({1}, {1})}, {"z", Tensor::Of<double>({1}, {10})}});
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->at("x").values<double>()[0], 22.0) << PrintOp(first->report().op);
}

// The result that it passes on has the argument's name, and is another node.
TEST(Gradient, OfAnOpWithItsOwnThatHandsAnArgumentOn) {
  Op op =
      Parsed("op f(i: f64[N], x: f64[N]) -> (y, i) { y[j] = where(bool(i[j]), x[j], x[j] * 2.0) }");
  op.gradient = std::make_shared<const Op>(Gradient(op)->op);
  const absl::StatusOr<Op> caller = Combine("caller", {op});
  ASSERT_TRUE(caller.ok()) << caller.status();
  const absl::StatusOr<GradientResult> gradient = Gradient(*caller);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  std::set<std::string> names;
  for (const Argument& arg : gradient->op.args) {
    EXPECT_TRUE(names.insert(arg.name).second) << arg.name << " twice: " << PrintOp(gradient->op);
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
