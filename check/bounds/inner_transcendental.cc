// The oracle's enclosure holds all values of the type within the row's ulps of the exact image. An
// f64 row gives the exact image at the operand's ends with an error of 2 units of 2^-52. For one
// ulp u of the type, round(y - u/2) is a value within u of y: the nearest value of the type lies at
// most u/2 from the rounded number. For k ulps only k - 1 are taken, so that rounding at a power of
// two, where the ulp doubles, stays within k, too.
//
// It is not known to the last bit on which side of a power of two y lies, so the lesser
// ulp is taken.
#include <cmath>

#include "check/bounds/inner_rows.h"

namespace nestor {
namespace {

// The error of an f64 row is 2 ulps of an exact value that lies a little below or above.
constexpr int kSlack = 8;

// At most the ulp of f32 at y: the power of two in y's exponent, by its bits.
NodeId UlpAtMost(Doubles& f64, NodeId y) {
  Graph& graph = f64.graph();
  const NodeId bits =
      f64.Apply(ScalarOp::kToBits, f64.Mul(f64.Abs(y), 1 - std::ldexp(kSlack, -52)));
  const NodeId exponent =
      graph.AddSplat(graph.AddConstant(Scalar::I64(int64_t{0x7ff} << 52)), Shape(graph.shape(y)));
  const NodeId power = f64.Apply(ScalarOp::kFromBits, f64.And(bits, exponent));
  return f64.Max(f64.Mul(power, 0x1p-23), 0x1p-149);
}

// An end for an exact value near y: y itself where it is 0, else a value beyond y with
// the same sign.
NodeId Widened(Doubles& f64, NodeId y, int ulps, bool downwards) {
  const double step = ulps <= 1 ? 0.5 * ulps : ulps - 1;
  const NodeId error = f64.Mul(UlpAtMost(f64, y), step);
  const NodeId moved =
      downwards ? f64.Sub(f64.Up(y, kSlack), error) : f64.Add(f64.Down(y, kSlack), error);
  const NodeId crosses = f64.Apply(downwards ? ScalarOp::kGt : ScalarOp::kLt, y, 0);
  const NodeId held = downwards ? f64.Max(moved, 0.0) : f64.Min(moved, -0.0);
  return f64.Where(f64.Apply(ScalarOp::kEq, y, 0), y, f64.Where(crosses, held, moved));
}

// The hull of the row's values at the corners of the operands' sets.
FloatSet AtCorners(Doubles& f64, ScalarOp op, absl::Span<const FloatSet> args) {
  FloatSet hull;
  for (size_t corner = 0; corner < size_t{1} << args.size(); ++corner) {
    NodeList place;
    for (size_t i = 0; i < args.size(); ++i)
      place.push_back(corner >> i & 1 ? args[i].high : args[i].low);
    const NodeId value = f64.graph().AddMap(op, place);
    hull.low = hull.low.valid() && hull.low != value ? f64.Min(hull.low, value) : value;
    hull.high = hull.high.valid() && hull.high != value ? f64.Max(hull.high, value) : value;
  }
  return hull;
}

// A power with base 1 or exponent 0 is 1 without error.
FloatSet OneWhereExact(Doubles& f64, absl::Span<const FloatSet> args, const FloatSet& power) {
  const auto is = [&](const FloatSet& x, double value) {
    return f64.And(f64.Apply(ScalarOp::kEq, x.low, value), f64.Apply(ScalarOp::kEq, x.high, value));
  };
  const NodeId exact = f64.Or(is(args[0], 1), is(args[1], 0)), one = f64.Number(1, exact);
  return {f64.Where(exact, one, power.low), f64.Where(exact, one, power.high)};
}

}  // namespace

FloatSet InnerTranscendental(Doubles& f64, ScalarOp op, DType type,
                             absl::Span<const FloatSet> args) {
  if (type == DType::kF64) {
    NodeList values;
    for (const FloatSet& arg : args) values.push_back(arg.low);
    return PointSet(f64.graph().AddMap(op, values));
  }
  const FloatSet exact = AtCorners(f64, op, args);
  const int ulps = Row(op).ulp32;
  const FloatSet widened{Widened(f64, exact.low, ulps, true),
                         Widened(f64, exact.high, ulps, false)};
  return RoundedSet(f64, type, op == ScalarOp::kPow ? OneWhereExact(f64, args, widened) : widened);
}

}  // namespace nestor
