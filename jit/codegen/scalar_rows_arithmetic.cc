// Arithmetic rows. Most are one operation, narrowed to the type. Rows that x86 lacks:
//
// max and min of floats (IEEE 754-2019). max_x86(a, b) gives b for a NaN and for two
// zeros, so max_x86(a, b) and max_x86(b, a) differ in these cases only, and there are a and b
// themselves. For min their Or is right: a NaN stays one, and -0 wins. For max, zeros need And, and
// a comparison must restore a NaN; EVEX has a maximum that needs nothing for zeros. With a
// constant that is not NaN one operation is enough, unless the constant is the zero that loses.
//
// AVX2 lacks products and min and max of 64-bit integers; the latter use a comparison instead. No
// instruction set has products of 8 bits: those of lanes of 16 bits are right in their low halves,
// and the upper halves' products come out in place if one factor stays where it is.
#include <cmath>
#include <initializer_list>

#include "jit/codegen/scalar_rows_expansions.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

// For a row that is one operation, narrowed.
TypedValue Direct(const Expansion& x, Opcode opcode) {
  Operand operands[3];
  for (size_t i = 0; i < x.args.size(); ++i) operands[i] = x.args[i].operand;
  const auto used = absl::MakeConstSpan(operands, x.args.size());
  return NarrowedOwn(x.builder, x.type(), x.builder.Vector(opcode, x.lane(), used));
}

// The result needs no narrowing.
TypedValue Rounding(const Expansion& x, RoundingMode mode) {
  return {x.type(),
          x.builder.Vector(Opcode::kRound, x.lane(), {x.a()}, static_cast<int64_t>(mode))};
}

Operand Magnitude(const Expansion& x, Operand v) {
  return x.builder.Vector(Opcode::kAnd, x.lane(),
                          {v, x.builder.ConstantOf(x.lane(), SignBitOf(x.lane()) - 1)});
}

Operand WithSign(const Expansion& x, Operand v) {
  return x.builder.Vector(Opcode::kOr, x.lane(),
                          {v, x.builder.ConstantOf(x.lane(), SignBitOf(x.lane()))});
}

// 1 or -1 with a's sign where |a| > 0, else a.
Operand SignOfFloat(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane lane = x.lane();
  const Operand sign = b.Vector(Opcode::kAnd, lane, {x.a(), b.ConstantOf(lane, SignBitOf(lane))});
  const Operand one = b.Vector(Opcode::kOr, lane, {sign, b.FloatOf(lane, 1)});
  const TypedValue moves =
      b.Compare(Predicate::kLess, lane, b.ConstantOf(lane, 0), Magnitude(x, x.a()));
  return b.Select(moves, lane, one, x.a());
}

// A mask is -1 or 0 in each lane, so (x < 0) - (0 < x) is the sign.
Operand SignOfI64(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Operand zero = b.ConstantOf(Lane::kI64, 0);
  const Operand negative = b.LanesOf(b.Compare(Predicate::kLess, Lane::kI64, x.a(), zero), 8);
  const Operand positive = b.LanesOf(b.Compare(Predicate::kLess, Lane::kI64, zero, x.a()), 8);
  return b.Vector(Opcode::kSub, Lane::kI64, {negative, positive});
}

Operand OneWhereNotZero(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const TypedValue zero = b.Compare(Predicate::kEqual, x.lane(), x.a(), b.ConstantOf(x.lane(), 0));
  return b.Vector(Opcode::kAnd, x.lane(),
                  {b.LanesOf(b.Not(zero), LaneBytes(x.lane())), b.ConstantOf(x.lane(), 1)});
}

// (a ^ s) - s, where s is -1 for a negative a.
Operand AbsOfI64(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const TypedValue negative =
      b.Compare(Predicate::kLess, Lane::kI64, x.a(), b.ConstantOf(Lane::kI64, 0));
  const Operand sign = b.LanesOf(negative, 8);
  return b.Vector(Opcode::kSub, Lane::kI64,
                  {b.Vector(Opcode::kXor, Lane::kI64, {x.a(), sign}), sign});
}

