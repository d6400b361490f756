// Comparisons, choice, logic, shifts, and the bits of floats.
//
// Comparisons are those of signed lanes: unsigned numbers that fill their lanes have their first
// bit flipped before.
//
// Shifts: x86 gives 0 (or the sign) for counts not in [0, width) of the lane; a narrow integer is
// extended to a lane of 32 bits, where counts from its width to 31 give the right result without
// further work. AVX2 has no arithmetic shift of 64 bits. Lanes of 8 bits are shifted in pairs; bits
// that have crossed from one to the other are removed.
//
// Ones are counted in pairs, fours and bytes of a lane at once; then the bytes are added,
// by shifts, since AVX2 has no product of 64 bits. Leading zeros are the width
// less the ones that there are when every bit below the first one is set.
#include <algorithm>
#include <limits>

#include "jit/codegen/scalar_rows_expansions.h"

namespace nestor::jit {
namespace {

// a < b or a <= b; for integers the latter is !(b < a).
TypedValue Ordered(const Expansion& x, Predicate predicate, Operand a, Operand b) {
  if (IsFloat(x.lane())) return x.builder.Compare(predicate, x.lane(), a, b);
  if (predicate == Predicate::kLess) return LessOfIntegers(x.builder, x.type(), a, b);
  return x.builder.Not(LessOfIntegers(x.builder, x.type(), b, a));
}

TypedValue Logic(const Expansion& x, Opcode of_lanes, Opcode of_masks) {
  if (x.type() == DType::kBool) return x.builder.Combine(of_masks, x.args[0], x.args[1]);
  return {x.type(), x.builder.Vector(of_lanes, x.lane(), {x.a(), x.b()})};
}

// The count if it is the same in every lane: a number in [0, width], where `width` stands for all
// counts out of range.
// A negative count has the largest bits, so it is out of range as well.
absl::optional<int> KnownCount(const Expansion& x) {
  const absl::optional<uint64_t> bits = x.builder.KnownBits(x.b());
  if (!bits) return absl::nullopt;
  const auto width = static_cast<uint64_t>(BitWidth(x.type()));
  return static_cast<int>(std::min(*bits, width));
}

// For negative numbers the complement is shifted: the zeros that come in are ones in the result. A
// count out of range leaves the sign.
Operand ShiftI64RightBy(ValueBuilder& b, Operand v, Operand count) {
  const TypedValue negative =
      b.Compare(Predicate::kLess, Lane::kI64, v, b.ConstantOf(Lane::kI64, 0));
  const Operand sign = b.LanesOf(negative, 8);
  const Operand shifted = b.Vector(Opcode::kShiftRightBy, Lane::kI64,
                                   {b.Vector(Opcode::kXor, Lane::kI64, {v, sign}), count});
  return b.Vector(Opcode::kXor, Lane::kI64, {shifted, sign});
}

// The logical shift leaves the sign at bit m = 63 - count; (t ^ 2^m) - 2^m extends it.
Operand ShiftI64Right(ValueBuilder& b, Operand v, int count) {
  if (count == 0) return v;
  const Operand sign = b.ConstantOf(Lane::kI64, uint64_t{1} << (63 - count));
  const Operand shifted = b.Vector(Opcode::kShiftRight, Lane::kI64, {v}, count);
  return b.Vector(Opcode::kSub, Lane::kI64,
                  {b.Vector(Opcode::kXor, Lane::kI64, {shifted, sign}), sign});
}

// Operations on pairs of 8-bit lanes.
ValueBuilder Pairs(ValueBuilder& b) {
  return ValueBuilder(b.list(), b.lanes() / 2, LaneBytes(Lane::kI16));
}

Operand ShiftI8Left(ValueBuilder& b, Operand v, int count) {
  const Operand shifted = Pairs(b).Vector(Opcode::kShiftLeft, Lane::kI16, {v}, count);
  return b.Vector(Opcode::kAnd, Lane::kI8,
                  {shifted, b.ConstantOf(Lane::kI8, uint64_t{0xff} << count)});
}

// The sign is then at bit m = 7 - count; (t ^ 2^m) - 2^m extends it.
Operand ShiftI8Right(ValueBuilder& b, Operand v, int count, bool is_signed) {
  const Operand crossed = Pairs(b).Vector(Opcode::kShiftRight, Lane::kI16, {v}, count);
  const Operand shifted = b.Vector(Opcode::kAnd, Lane::kI8,
                                   {crossed, b.ConstantOf(Lane::kI8, uint64_t{0xff} >> count)});
  if (!is_signed) return shifted;
  const Operand sign = b.ConstantOf(Lane::kI8, uint64_t{0x80} >> count);
  return b.Vector(Opcode::kSub, Lane::kI8,
                  {b.Vector(Opcode::kXor, Lane::kI8, {shifted, sign}), sign});
}

// The same byte in all bytes of a lane.
Operand Bytes(ValueBuilder& b, Lane lane, uint64_t byte) {
  return b.ConstantOf(lane, byte * 0x0101010101010101);
}

// The bits of the type alone, without their extension to a lane.
// An i8 of -1 in a lane of 32 bits has 32 ones; 8 of them count.
Operand OwnBits(const Expansion& x) {
  if (BitWidth(x.type()) == 8 * LaneBytes(x.lane()) || IsUnsigned(x.type())) return x.a();
  const uint64_t own = (uint64_t{1} << BitWidth(x.type())) - 1;
  return x.builder.Vector(Opcode::kAnd, x.lane(), {x.a(), x.builder.ConstantOf(x.lane(), own)});
}

// (v & mask) + (v >> shift & mask)
// 0b1101 with shift 1 and mask 0b0101: 0b0101 + 0b0100 = 0b1001, which is 2 and 1 ones
Operand AddNeighbours(ValueBuilder& b, Lane lane, Operand v, int shift, uint64_t mask) {
  const Operand fields = Bytes(b, lane, mask),
                next = b.Vector(Opcode::kShiftRight, lane, {v}, shift);
  return b.Vector(
      Opcode::kAdd, lane,
      {b.Vector(Opcode::kAnd, lane, {v, fields}), b.Vector(Opcode::kAnd, lane, {next, fields})});
}

// (Warren, "Hacker's Delight", 2nd ed., 2013, ch. 5; leading zeros likewise.)
Operand CountOnes(ValueBuilder& b, Lane lane, Operand v) {
  v = AddNeighbours(b, lane, v, 1, 0x55);
  v = AddNeighbours(b, lane, v, 2, 0x33);
  v = AddNeighbours(b, lane, v, 4, 0x0f);
  for (int shift = 8; shift < 8 * LaneBytes(lane); shift *= 2) {
    v = b.Vector(Opcode::kAdd, lane, {v, b.Vector(Opcode::kShiftRight, lane, {v}, shift)});
  }
  return b.Vector(Opcode::kAnd, lane, {v, b.ConstantOf(lane, 0x7f)});
}

}  // namespace

TypedValue ExpandPopcount(const Expansion& x) {
  return {x.type(), CountOnes(x.builder, x.lane(), OwnBits(x))};
}

// After the shifts every bit below the first one is set.
TypedValue ExpandClz(const Expansion& x) {
  ValueBuilder& b = x.builder;
  Operand v = OwnBits(x);
  for (int shift = 1; shift < BitWidth(x.type()); shift *= 2) {
    v = b.Vector(Opcode::kOr, x.lane(), {v, b.Vector(Opcode::kShiftRight, x.lane(), {v}, shift)});
  }
  const Operand width = b.ConstantOf(x.lane(), static_cast<uint64_t>(BitWidth(x.type())));
  return {x.type(), b.Vector(Opcode::kSub, x.lane(), {width, CountOnes(b, x.lane(), v)})};
}

TypedValue ExpandDotHalves(const Expansion& x) {
  return {x.type(), x.builder.Vector(Opcode::kDotHalves, x.lane(), {x.a(), x.b(), x.c()})};
}

// NaN alone differs from itself.
TypedValue ExpandIsNan(const Expansion& x) {
  return x.builder.Compare(Predicate::kNotEqual, x.lane(), x.a(), x.a());
}

TypedValue ExpandIsInf(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Operand magnitude =
      b.Vector(Opcode::kAnd, x.lane(), {x.a(), b.ConstantOf(x.lane(), SignBitOf(x.lane()) - 1)});
  const Operand infinity = b.FloatOf(x.lane(), std::numeric_limits<double>::infinity());
  return b.Compare(Predicate::kEqual, x.lane(), magnitude, infinity);
}

TypedValue ExpandCopy(const Expansion& x) { return x.args[0]; }

TypedValue ExpandEq(const Expansion& x) {
  if (x.type() == DType::kBool) return x.builder.Not(ExpandNe(x));
  return x.builder.Compare(Predicate::kEqual, x.lane(), x.a(), x.b());
}

TypedValue ExpandNe(const Expansion& x) {
  if (x.type() == DType::kBool) return x.builder.Combine(Opcode::kMaskXor, x.args[0], x.args[1]);
  if (IsFloat(x.lane())) return x.builder.Compare(Predicate::kNotEqual, x.lane(), x.a(), x.b());
  return x.builder.Not(ExpandEq(x));
}

TypedValue ExpandLt(const Expansion& x) { return Ordered(x, Predicate::kLess, x.a(), x.b()); }
TypedValue ExpandLe(const Expansion& x) { return Ordered(x, Predicate::kLessEqual, x.a(), x.b()); }
TypedValue ExpandGt(const Expansion& x) { return Ordered(x, Predicate::kLess, x.b(), x.a()); }
TypedValue ExpandGe(const Expansion& x) { return Ordered(x, Predicate::kLessEqual, x.b(), x.a()); }

TypedValue ExpandSelect(const Expansion& x) {
  ValueBuilder& b = x.builder;
  if (x.type() != DType::kBool) return {x.type(), b.Select(x.args[0], x.lane(), x.b(), x.c())};
  return b.Combine(Opcode::kMaskOr, b.Combine(Opcode::kMaskAnd, x.args[0], x.args[1]),
                   b.Combine(Opcode::kMaskAndNot, x.args[0], x.args[2]));
}

TypedValue ExpandNot(const Expansion& x) {
  if (x.type() == DType::kBool) return x.builder.Not(x.args[0]);
  const uint64_t ones = IsUnsigned(x.type()) ? Highest(x.type()).bits : ~uint64_t{0};
  return {x.type(),
          x.builder.Vector(Opcode::kXor, x.lane(), {x.a(), x.builder.ConstantOf(x.lane(), ones)})};
}

TypedValue ExpandAnd(const Expansion& x) { return Logic(x, Opcode::kAnd, Opcode::kMaskAnd); }
TypedValue ExpandOr(const Expansion& x) { return Logic(x, Opcode::kOr, Opcode::kMaskOr); }
TypedValue ExpandXor(const Expansion& x) { return Logic(x, Opcode::kXor, Opcode::kMaskXor); }

// A count that is known gives the cheaper instruction.
TypedValue ExpandShl(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const absl::optional<int> count = KnownCount(x);
  if (!count)
    return Narrowed(b, x.type(), b.Vector(Opcode::kShiftLeftBy, x.lane(), {x.a(), x.b()}));
  if (*count == BitWidth(x.type())) return b.Constant(Scalar::Zero(x.type()));
  if (x.lane() == Lane::kI8) return {x.type(), ShiftI8Left(b, x.a(), *count)};
  return Narrowed(b, x.type(), b.Vector(Opcode::kShiftLeft, x.lane(), {x.a()}, *count));
}

// With a count that is known, the shift by an immediate; else one count per lane.
TypedValue ExpandShr(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const bool is_signed = IsSigned(x.type());
  const bool composed =
      is_signed && x.lane() == Lane::kI64 && !b.Has(Opcode::kShiftRightSigned, x.lane());
  const absl::optional<int> known = KnownCount(x);
  if (!known) {
    if (composed) return {x.type(), ShiftI64RightBy(b, x.a(), x.b())};
    const Opcode opcode = is_signed ? Opcode::kShiftRightSignedBy : Opcode::kShiftRightBy;
    return {x.type(), b.Vector(opcode, x.lane(), {x.a(), x.b()})};
  }
  if (!is_signed && *known == BitWidth(x.type())) return b.Constant(Scalar::Zero(x.type()));
  // A signed number shifted by all but one bit is its sign.
  const int count = std::min(*known, BitWidth(x.type()) - 1);
  if (composed) return {x.type(), ShiftI64Right(b, x.a(), count)};
  if (x.lane() == Lane::kI8) return {x.type(), ShiftI8Right(b, x.a(), count, is_signed)};
  const Opcode opcode = is_signed ? Opcode::kShiftRightSigned : Opcode::kShiftRight;
  return {x.type(), b.Vector(opcode, x.lane(), {x.a()}, count)};
}

// Any NaN becomes the one NaN of its type; bodies of transcendentals do not depend on which it is.
TypedValue ExpandToBits(const Expansion& x) {
  if (x.in_transcendental) return {x.target, x.a()};
  ValueBuilder& b = x.builder;
  const TypedValue number = b.Compare(Predicate::kEqual, x.lane(), x.a(), x.a());
  const Operand nan = b.ConstantOf(
      x.lane(), Scalar::Float(x.type(), std::numeric_limits<double>::quiet_NaN()).bits);
  return {x.target, b.Select(number, x.lane(), x.a(), nan)};
}

TypedValue ExpandFromBits(const Expansion& x) { return {x.target, x.a()}; }

}  // namespace nestor::jit
