// Compares a gradient with difference quotients of its op, along one direction:
//
//   sum over x of g_x * d_x  =  d/dh sum over y of g_y * y(x + h*d)   at h = 0
//
// The direction is a function of the value alone, so that equal elements stay equal, and the
// quotient sees the gradient that they share evenly. Where the op is smooth, the forward and
// backward quotients, each extrapolated from two steps, agree. At a kink, for example min(abs(a -
// b), ..) of equal distances, they differ, and nothing is said. They may agree by chance, so a
// difference is a finding only if it occurs at every one of a few draws of values.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autodiff/gradient.h"
#include "check/engines/trial.h"
#include "check/random.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

constexpr int kDraws = 3;
constexpr double kStep = 0x1p-14;
constexpr double kSettled = 1e-5;  // of forward and backward quotients, relative to the terms
// For the quotients of a step and a quarter of it: a jump is four times as steep over the quarter.
constexpr double kSmooth = 0.1;
constexpr double kDifferent = 1e-3;  // of quotient and gradient

bool IsAllF64(const Op& op) {
  bool differentiable = false;
  for (const Argument& arg : op.args) {
    if (IsFloat(arg.type) && arg.type != DType::kF64) return false;
    differentiable |= arg.type == DType::kF64 && !arg.shape_only;
  }
  const std::vector<bool> live = Reachable(op.graph, op.ResultNodes());
  for (int i = 0; i < op.graph.size(); ++i) {
    if (live[static_cast<size_t>(i)] && IsFloat(op.graph.type(NodeId{i})) &&
        op.graph.type(NodeId{i}) != DType::kF64) {
      return false;
    }
  }
  for (const Result& result : op.results) {
    if (op.graph.type(result.node) != DType::kF64) return false;
  }
  return differentiable;
}

using Params = absl::flat_hash_map<std::string, Scalar>;

// Whether the node may hold, at some place, a number of the text or a $param that is less
// than a step.
bool HoldsLessThanAStep(const Graph& graph, NodeId id, const Params& params) {
  const auto is_less = [](const Scalar& value) { return std::abs(value.ToDouble()) < kStep; };
  const auto holds = [&](NodeId read) { return HoldsLessThanAStep(graph, read, params); };
  if (const auto* constant = graph.As<Constant>(id)) return is_less(constant->value);
  if (const auto* param = graph.As<Param>(id)) return is_less(params.at(param->name));
  if (const auto* read = graph.As<Reindex>(id)) return holds(read->fill) || holds(read->x);
  const auto* map = graph.As<Map>(id);
  return map != nullptr && map->op == ScalarOp::kSelect &&
         (holds(map->args[1]) || holds(map->args[2]));
}

// Where quotients say nothing about the gradient that is defined: a remainder by less than a step
// jumps between the points of a quotient, and a value that went through integers, as in
// from_bits(bits(x)), has no gradient.
bool IsOutOfReach(const Graph& graph, const Map& map, const Params& params) {
  if (map.op == ScalarOp::kFromBits) return true;
  if (map.op != ScalarOp::kMod && map.op != ScalarOp::kFmod) return false;
  return HoldsLessThanAStep(graph, map.args[1], params);
}

bool IsOutOfReach(const Op& op, Params params) {
  for (const ParamInfo& param : op.params) {
    if (param.value) params.emplace(param.name, *param.value);  // where none is given
  }
  for (int i = 0; i < op.graph.size(); ++i) {
    const auto* map = op.graph.As<Map>(NodeId{i});
    if (map != nullptr && IsOutOfReach(op.graph, *map, params)) return true;
  }
  return false;
}

// The same op with f64 in its text; nullopt where it would not be the same.
absl::optional<Op> InF64(const Op& op) {
  if (IsAllF64(op)) return op;
  std::vector<std::pair<absl::string_view, absl::string_view>> names;
  for (DType type : AllTypes()) {
    if (IsFloat(type)) names.emplace_back(Name(type), Name(DType::kF64));
  }
  absl::StatusOr<Op> wide = ParseOp(absl::StrReplaceAll(PrintOp(op), names));
  if (!wide.ok() || !IsAllF64(*wide)) return absl::nullopt;
  return *std::move(wide);
}