// See the head of the file. `opcode`: kMaxX86 or kMinX86.
Operand MaxOrMinWithConstant(const Expansion& x, Opcode opcode, Operand v, Operand constant,
                             uint64_t bits) {
  const Operand m = x.builder.Vector(opcode, x.lane(), {constant, v});
  if (opcode == Opcode::kMaxX86 && bits == 0) return Magnitude(x, m);
  if (opcode == Opcode::kMinX86 && bits == SignBitOf(x.lane())) return WithSign(x, m);
  return m;
}

Operand MaxOrMinOfFloats(const Expansion& x, Opcode opcode) {
  ValueBuilder& b = x.builder;
  const Lane lane = x.lane();
  const bool first = x.a().kind == Operand::kConstant;
  const Operand constant = first ? x.a() : x.b();
  const absl::optional<uint64_t> bits = b.KnownBits(constant);
  if (bits && !Scalar{lane == Lane::kF64 ? DType::kF64 : DType::kF32, *bits}.IsNaN()) {
    return MaxOrMinWithConstant(x, opcode, first ? x.b() : x.a(), constant, *bits);
  }
  if (opcode == Opcode::kMaxX86 && b.Has(Opcode::kMaxNumber, lane)) {
    const TypedValue nan = b.Compare(Predicate::kUnordered, lane, x.a(), x.b());
    return b.Select(nan, lane, b.FloatOf(lane, std::nan("")),
                    b.Vector(Opcode::kMaxNumber, lane, {x.a(), x.b()}));
  }
  const Operand s = b.Vector(opcode, lane, {x.a(), x.b()});
  const Operand d = b.Vector(opcode, lane, {x.b(), x.a()});
  if (opcode == Opcode::kMinX86) return b.Vector(Opcode::kOr, lane, {s, d});
  const TypedValue nan = b.Compare(Predicate::kUnordered, lane, x.a(), x.b());
  const Operand greater =
      b.Vector(Opcode::kOr, lane, {b.Vector(Opcode::kAnd, lane, {s, d}), nan.operand});
  return WithCleanNaN(b, x.type(), greater);  // the mask has all bits set
}

// Scaling takes three steps of nearly equal powers of two, of which only the last rounds: a small
// `a` is made large before them, so that it stays away from subnormal numbers until then.
struct ScaleLimits {
  double small, up;    // numbers below `small` are scaled by 2^up before
  double most;         // powers beyond it give 0 or infinity for every `a`
  double biased_zero;  // whose low bits are the exponent of 1
  int exponent_shift;
};
// Adding 1.5 * 2^23 puts an integer into the low bits of the fraction. With the bias of the
// exponent in the same sum, a shift by 23 then makes 2^n of n.
constexpr ScaleLimits kScaleF32 = {0x1p-40, 100, 300, 0x1.8p23 + 127, 23};
constexpr ScaleLimits kScaleF64 = {0x1p-500, 600, 2200, 0x1.8p52 + 1023, 52};

