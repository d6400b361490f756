// Differences are taken in f64 and extrapolated (Richardson: (4 D(h/2) - D(h)) / 3 has an error of
// order h^4). A second derivative of an op is a gradient of its gradient op, whose arguments may
// hold results of the op: those depend on the op's inputs in turn, so the total is
//
//   d<v, G(g, x, y(x))>/dx  =  G's gradient by x  +  the op's gradient, at the adjoint
//                              that is G's gradient by y
//
// and this total is equal to differences of G.
#include "tests/gradient_testing.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "tensor/binding.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

constexpr double kStep = 0x1p-10;

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

void AddTo(Tensor& sum, const Tensor& term) {
  ASSERT_EQ(ShapeText(sum.shape()), ShapeText(term.shape()));
  for (int64_t i = 0; i < sum.num_elements(); ++i)
    sum.values<double>()[i] += term.values<double>()[i];
}

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

}  // namespace

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

Function::Function(Op op, absl::flat_hash_map<std::string, Scalar> params)
    : op_(std::move(op)), program_(Lower(op_)), params_(std::move(params)) {}

absl::StatusOr<Values> Function::operator()(const Values& values) const {
  RunInputs inputs;
  for (const Argument& arg : op_.args) {
    const auto value = values.find(arg.name);
    if (value == values.end()) return absl::InternalError(absl::StrCat("no value for ", arg.name));
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

absl::StatusOr<Differentiable> Differentiable::Make(const Function& function,
                                                    GradientRequest request) {
  if (request.wrt.empty()) request.wrt = FloatArguments(function.op());
  if (request.of.empty()) request.of = FloatResults(function.op());
  absl::StatusOr<GradientResult> gradient = Gradient(function.op(), request);
  if (!gradient.ok()) return gradient.status();
  ExpectWellFormed(function.op(), request, *gradient);
  return Differentiable(function, std::move(request), *std::move(gradient));
}

absl::StatusOr<Values> Differentiable::GradientArguments(const Values& values,
                                                         const Values& adjoints) const {
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

absl::StatusOr<Values> Differentiable::operator()(const Values& values,
                                                  const Values& adjoints) const {
  absl::StatusOr<Values> args = GradientArguments(values, adjoints);
  if (!args.ok()) return args.status();
  absl::StatusOr<Values> results = gradient_(*args);
  if (!results.ok()) return results.status();
  Values gradients;
  for (size_t i = 0; i < wrt().size(); ++i)
    gradients[wrt()[i]] = std::move(results->at(report_.results[i]));
  return gradients;
}

Differentiable::Differentiable(const Function& function, GradientRequest request,
                               GradientResult report)
    : function_(function), request_(std::move(request)), report_(std::move(report)),
      gradient_(report_.op, function.params()) {}

absl::StatusOr<SecondOrder> SecondOrder::Make(const Differentiable& first) {
  absl::StatusOr<Differentiable> second = Differentiable::Make(first.gradient_function());
  if (!second.ok()) return second.status();
  return SecondOrder(first, *std::move(second));
}

absl::StatusOr<Values> SecondOrder::operator()(const Values& values, const Values& adjoints,
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

double Largest(const Tensor& tensor) {
  double largest = 0;
  for (double x : tensor.values<double>())
    largest = x == x ? std::max(largest, std::fabs(x)) : largest;
  return largest;
}

Tensor RandomTensor(absl::Span<const int64_t> shape, std::mt19937_64& random) {
  Tensor tensor = *Tensor::Create(DType::kF64, shape);
  for (double& x : tensor.values<double>()) x = (random() >> 11) * 0x1p-52 - 1;
  return tensor;
}

void CheckBothOrders(const Function& function, const Values& values, std::mt19937_64& random) {
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

}  // namespace nestor
