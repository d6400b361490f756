// The row of a scalar op (uops/scalar_ops.inc) writes its derivatives in the notation. They are
// instantiated as ops over rank-0 tensors, whose nodes are copied to whole tensors one by one.
// Nodes that do not depend on the adjoint are copied as they are. For the others the adjoint's
// mask decides which product is right.
#include "autodiff/chain_rule.h"

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "uops/invariant.h"
#include "uops/mutant.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

// The notation of one partial derivative as an op over rank-0 operands.
Op MakeDerivative(ScalarOp scalar_op, int operand, DType type, DType result) {
  const ScalarOpRow& row = Row(scalar_op);
  const bool choice = row.result == ResultType::kChoice;
  std::string text = absl::StrCat("op derivative(a: ", choice ? "bool" : "T", "[]");
  if (row.arity > 1) absl::StrAppend(&text, ", b: T[]");
  if (row.arity > 2) absl::StrAppend(&text, ", c: T[]");
  absl::StrAppend(&text, ", y: R[], g: R[]) -> (d) { d = ", row.derivatives[operand], " }");
  const absl::StatusOr<Module> module = Module::Parse(text);
  NESTOR_CHECK(module.ok(), absl::StrCat(text, "\n", module.status().ToString()));
  const ArgumentSpecs specs = {{choice ? "b" : "a", {type, 0}}, {"y", {result, 0}}};
  absl::StatusOr<Op> op = module->Instantiate("", specs);
  NESTOR_CHECK(op.ok(), absl::StrCat(text, "\n", op.status().ToString()));
  return *std::move(op);
}

}  // namespace

// Parses a row's derivative once in a process; the ops are never deleted, so references stay valid.
const Op& DerivativeOf(ScalarOp scalar_op, int operand, DType type, DType result) {
  static absl::Mutex mutex;
  static auto* const made =
      new std::map<std::tuple<ScalarOp, int, DType, DType>, std::unique_ptr<Op>>;
  const auto key = std::make_tuple(scalar_op, operand, type, result);
  absl::MutexLock lock(&mutex);
  std::unique_ptr<Op>& op = (*made)[key];
  if (op == nullptr) op = std::make_unique<Op>(MakeDerivative(scalar_op, operand, type, result));
  return *op;
}

// `carries`: the nodes of the derivative that depend on g. The body is linear in g, so each has at
// most one such operand.
NodeId ChainRule::Apply(const Op& derivative, absl::Span<const NodeId> args, NodeId y, NodeId g,
                        uint8_t mask) {
  const Graph& scalar = derivative.graph;
  const Shape shape = graph_.shape(y);
  std::vector<NodeId> image(scalar.size());
  std::vector<bool> carries(scalar.size(), false);
  for (size_t i = 0; i < args.size(); ++i) image[derivative.args[i].node.value] = args[i];
  image[derivative.FindArgument("y")->node.value] = y;
  const NodeId adjoint = derivative.FindArgument("g")->node;
  image[adjoint.value] = g;
  carries[adjoint.value] = true;
  const std::vector<bool> live = Reachable(scalar, derivative.ResultNodes());
  for (int i = 0; i < scalar.size(); ++i) {
    if (!live[i]) continue;
    if (const Constant* constant = scalar.As<Constant>(NodeId{i})) {
      image[i] = graph_.AddSplat(graph_.AddConstant(constant->value), shape);
    } else if (const Map* map = scalar.As<Map>(NodeId{i})) {
      NodeList operands;
      int carrier = -1;
      for (size_t j = 0; j < map->args.size(); ++j) {
        operands.push_back(image[map->args[j].value]);
        if (carries[map->args[j].value]) carrier = static_cast<int>(j);
      }
      carries[i] = carrier >= 0;
      image[i] = carrier < 0 ? graph_.AddMap(map->op, operands, scalar.type(NodeId{i}))
                             : Carried(*map, operands, carrier, scalar.type(NodeId{i}), mask);
    }
  }
  return image[derivative.results[0].node.value];
}

bool ChainRule::IsConstant(NodeId x) const {
  const Reindex* reindex = graph_.As<Reindex>(x);
  return graph_.As<Constant>(reindex == nullptr ? x : reindex->x) != nullptr;
}

// Whether elements of x may be inf or NaN though the arguments are finite: they depend on a row
// whose derivative or value is unbounded, or on a constant that is inf or NaN.
bool ChainRule::MayBeNonFinite(NodeId x) {
  while (static_cast<int>(non_finite_.size()) < graph_.size()) {
    const NodeId id{static_cast<int32_t>(non_finite_.size())};
    bool may = false;
    if (const Constant* constant = graph_.As<Constant>(id))
      may = !std::isfinite(constant->value.ToDouble());
    if (const Map* map = graph_.As<Map>(id)) may = (Row(map->op).traits & kUnbounded) != 0;
    if (IsFloat(graph_.type(id)))
      VisitOperands(graph_, id, [&](NodeId y) { may = may || non_finite_[y.value]; });
    non_finite_.push_back(may);
  }
  return non_finite_[x.value];
}

// A masked adjoint is 0 where its value did not matter: its product with a factor that may be inf
// there must still be 0. After a mulz the adjoint may itself be inf, and the other factor 0.
bool ChainRule::NeedsMulz(const NodeList& x, int carrier, uint8_t mask) {
  if (mask == kUnmasked || IsConstant(x[1 - carrier])) return false;
  return MayBeNonFinite(x[1 - carrier]) || ((mask & kUnbridled) && MayBeNonFinite(x[carrier]));
}

// One step of the derivative on the way of the adjoint. A quotient under a mask becomes a product
// with the reciprocal, since there is no division that gives 0 for 0 / 0.
NodeId ChainRule::Carried(const Map& map, const NodeList& x, int carrier, DType type,
                          uint8_t mask) {
  switch (map.op) {
    case ScalarOp::kNeg:
      return NESTOR_MUTANT("div_gradient_without_minus") ? x[0] : algebra_.Neg(x[0]);
    case ScalarOp::kMul:
      if (NeedsMulz(x, carrier, mask))
        return graph_.AddMap(ScalarOp::kMulz, {x[carrier], x[1 - carrier]});
      return algebra_.Mul(x[carrier], x[1 - carrier]);
    case ScalarOp::kDiv:
      // A quotient is unbounded itself.
      if (mask != kUnmasked && !IsConstant(x[1])) {
        return graph_.AddMap(ScalarOp::kMulz, {x[0], graph_.AddMap(ScalarOp::kRecip, {x[1]})});
      }
      return algebra_.Div(x[0], x[1]);
    default: return graph_.AddMap(map.op, x, type);
  }
}

}  // namespace nestor
