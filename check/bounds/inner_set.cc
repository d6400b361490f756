// Why rounding keeps the law: it is monotone. Say an enclosure is [a, b], and low and high
// are numbers with a <= low and high <= b. Then round(a) <= round(low) and round(high) <=
// round(b), and the rounded enclosure reaches from round(a) to round(b). So low may even lie
// above high by a slack for roundings of f64: where both round to one value, that value is
// in the rounded enclosure; else nothing is said.
#include "check/bounds/inner_set.h"

#include <cmath>
#include <limits>

namespace nestor {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// low and high are a float's set; see the header.
NodeId IsProper(Doubles& f64, NodeId low, NodeId high) {
  const NodeId finite = f64.Apply(ScalarOp::kLt, f64.Sub(high, low), kInfinity);
  return f64.And(f64.Apply(ScalarOp::kLe, low, high),
                 f64.Or(finite, f64.Apply(ScalarOp::kEq, low, high)));
}

}  // namespace

NodeId Doubles::Number(double value, NodeId x) {
  return graph_.AddSplat(graph_.AddConstant(Scalar::Float(DType::kF64, value)),
                         Shape(graph_.shape(x)));
}

NodeId Doubles::Truth(bool value, NodeId x) {
  return graph_.AddSplat(graph_.AddConstant(Scalar::Of(DType::kBool, value)),
                         Shape(graph_.shape(x)));
}

NodeId Doubles::OnlyWhere(NodeId condition, NodeId x) {
  return Where(condition, x, Number(kNaN, x));
}

NodeId Doubles::Nearest(DType type, NodeId x) {
  if (type == DType::kF64) return x;
  const NodeId accumulated = graph_.AddCast(x, AccumulatorType(type));
  return graph_.AddCast(graph_.AddCast(accumulated, type), DType::kF64);
}

NodeId Doubles::Up(NodeId x, int ulps) {
  const double step = std::ldexp(ulps, -52);
  return Max(Mul(x, 1 + step), Mul(x, 1 - step));
}

NodeId Doubles::Down(NodeId x, int ulps) {
  const double step = std::ldexp(ulps, -52);
  return Min(Mul(x, 1 + step), Mul(x, 1 - step));
}

FloatSet PointSet(NodeId x) { return {x, x, true}; }

TruthSet DecidedSet(Doubles& f64, NodeId x) { return {x, f64.Not(x), true}; }

bool IsDecided(Doubles& f64, const TruthSet& x) {
  return x.exclusive &&
         (f64.Not(x.may_be_true) == x.may_be_false || f64.Not(x.may_be_false) == x.may_be_true);
}

FloatSet RoundedSet(Doubles& f64, DType type, const FloatSet& x) {
  if (x.rounded) return x;
  const NodeId low = f64.Nearest(type, x.low), high = f64.Nearest(type, x.high);
  if (low == high) return PointSet(low);
  const NodeId proper = IsProper(f64, low, high);
  return {f64.OnlyWhere(proper, low), f64.OnlyWhere(proper, high), true};
}

}  // namespace nestor
