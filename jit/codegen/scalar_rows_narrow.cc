// Values of types that are narrower than their lanes: integers of 8 and 16 bits, and floats that
// are held as f32, each of which has its own rounding here.
//
// f64 to such a float: adding and subtracting C >= |a|, with C's last place one unit of the result
// at |a|, rounds to nearest even, where the additions round.
#include <cmath>

#include "jit/codegen/scalar_rows.h"
#include "jit/codegen/scalar_rows_expansions.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

// ---- Integers

// The low bits, extended by the type's own signedness. REQUIRES: an integer.
Operand NarrowedInteger(ValueBuilder& builder, DType type, Operand lanes) {
  const Lane lane = builder.LaneOf(type);
  const int rest = 8 * LaneBytes(lane) - BitWidth(type);
  if (rest == 0) return lanes;
  if (IsUnsigned(type)) {
    return builder.Vector(Opcode::kAnd, lane,
                          {lanes, builder.ConstantOf(lane, Highest(type).bits)});
  }
  const Operand top = builder.Vector(Opcode::kShiftLeft, lane, {lanes}, rest);
  return builder.Vector(Opcode::kShiftRightSigned, lane, {top}, rest);
}

// ---- Floats

// To 8 bits of precision by integer arithmetic, to nearest even: the carry of adding half a unit
// less the parity goes into the kept half, and on into the exponent. There is no carry if the lower
// half is 0; then a NaN stays one, otherwise it is restored (`any_nan`).
Operand RoundToBF16(ValueBuilder& builder, Operand f, bool any_nan) {
  const auto constant = [&](uint64_t bits) { return builder.ConstantOf(Lane::kI32, bits); };
  Operand odd = builder.Vector(Opcode::kShiftRight, Lane::kI32, {f}, 16);
  odd = builder.Vector(Opcode::kAnd, Lane::kI32, {odd, constant(1)});
  Operand r = builder.Vector(Opcode::kAdd, Lane::kI32, {f, constant(0x7fff)});
  r = builder.Vector(Opcode::kAdd, Lane::kI32, {r, odd});
  const bool by_bits = MasksAreVectors(builder.isa());
  if (any_nan && by_bits) {
    // A mask of ones is a NaN.
    const TypedValue nan = builder.Compare(Predicate::kUnordered, Lane::kF32, f, f);
    r = builder.Vector(Opcode::kOr, Lane::kF32, {r, nan.operand});
  }
  r = builder.Vector(Opcode::kAnd, Lane::kI32, {r, constant(0xffff0000)});
  if (!any_nan || by_bits) return r;
  const TypedValue number = builder.Compare(Predicate::kEqual, Lane::kF32, f, f);
  return builder.Select(number, Lane::kF32, r, builder.ConstantOf(Lane::kF32, 0x7fc00000));
}

// An f64 rounded to the type's significand, or to a multiple of its least subnormal where that is
// coarser. The anchor is a power of two whose last place is the unit of the result: adding it drops
// the bits below, to nearest even, and subtracting it is exact.
Operand RoundF64(ValueBuilder& b, Operand v, const TypeFacts& to) {
  constexpr int kDigits = FactsOf(DType::kF64).significand;
  const Lane lane = Lane::kF64;
  const auto vector = [&](Opcode opcode, Operand x, Operand y) {
    return b.Vector(opcode, lane, {x, y});
  };
  const auto power_of_two = [&](int e) { return b.FloatOf(lane, std::ldexp(1.0, e)); };
  const int dropped = kDigits - to.significand;
  const Operand absolute = vector(Opcode::kAnd, v, b.ConstantOf(lane, SignBitOf(lane) - 1));
  // All numbers from 2^128 on become infinite; a NaN stays.
  const Operand magnitude = vector(Opcode::kMinX86, power_of_two(200), absolute);
  const Operand power = vector(Opcode::kAnd, magnitude, b.ConstantOf(lane, 0x7ff0000000000000));
  const Operand scaled = vector(Opcode::kMul, power, power_of_two(dropped));
  const Operand anchor = vector(Opcode::kMaxX86, scaled, power_of_two(to.least_exponent + dropped));
  const Operand rounded = vector(Opcode::kSub, vector(Opcode::kAdd, magnitude, anchor), anchor);
  const Operand sign = vector(Opcode::kAnd, v, b.ConstantOf(lane, SignBitOf(lane)));
  return vector(Opcode::kOr, rounded, sign);
}

// `any_nan`: a lane may hold a NaN whose lower half is not 0, and rounding to bf16 must keep it
// one.
TypedValue NarrowedBy(ValueBuilder& builder, DType type, Operand lanes, bool any_nan) {
  if (IsInteger(type)) return {type, NarrowedInteger(builder, type, lanes)};
  switch (type) {
    case DType::kBF16:
      if (NESTOR_MUTANT("bf16_truncated")) return {type, WithCleanNaN(builder, type, lanes)};
      return {type, RoundToBF16(builder, lanes, any_nan)};
    case DType::kF16: return {type, builder.Vector(Opcode::kRoundToF16, Lane::kF32, {lanes})};
    default: return {type, lanes};
  }
}

}  // namespace

TypedValue Narrowed(ValueBuilder& builder, DType type, Operand lanes) {
  return NarrowedBy(builder, type, lanes, /*any_nan=*/true);
}

TypedValue NarrowedOwn(ValueBuilder& builder, DType type, Operand lanes) {
  return NarrowedBy(builder, type, lanes, /*any_nan=*/false);
}

Operand WithCleanNaN(ValueBuilder& builder, DType type, Operand lanes) {
  if (type != DType::kBF16) return lanes;
  return builder.Vector(Opcode::kAnd, Lane::kF32,
                        {lanes, builder.ConstantOf(Lane::kF32, 0xffff0000)});
}

// Once rounded, a number is exact in f32, except for those that become infinite.
TypedValue NarrowedF64(ValueBuilder& builder, DType type, Operand v) {
  const TypeFacts &to = FactsOf(type), &single = FactsOf(DType::kF32);
  const Operand rounded = IsNarrowFloat(type) ? RoundF64(builder, v, to) : v;
  const Operand lanes =
      builder.Vector(Opcode::kConvert, Lane::kF32, {rounded}, static_cast<int64_t>(Lane::kF64));
  if (to.least_exponent != single.least_exponent) return Narrowed(builder, type, lanes);
  return {type, WithCleanNaN(builder, type, lanes)};
}

}  // namespace nestor::jit