// a * 2^floor(b). A power beyond those of normal numbers does not exist as a factor, hence the
// three: n = third + third + (n - 2 third), each made by putting it into the exponent's bits.
Operand ScaledBySteps(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane lane = x.lane();
  const ScaleLimits& limits = lane == Lane::kF64 ? kScaleF64 : kScaleF32;
  const auto number = [&](double v) { return b.FloatOf(lane, v); };
  const auto vector = [&](Opcode opcode, std::initializer_list<Operand> operands,
                          int64_t immediate = 0) {
    return b.Vector(opcode, lane, operands, immediate);
  };
  const auto round = [&](Operand v, RoundingMode mode) {
    return vector(Opcode::kRound, {v}, static_cast<int64_t>(mode));
  };
  const auto power = [&](Operand n) {
    return vector(Opcode::kShiftLeft, {vector(Opcode::kAdd, {n, number(limits.biased_zero)})},
                  limits.exponent_shift);
  };
  const TypedValue is_small =
      b.Compare(Predicate::kLess, lane, Magnitude(x, x.a()), number(limits.small));
  const Operand a = vector(
      Opcode::kMul, {x.a(), b.Select(is_small, lane, number(std::exp2(limits.up)), number(1))});
  Operand n = round(x.b(), RoundingMode::kFloor);
  n = vector(Opcode::kSub, {n, b.Select(is_small, lane, number(limits.up), number(0))});
  n = vector(Opcode::kMinX86,
             {number(limits.most), vector(Opcode::kMaxX86, {number(-limits.most), n})});
  const Operand third = round(vector(Opcode::kMul, {n, number(1.0 / 3)}), RoundingMode::kNearest);
  const Operand step = power(third),
                last = power(vector(Opcode::kSub, {vector(Opcode::kSub, {n, third}), third}));
  const Operand y =
      vector(Opcode::kMul, {vector(Opcode::kMul, {vector(Opcode::kMul, {a, step}), step}), last});
  const TypedValue finite =
      b.Compare(Predicate::kLess, lane, Magnitude(x, x.b()), number(HUGE_VAL));
  // For b = inf: a * inf; for b = -inf: a * 0; for a NaN: NaN.
  const Operand beyond = vector(Opcode::kMul, {x.a(), vector(Opcode::kMaxX86, {number(0), x.b()})});
  return b.Select(finite, lane, y, beyond);
}

// Lanes of 16 bits hold two bytes each. x * y is right in the low byte; (x >> 8) * (y & 0xff00) in
// the upper one.
Operand MulOfI8(ValueBuilder& builder, Operand x, Operand y) {
  const Lane lane = Lane::kI16;
  ValueBuilder b(builder.list(), builder.lanes() / 2, LaneBytes(lane));
  const Operand low_half = b.ConstantOf(lane, 0x00ff), upper_half = b.ConstantOf(lane, 0xff00);
  const Operand low =
      b.Vector(Opcode::kAnd, lane, {b.Vector(Opcode::kMul, lane, {x, y}), low_half});
  const Operand factor = b.Vector(Opcode::kAnd, lane, {y, upper_half});
  const Operand upper =
      b.Vector(Opcode::kMul, lane, {b.Vector(Opcode::kShiftRight, lane, {x}, 8), factor});
  if (NESTOR_MUTANT("odd_bytes_not_multiplied")) return low;
  return b.Vector(Opcode::kOr, lane, {low, upper});
}

// Integers of 64 bits on AVX2 by a comparison; all others have an instruction.
TypedValue MaxOrMin(const Expansion& x, Opcode opcode) {
  ValueBuilder& b = x.builder;
  if (IsFloat(x.type())) return {x.type(), MaxOrMinOfFloats(x, opcode)};
  const Lane lane = x.lane();
  if (b.Has(opcode, lane)) {
    const Opcode of_unsigned =
        opcode == Opcode::kMinX86 ? Opcode::kMinUnsigned : Opcode::kMaxUnsigned;
    const bool fills = FillsUnsigned(lane, x.type());
    return {x.type(), b.Vector(fills ? of_unsigned : opcode, lane, {x.a(), x.b()})};
  }
  const TypedValue less = LessOfIntegers(b, x.type(), x.a(), x.b());
  if (opcode == Opcode::kMinX86) return {x.type(), b.Select(less, lane, x.a(), x.b())};
  return {x.type(), b.Select(less, lane, x.b(), x.a())};
}

}  // namespace

// Without an instruction it is lo lo + 2^32 (hi lo + lo hi).
Operand MulOfI64(ValueBuilder& b, Operand x, Operand y) {
  const Lane lane = Lane::kI64;
  if (b.Has(Opcode::kMul, lane)) return b.Vector(Opcode::kMul, lane, {x, y});
  const auto high = [&](Operand v) { return b.Vector(Opcode::kShiftRight, lane, {v}, 32); };
  const Operand cross = b.Vector(Opcode::kAdd, lane,
                                 {b.Vector(Opcode::kMulU32, lane, {high(x), y}),
                                  b.Vector(Opcode::kMulU32, lane, {high(y), x})});
  const Operand low = b.Vector(Opcode::kMulU32, lane, {x, y});
  return b.Vector(Opcode::kAdd, lane, {low, b.Vector(Opcode::kShiftLeft, lane, {cross}, 32)});
}

