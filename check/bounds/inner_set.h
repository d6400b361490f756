// Inner sets: subsets of the values that a node of the micro-op graph may give.
//
// The oracle (interp/reference.h) gives each element of each node an enclosure: a set of
// all allowed values. An inner set is a subset of it, as nodes of the graph that compute
// its ends. For each kind, element by element:
//  - a float's ends are f64. Either both are finite, low <= high, and each number in
//    between lies in the enclosure; or both are the same infinity, which the enclosure
//    holds; or both are NaN, and nothing is known. Ends order -0 below +0, as there.
//    A set that is not rounded may also reach from a finite end beyond the type's range to
//    the infinity that this end rounds to.
//  - an integer's set is one member of the enclosure, where it is known;
//  - a bool's set is empty where nothing is known.
#ifndef NESTOR_CHECK_BOUNDS_INNER_SET_H_
#define NESTOR_CHECK_BOUNDS_INNER_SET_H_

#include "absl/types/variant.h"
#include "uops/graph.h"

namespace nestor {

struct FloatSet {
  NodeId low, high;  // one node where the set is a point at each element
  // The ends are values of the type. A product is not rounded: its enclosure holds the exact
  // value, too.
  bool rounded = false;

  bool IsPoint() const { return low == high; }
};

struct IntegerSet {
  NodeId value;  // of the integer's type
  NodeId known;  // a bool; not valid: everywhere
};

struct TruthSet {
  NodeId may_be_true, may_be_false;
  bool exclusive = false;  // at most one of the two holds, at each element
};

using InnerSet = absl::variant<FloatSet, IntegerSet, TruthSet>;

// Builds f64 arithmetic in a graph.
class Doubles {
 public:
  explicit Doubles(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  // At every point of x's shape.
  NodeId Number(double value, NodeId x);
  NodeId Truth(bool value, NodeId x);

  NodeId Apply(ScalarOp op, NodeId a) { return graph_.AddMap(op, {a}); }
  NodeId Apply(ScalarOp op, NodeId a, NodeId b) { return graph_.AddMap(op, {a, b}); }
  NodeId Apply(ScalarOp op, NodeId a, double b) { return Apply(op, a, Number(b, a)); }

  NodeId Add(NodeId a, NodeId b) { return Apply(ScalarOp::kAdd, a, b); }
  NodeId Sub(NodeId a, NodeId b) { return Apply(ScalarOp::kSub, a, b); }
  NodeId Mul(NodeId a, NodeId b) { return Apply(ScalarOp::kMul, a, b); }
  NodeId Mul(NodeId a, double b) { return Apply(ScalarOp::kMul, a, b); }
  NodeId Max(NodeId a, NodeId b) { return Apply(ScalarOp::kMax, a, b); }
  NodeId Max(NodeId a, double b) { return Apply(ScalarOp::kMax, a, b); }
  NodeId Min(NodeId a, NodeId b) { return Apply(ScalarOp::kMin, a, b); }
  NodeId Min(NodeId a, double b) { return Apply(ScalarOp::kMin, a, b); }
  NodeId Neg(NodeId a) { return Apply(ScalarOp::kNeg, a); }
  NodeId Abs(NodeId a) { return Apply(ScalarOp::kAbs, a); }
  NodeId And(NodeId a, NodeId b) { return Apply(ScalarOp::kAnd, a, b); }
  NodeId Or(NodeId a, NodeId b) { return Apply(ScalarOp::kOr, a, b); }
  NodeId Not(NodeId a) { return Apply(ScalarOp::kNot, a); }
  NodeId Where(NodeId condition, NodeId a, NodeId b) {
    return graph_.AddMap(ScalarOp::kSelect, {condition, a, b});
  }
  NodeId Where(NodeId condition, double a, double b) {
    return Where(condition, Number(a, condition), Number(b, condition));
  }
  // x where the condition holds, else NaN.
  NodeId OnlyWhere(NodeId condition, NodeId x);
  // false where x is NaN.
  NodeId IsNumber(NodeId x) { return Apply(ScalarOp::kEq, x, x); }

  // The value of `type`, a float type, that x rounds to, as f64. Into 16 bits by way of
  // f32, as their rows compute.
  NodeId Nearest(DType type, NodeId x);
  // Beyond x by far more than two roundings of f64 and far less than one of f32; infinities and
  // zeros are left as they are. REQUIRES: ulps is 1 to 64.
  NodeId Up(NodeId x, int ulps);
  NodeId Down(NodeId x, int ulps);

 private:
  Graph& graph_;
};

// The set of a node that has one value at each element, an f64 or a bool.
FloatSet PointSet(NodeId x);
TruthSet DecidedSet(Doubles& f64, NodeId x);
// Whether the bool is known everywhere.
bool IsDecided(Doubles& f64, const TruthSet& x);

// The set of the values that the members round to. Nothing is known of an element where no value of
// the type is left. An f64's set is a point already.
FloatSet RoundedSet(Doubles& f64, DType type, const FloatSet& x);

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_INNER_SET_H_
