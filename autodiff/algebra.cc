// Built by rule alone, gradients would compute much that cancels: the adjoint of x / s, divided by
// s and multiplied again. The constructors below simplify at the moment of construction, by one
// look at their operands, so no pass over the graph is needed; each applies its rules again to what
// it builds. The rules hold in real arithmetic (gradients are defined up to rounding), each with
// its equation beside it.
#include "autodiff/algebra.h"

#include <algorithm>
#include <numeric>

namespace nestor {

NodeId Algebra::Splat(double value, DType type, const Shape& shape) {
  return graph_.AddSplat(graph_.AddConstant(Scalar::Float(type, value)), shape);
}

// A repetition is a read that only adds or permutes axes, without conditions.
bool Algebra::Match(NodeId x, ScalarOp op, NodeList& operands) {
  if (const Map* map = graph_.As<Map>(x)) {
    if (map->op != op) return false;
    operands = map->args;
    return true;
  }
  const Reindex* found = graph_.As<Reindex>(x);
  if (found == nullptr || !found->conditions.empty()) return false;
  const Reindex reindex = *found;
  const Map* map = graph_.As<Map>(reindex.x);
  if (map == nullptr || map->op != op) return false;
  for (size_t j = 0; j < reindex.place.size(); ++j) {
    const int64_t var = graph_.pool().VarValue(reindex.place[j]);
    if (var < 0 || graph_.shape(x)[var] != graph_.shape(reindex.x)[j]) return false;
  }
  const NodeList inner = map->args;
  operands.clear();
  for (NodeId arg : inner)
    operands.push_back(graph_.AddReindex(arg, graph_.shape(x), reindex.place));
  return true;
}

NodeId Algebra::Neg(NodeId a) {
  NodeList inner;
  if (Match(a, ScalarOp::kNeg, inner)) return inner[0];  // -(-a) = a
  return graph_.AddMap(ScalarOp::kNeg, {a});
}

// Signs and common divisors move outwards.
NodeId Algebra::Add(NodeId a, NodeId b) {
  NodeList x, y;
  if (Match(b, ScalarOp::kNeg, y)) {  // a + -b = a - b
    NodeList p, q;
    if (Match(a, ScalarOp::kDiv, p) && Match(y[0], ScalarOp::kDiv, q) && p[1] == q[1]) {
      return Div(graph_.AddMap(ScalarOp::kSub, {p[0], q[0]}), p[1]);  // a/s - b/s = (a - b)/s
    }
    return graph_.AddMap(ScalarOp::kSub, {a, y[0]});
  }
  if (Match(a, ScalarOp::kNeg, x)) return Add(b, a);  // -a + b = b - a
  if (Match(a, ScalarOp::kDiv, x) && Match(b, ScalarOp::kDiv, y) && x[1] == y[1]) {
    return Div(Add(x[0], y[0]), x[1]);  // a/s + b/s = (a + b)/s
  }
  return graph_.AddMap(ScalarOp::kAdd, {a, b});
}

// numerator / divisor, where the forward program computes it.
NodeId Algebra::ForwardQuotient(NodeId numerator, NodeId divisor) {
  const NodeId quotient = graph_.AddMap(ScalarOp::kDiv, {numerator, divisor});
  return IsForward(quotient) ? quotient : NodeId();
}

// a/s * e over a value that the forward program has.
NodeId Algebra::Reused(NodeId quotient, NodeId factor) {
  NodeList parts, inner;
  if (!Match(quotient, ScalarOp::kDiv, parts)) return NodeId();
  if (const NodeId known = ForwardQuotient(factor, parts[1]); known.valid()) {
    return Mul(parts[0], known);  // a/s * e = a * (e/s)
  }
  if (!Match(factor, ScalarOp::kExp, inner)) return NodeId();
  const NodeId log = graph_.AddMap(ScalarOp::kLog, {parts[1]});
  const NodeId exponent = graph_.AddMap(ScalarOp::kSub, {inner[0], log});
  if (!IsForward(exponent)) return NodeId();
  // a/s * exp(z) = a * exp(z - log s).
  return Mul(parts[0], graph_.AddMap(ScalarOp::kExp, {exponent}));
}

NodeId Algebra::Mul(NodeId a, NodeId b) {
  NodeList inner;
  if (Match(a, ScalarOp::kNeg, inner)) return Neg(Mul(inner[0], b));  // -a * b = -(a * b)
  if (const NodeId reused = Reused(a, b); reused.valid()) return reused;
  if (const NodeId reused = Reused(b, a); reused.valid()) return reused;
  return graph_.AddMap(ScalarOp::kMul, {a, b});
}

NodeId Algebra::Div(NodeId a, NodeId b) {
  NodeList inner;
  if (Match(a, ScalarOp::kNeg, inner)) return Neg(Div(inner[0], b));  // -a / b = -(a / b)
  return graph_.AddMap(ScalarOp::kDiv, {a, b});
}

// Only a reindex tells: it is constant along the axes that its place and conditions do not name.
bool Algebra::DependsOn(NodeId x, absl::Span<const int> axes) const {
  const Reindex* reindex = graph_.As<Reindex>(x);
  if (reindex == nullptr) return true;
  std::vector<int64_t> vars;
  for (IndexId e : reindex->place) CollectVars(graph_.pool(), e, vars);
  for (IndexId c : reindex->conditions) CollectVars(graph_.pool(), c, vars);
  return std::any_of(axes.begin(), axes.end(),
                     [&](int axis) { return std::binary_search(vars.begin(), vars.end(), axis); });
}

// The sum of x over `axes`, with the factors that do not vary along them taken out: the sum of
// a[i,k] b[i] over k is b[i] times the sum of a[i,k]. The adjoint of a broadcast is such a sum, and
// the product would otherwise be done once for each k.
NodeId Algebra::SumOut(NodeId x, absl::Span<const int> axes) {
  if (axes.empty()) return x;
  NodeList inner;
  if (Match(x, ScalarOp::kNeg, inner)) return Neg(SumOut(inner[0], axes));  // sum -a = -sum a
  for (const ScalarOp op : {ScalarOp::kMul, ScalarOp::kDiv}) {
    if (!Match(x, op, inner)) continue;
    for (int side : {1, 0}) {
      if (DependsOn(inner[side], axes) || (op == ScalarOp::kDiv && side == 0)) continue;
      // The factor does not depend on the axes, so it is taken at their start.
      Shape kept;
      IndexList place(graph_.rank(x), graph_.pool().Const(0));
      for (int axis = 0; axis < graph_.rank(x); ++axis) {
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
        place[axis] = graph_.pool().Var(static_cast<int64_t>(kept.size()));
        kept.push_back(graph_.shape(x)[axis]);
      }
      const Reindex factor = *graph_.As<Reindex>(inner[side]);
      IndexList factor_place, conditions;
      for (IndexId e : factor.place)
        factor_place.push_back(SubstituteVars(graph_.pool(), e, place));
      for (IndexId c : factor.conditions)
        conditions.push_back(SubstituteVars(graph_.pool(), c, place));
      const NodeId outside =
          graph_.AddReindex(factor.x, kept, factor_place, factor.fill, conditions);
      const NodeId sum = SumOut(inner[1 - side], axes);
      return op == ScalarOp::kMul ? Mul(sum, outside) : Div(sum, outside);  // sum(a b) = b sum(a)
    }
  }
  return graph_.AddReduce(ReduceOp::kSum, x, axes);
}

}  // namespace nestor