TypedValue ExpandNeg(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane lane = x.lane();
  if (IsFloat(lane))
    return {x.type(), b.Vector(Opcode::kXor, lane, {x.a(), b.ConstantOf(lane, SignBitOf(lane))})};
  return Narrowed(b, x.type(), b.Vector(Opcode::kSub, lane, {b.ConstantOf(lane, 0), x.a()}));
}

// max(-a, a) for integers; the least one stays as it is, which is how it wraps.
TypedValue ExpandAbs(const Expansion& x) {
  ValueBuilder& b = x.builder;
  if (IsFloat(x.type())) return {x.type(), Magnitude(x, x.a())};
  if (IsUnsigned(x.type())) return x.args[0];
  if (x.type() == DType::kI64) return {x.type(), AbsOfI64(x)};
  const Operand negated = b.Vector(Opcode::kSub, x.lane(), {b.ConstantOf(x.lane(), 0), x.a()});
  return Narrowed(b, x.type(), b.Vector(Opcode::kMaxX86, x.lane(), {negated, x.a()}));
}

// min(max(a, -1), 1) for integers.
TypedValue ExpandSign(const Expansion& x) {
  ValueBuilder& b = x.builder;
  if (IsFloat(x.type())) return {x.type(), SignOfFloat(x)};
  if (FillsUnsigned(x.lane(), x.type())) return {x.type(), OneWhereNotZero(x)};
  if (x.type() == DType::kI64) return {x.type(), SignOfI64(x)};
  const Operand above =
      b.Vector(Opcode::kMaxX86, x.lane(), {x.a(), b.ConstantOf(x.lane(), ~uint64_t{0})});
  return {x.type(), b.Vector(Opcode::kMinX86, x.lane(), {above, b.ConstantOf(x.lane(), 1)})};
}

TypedValue ExpandFloor(const Expansion& x) { return Rounding(x, RoundingMode::kFloor); }
TypedValue ExpandCeil(const Expansion& x) { return Rounding(x, RoundingMode::kCeil); }
TypedValue ExpandRound(const Expansion& x) { return Rounding(x, RoundingMode::kNearest); }
TypedValue ExpandTrunc(const Expansion& x) { return Rounding(x, RoundingMode::kTruncate); }
TypedValue ExpandSqrt(const Expansion& x) { return Direct(x, Opcode::kSqrt); }
TypedValue ExpandAdd(const Expansion& x) { return Direct(x, Opcode::kAdd); }
TypedValue ExpandSub(const Expansion& x) { return Direct(x, Opcode::kSub); }
TypedValue ExpandDiv(const Expansion& x) { return Direct(x, Opcode::kDiv); }
TypedValue ExpandFma(const Expansion& x) { return Direct(x, Opcode::kFma); }

TypedValue ExpandMul(const Expansion& x) {
  if (x.lane() == Lane::kI64) return {x.type(), MulOfI64(x.builder, x.a(), x.b())};
  if (x.lane() == Lane::kI8) return {x.type(), MulOfI8(x.builder, x.a(), x.b())};
  return Direct(x, Opcode::kMul);
}

// A NaN stays one even with an infinite power; bodies do not need this.
TypedValue ExpandLdexp(const Expansion& x) {
  ValueBuilder& b = x.builder;
  if (!b.Has(Opcode::kScale, x.lane())) return Narrowed(b, x.type(), ScaledBySteps(x));
  Operand y = b.Vector(Opcode::kScale, x.lane(), {x.a(), x.b()});
  if (!x.in_transcendental)
    y = b.Select(b.Compare(Predicate::kUnordered, x.lane(), x.a(), x.a()), x.lane(), x.a(), y);
  return Narrowed(b, x.type(), y);
}
TypedValue ExpandMax(const Expansion& x) { return MaxOrMin(x, Opcode::kMaxX86); }
TypedValue ExpandMin(const Expansion& x) { return MaxOrMin(x, Opcode::kMinX86); }

}  // namespace nestor::jit