// Values at distances of a quarter, none of them 0 and some of them equal, and the direction at
// each.
double BaseValue(Random& random) { return 0.31 + static_cast<double>(random.Between(-7, 7)) / 4; }
double Direction(double value, int draw) { return std::cos(3.7 * value + draw); }

// One op, one gradient, one direction. `settled`: the quotients agreed, so that something was said.
class Differentiated {
 public:
  Differentiated(const Op& op, const Op& gradient, const TrialInputs& sizes, uint64_t seed,
                 int draw)
      : op_(op), program_(Lower(op)), gradient_(gradient), inputs_(sizes.inputs),
        sizes_(sizes.sizes), random_(seed), draw_(draw) {
    for (const Argument& arg : op.args) {
      if (arg.type != DType::kF64 || arg.shape_only) continue;
      Tensor base = Tensor::Create(DType::kF64, sizes.inputs.tensors.at(arg.name).shape).value();
      for (double& x : base.values<double>()) x = BaseValue(random_);
      base_.emplace_back(arg.name, std::move(base));
    }
  }

  // Says where the gradient is certainly wrong; nullopt where it is right, or nothing can be said.
  // Forward and backward quotients that disagree, a jump, a value that is not finite: nothing is
  // said.
  Finding Check(bool& settled) {
    settled = false;
    const Results at = At(0);
    if (!at.ok() || !DrawAdjoints(*at)) return absl::nullopt;
    const Results gradients = RunGradient(*at);
    if (!gradients.ok()) return absl::nullopt;
    const absl::optional<Slope> ahead = Extrapolated(*at, kStep),
                                behind = Extrapolated(*at, -kStep);
    double scale = 0;
    const double product = Product(*gradients, scale);
    if (!ahead || !behind || !std::isfinite(product) || !std::isfinite(scale)) return absl::nullopt;
    const double quotient = (ahead->value + behind->value) / 2;
    const double terms = scale + std::abs(quotient) + 1e-3;
    if (std::abs(ahead->value - behind->value) > kSettled * terms) return absl::nullopt;
    if (std::max(ahead->change, behind->change) > kSmooth * terms) return absl::nullopt;
    if (quotient == 0 && IsRoundedAway(*at)) return absl::nullopt;
    settled = true;
    if (std::abs(product - quotient) <= kDifferent * terms) return absl::nullopt;
    return absl::StrCat("the gradient gives ", product, " along a direction, difference quotients ",
                        ahead->value, " ahead and ", behind->value, " behind");
  }

 private:
  Results At(double h) {
    std::vector<Tensor> moved;
    moved.reserve(base_.size());
    RunInputs inputs = inputs_;
    for (const auto& [name, base] : base_) {
      moved.push_back(base);
      for (double& x : moved.back().values<double>()) x += h * Direction(x, draw_);
      inputs.tensors[name] = moved.back();
    }
    return Run(program_, inputs);
  }

  // False where a result is not finite, or so large that a step would be lost in its rounding.
  bool DrawAdjoints(const std::vector<Tensor>& results) {
    for (const Tensor& result : results) {
      for (double y : result.values<double>()) {
        if (!std::isfinite(y) || std::abs(y) > 1e6) return false;
      }
      Tensor adjoint = Tensor::Create(DType::kF64, result.shape()).value();
      for (double& g : adjoint.values<double>())
        g = static_cast<double>(random_.Between(-8, 8)) / 4;
      adjoints_.push_back(std::move(adjoint));
    }
    return true;
  }

  Results RunGradient(const std::vector<Tensor>& results) {
    RunInputs inputs;
    inputs.params = inputs_.params;
    for (const Argument& arg : gradient_.args) inputs.tensors[arg.name] = Named(arg.name, results);
    for (const std::string& name : UnboundDimensions(SignatureOf(gradient_), inputs)) {
      inputs.dims[name] = sizes_.at(name);
    }
    return Run(Lower(gradient_), inputs);
  }

  // An argument of the gradient: an adjoint, an input, or a result.
  TensorView Named(const std::string& name, const std::vector<Tensor>& results) const {
    for (const auto& [base, tensor] : base_) {
      if (base == name) return tensor;
    }
    if (op_.FindArgument(name) != nullptr) return inputs_.tensors.at(name);
    for (size_t i = 0; i < op_.results.size(); ++i) {
      if (op_.results[i].name == name) return results[i];
      if (absl::StrCat("g_", op_.results[i].name) == name) return adjoints_[i];
    }
    return TensorView();
  }

