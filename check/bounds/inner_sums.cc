// The oracle gives the exact sum of n terms that are not zero, off by at most gamma_{n-1} B
// (docs/bounds.md); but where all terms are multiples of 2^g and B <= 2^(g+p), the sum is exact
// in every order, and there is no width to it. So an inner set needs lower bounds of n and B,
// and evidence that the sum is not exact:
//  - n counts the terms whose inner set holds more than 0;
//  - B is P, the sum of the high ends above 0, or P less the sum of all high ends, which
//    is at most the sum of the low ends' magnitudes below 0;
//  - an exact sum's terms are points, so a term whose low end lies below its high end is
//    evidence. So is a term with a bit below 2^g, where all terms are points here. And an
//    exact sum, as that of its positive terms, is a value of the type.
// Where there is no evidence, the sum in f64 is the set: where the oracle's sum is exact, f64's
// is, too; where it is not, the oracle allows for roundings 2^29 times as large as f64's.
//
// One sum counts the terms in whole numbers and the evidence in units of 2^-27: losing some
// evidence beyond 2^26 terms makes the set smaller.
//
// A product is that of the low ends, one member of each set, with the same reasoning.
//
// Overflow needs no care: a low end that rounds to infinity is at most the sum of the positive
// terms, or the product of the factors above 1, so the oracle's set holds infinity, too. Neither
// does a product that loses bits below f64's normal numbers: below f32's normal numbers the oracle
// allows for as much, times the factors above 1.
#include "check/bounds/inner_sums.h"

#include <cmath>
#include <limits>

namespace nestor {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;
constexpr int kPrecision = 24;
// The part of a bound that remains after all roundings of f64 in it and in its sum.
constexpr double kShare = 1 - 0x1p-20;

// ---- Sums, in f32

// The last bit that is set in x; infinite for 0.
// bits & (bits - 1) drops the lowest bit that is set, so x less what is left is that bit's value. A
// power of two has no bit in the fraction, and is its own last bit.
NodeId LastBit(Doubles& f64, NodeId x) {
  Graph& graph = f64.graph();
  const auto integer = [&](int64_t value) {
    return graph.AddSplat(graph.AddConstant(Scalar::I64(value)), Shape(graph.shape(x)));
  };
  const NodeId bits = f64.Apply(ScalarOp::kToBits, x);
  const NodeId others = f64.Apply(ScalarOp::kFromBits, f64.And(bits, f64.Sub(bits, integer(1))));
  const NodeId mantissa = f64.And(bits, integer((int64_t{1} << 52) - 1));
  const NodeId is_power = f64.Apply(ScalarOp::kEq, mantissa, integer(0));
  const NodeId last = f64.Abs(f64.Where(is_power, x, f64.Sub(x, others)));
  const NodeId infinity = f64.Number(std::numeric_limits<double>::infinity(), x);
  return f64.Where(f64.Apply(ScalarOp::kEq, x, 0), infinity, last);
}

struct Terms {
  NodeId count;     // that are not zero
  NodeId evidence;  // that the sum is not exact
};

// REQUIRES: x is a point.
Terms CountPoints(Doubles& f64, const FloatSet& x, NodeId bound, Accumulate accumulate) {
  const NodeId count =
      accumulate(ReduceOp::kSum, f64.Where(f64.Apply(ScalarOp::kNe, x.low, 0), 1, 0));
  const NodeId grid = accumulate(ReduceOp::kMin, LastBit(f64, x.low));
  return {count, f64.Apply(ScalarOp::kLt, f64.Mul(grid, std::ldexp(1.0, kPrecision)), bound)};
}

NodeId IsNoValue(Doubles& f64, NodeId x) {
  return f64.Apply(ScalarOp::kNe, f64.Nearest(DType::kF32, x), x);
}

Terms CountSets(Doubles& f64, const FloatSet& x, NodeId positive, NodeId high,
                Accumulate accumulate) {
  const NodeId changes =
      f64.Or(f64.Apply(ScalarOp::kGt, x.high, 0), f64.Apply(ScalarOp::kLt, x.low, 0));
  const NodeId units = f64.Where(f64.Apply(ScalarOp::kLt, x.low, x.high), 1 + 0x1p-27, 1);
  const NodeId sum = accumulate(ReduceOp::kSum, f64.Where(changes, units, f64.Number(0, units)));
  const NodeId count = f64.Apply(ScalarOp::kFloor, sum);
  const NodeId has_width = f64.Apply(ScalarOp::kLt, count, sum);
  return {count, f64.Or(has_width, f64.Or(IsNoValue(f64, positive), IsNoValue(f64, high)))};
}

// gamma_{count-1} times the bound, or less.
NodeId Error(Doubles& f64, NodeId count, NodeId bound) {
  const NodeId roundings = f64.Max(f64.Apply(ScalarOp::kSub, count, 1), 0);
  return f64.Mul(f64.Mul(roundings, bound), kUnitRoundoff * kShare);
}

FloatSet Sum(Doubles& f64, const FloatSet& x, Accumulate accumulate) {
  const NodeId low = accumulate(ReduceOp::kSum, x.low), high = accumulate(ReduceOp::kSum, x.high);
  const NodeId positive = accumulate(ReduceOp::kSum, f64.Max(x.high, 0));
  const NodeId bound = f64.Max(positive, f64.Sub(positive, high));
  const Terms terms = x.IsPoint() ? CountPoints(f64, x, bound, accumulate)
                                  : CountSets(f64, x, positive, high, accumulate);
  const NodeId error =
      f64.Where(terms.evidence, Error(f64, terms.count, bound), f64.Number(0, bound));
  return RoundedSet(f64, DType::kF32, {f64.Sub(low, error), f64.Add(high, error)});
}

// ---- Products, in f32

FloatSet ProductOf(Doubles& f64, const FloatSet& x, Accumulate accumulate) {
  const NodeId product = accumulate(ReduceOp::kProd, x.low), magnitude = f64.Abs(product);
  const NodeId changes = f64.Where(f64.Apply(ScalarOp::kNe, x.low, 1), 1, 0);
  const NodeId error = Error(f64, accumulate(ReduceOp::kSum, changes), magnitude);
  const NodeId rounds = IsNoValue(f64, product);
  const auto end = [&](NodeId x) { return f64.Where(rounds, x, product); };
  return RoundedSet(f64, DType::kF32, {end(f64.Sub(product, error)), end(f64.Add(product, error))});
}

}  // namespace

// Extrema of the ends; sums and products have rules of their own. The result of a 16-bit type is
// rounded once, as its accumulator is f32.
FloatSet InnerAccumulation(Doubles& f64, ReduceOp op, DType type, const FloatSet& x,
                           Accumulate accumulate) {
  // An f64's set is the result of its accumulation.
  if (type == DType::kF64) return PointSet(accumulate(op, x.low));
  const bool sum = op == ReduceOp::kSum;
  // Products of 16 bits are added unrounded, too: f32 holds them.
  const FloatSet terms = sum ? x : RoundedSet(f64, type, x);
  if (op == ReduceOp::kMax || op == ReduceOp::kMin) {
    return {accumulate(op, terms.low), accumulate(op, terms.high), true};
  }
  const FloatSet total = sum ? Sum(f64, terms, accumulate) : ProductOf(f64, terms, accumulate);
  return type == DType::kF32 ? total : RoundedSet(f64, type, {total.low, total.high});
}

}  // namespace nestor