  // Next to a large term a step changes nothing, and yet half a unit does: x*x + 1e15.
  bool IsRoundedAway(const std::vector<Tensor>& here) {
    return Quotient(here, 0.5).value_or(0) != 0;
  }

  // A one-sided quotient, without the term of its error that is linear in the step.
  struct Slope {
    double value;
    double change;  // of the quotient, where the step is a quarter
  };
  absl::optional<Slope> Extrapolated(const std::vector<Tensor>& here, double h) {
    const absl::optional<double> coarse = Quotient(here, h), fine = Quotient(here, h / 4);
    if (!coarse || !fine) return absl::nullopt;
    return Slope{(4 * *fine - *coarse) / 3, std::abs(*fine - *coarse)};
  }

  // The directional derivative as a difference quotient: the sum of g (f(x + h d) - f(x)) / h.
  absl::optional<double> Quotient(const std::vector<Tensor>& here, double h) {
    const Results there = At(h);
    if (!there.ok()) return absl::nullopt;
    double sum = 0;
    for (size_t i = 0; i < here.size(); ++i) {
      const auto from = here[i].values<double>(), to = std::as_const((*there)[i]).values<double>();
      const auto g = std::as_const(adjoints_[i]).values<double>();
      for (size_t k = 0; k < from.size(); ++k) sum += g[k] * ((to[k] - from[k]) / h);
    }
    if (!std::isfinite(sum)) return absl::nullopt;
    return sum;
  }

  // The same derivative by the gradient: its product with the direction. `scale` sums magnitudes,
  // by which an error is judged.
  double Product(const std::vector<Tensor>& gradients, double& scale) const {
    double sum = 0;
    for (size_t i = 0; i < base_.size(); ++i) {
      const auto x = base_[i].second.values<double>(), g = gradients[i].values<double>();
      for (size_t k = 0; k < x.size(); ++k) {
        const double term = g[k] * Direction(x[k], draw_);
        sum += term;
        scale += std::abs(term);
      }
    }
    return sum;
  }

  const Op& op_;
  const loop::Program program_;
  const Op& gradient_;
  const RunInputs& inputs_;
  const absl::flat_hash_map<std::string, int64_t>& sizes_;
  Random random_;
  const int draw_;
  std::vector<std::pair<std::string, Tensor>> base_;
  std::vector<Tensor> adjoints_;
};

// Whether the op has no names that the gradient may have changed, so that no tensor is
// mistaken for another.
bool HasPlainNames(const Op& op) {
  for (const Result& result : op.results) {
    if (op.FindArgument(result.name) != nullptr ||
        op.FindArgument(absl::StrCat("g_", result.name)) != nullptr) {
      return false;
    }
    if (op.FindResult(absl::StrCat("g_", result.name)) != nullptr) return false;
  }
  return true;
}

}  // namespace

// In f64, whatever the op's type is: rounding of narrower types would hide a difference.
Finding CheckGradientQuotients(const Op& narrow, uint64_t seed, const TrialInputOptions& options,
                               TrialCounts& counts) {
  const absl::optional<Op> wide = InF64(narrow);
  if (!wide || !HasPlainNames(*wide)) return absl::nullopt;
  const Op& op = *wide;
  const auto gradient = Gradient(op);
  if (!gradient.ok()) return absl::nullopt;
  TrialInputOptions small = options;
  small.most_work = 2'000;
  const auto sizes = DrawTrialInputs(op, Lower(op), seed, small);
  if (!sizes || IsOutOfReach(op, sizes->inputs.params)) return absl::nullopt;
  Finding finding;
  for (int draw = 0; draw < kDraws; ++draw) {
    bool settled = false;
    finding = Differentiated(op, gradient->op, *sizes, seed + static_cast<uint64_t>(draw), draw)
                  .Check(settled);
    if (!finding) {
      counts.quotients += settled ? 1 : 0;
      return absl::nullopt;
    }
  }
  return absl::StrCat(*finding, ", of the op in f64");
}

}  // namespace nestor
