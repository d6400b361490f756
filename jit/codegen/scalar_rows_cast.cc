// Casts, each of one rounding. Beyond single conversions of x86:
//
// Float to integer: x86 gives the least integer for any value that does not fit, so NaN is made 0
// before, and values above the range are corrected after, or clamped before.
//
// Unsigned numbers that fill their lanes, where x86 converts signed ones: the first bit of a u32 is
// flipped, which subtracts 2^31; or its halves are converted, and their sum rounds once. Floats
// from 2^31 on have 2^31 subtracted before conversion.
//
// Integers of 32 and 64 bits to types with fewer bits: if a number has more bits than the result
// keeps plus two, its lowest bits are folded into one above them that says whether any was set
// ("round to odd": Boldo and Melquiond, 2008). The number left converts exactly, and is then
// rounded once.
//
// AVX2 does not convert i64, and neither set converts u64. To f64: the halves are put below the
// exponents of 2^52 and 2^84 (for i64, those of i64 + 2^63), where they are exact, and the sum
// of the two rounds once. From f64: halves again, read from the low bits of sums with 2^52 and
// 1.5 2^52.
#include "jit/codegen/scalar_rows_expansions.h"

namespace nestor::jit {
namespace {

Operand Convert(ValueBuilder& b, Lane from, Lane to, Operand v) {
  return from == to ? v : b.Vector(Opcode::kConvert, to, {v}, static_cast<int64_t>(from));
}

// ---- Integer to float

// v, or, if its magnitude has more than `limit` bits, v with its low bits folded into one.
// low_bits = 3:   ..0000 -> ..0000    ..0001 -> ..1000, as 001 + 111 carries into bit 3
Operand FoldLowBits(ValueBuilder& b, DType type, Operand v, int limit, int low_bits) {
  const Lane lane = b.LaneOf(type);
  const auto vector = [&](Opcode opcode, Operand x, Operand y) {
    return b.Vector(opcode, lane, {x, y});
  };
  const Operand low = b.ConstantOf(lane, (uint64_t{1} << low_bits) - 1);
  const Operand high = b.ConstantOf(lane, ~uint64_t{0} << low_bits);
  const Operand carried = vector(Opcode::kAdd, vector(Opcode::kAnd, v, low), low);
  const Operand folded = vector(Opcode::kAnd, vector(Opcode::kOr, carried, v), high);
  const int sign = IsSigned(type);
  const Operand offset =
      sign ? vector(Opcode::kAdd, v, b.ConstantOf(lane, uint64_t{1} << limit)) : v;
  // 0 where -2^limit <= v < 2^limit (for unsigned types 0 <= v < 2^limit).
  const Operand beyond = b.Vector(Opcode::kShiftRight, lane, {offset}, limit + sign);
  return b.Select(b.Compare(Predicate::kEqual, lane, beyond, b.ConstantOf(lane, 0)), lane, v,
                  folded);
}

Operand I64ToF64(ValueBuilder& b, DType from, Operand v) {
  if (IsSigned(from) && HasConversion(b.isa(), Lane::kI64, Lane::kF64))
    return Convert(b, Lane::kI64, Lane::kF64, v);
  const auto constant = [&](uint64_t bits) { return b.ConstantOf(Lane::kI64, bits); };
  const uint64_t sign = IsSigned(from) ? 0x80000000 : 0;
  Operand low = b.Vector(Opcode::kAnd, Lane::kI64, {v, constant(0xffffffff)});
  // 2^52 + low.
  low = b.Vector(Opcode::kOr, Lane::kI64, {low, constant(0x4330000000000000)});
  Operand high = b.Vector(Opcode::kShiftRight, Lane::kI64, {v}, 32);
  // 2^84 + 2^32 (sign + high).
  high = b.Vector(Opcode::kXor, Lane::kI64, {high, constant(0x4530000000000000 | sign)});
  // 2^32 high - 2^52.
  high = b.Vector(Opcode::kSub, Lane::kF64, {high, constant(0x4530000000100000 | sign)});
  return b.Vector(Opcode::kAdd, Lane::kF64, {high, low});
}

// A folded number has at most 53 bits left, any other at most 41: both are exact.
Operand FoldedI64ToF64(ValueBuilder& b, DType from, Operand v) {
  return I64ToF64(b, from, FoldLowBits(b, from, v, 40, 11));
}

// ---- Float to float

TypedValue FloatToFloat(const Expansion& x) {
  ValueBuilder& b = x.builder;
  if (x.type() == DType::kF64) return NarrowedF64(b, x.target, x.a());
  if (x.target == DType::kF64) return {x.target, Convert(b, Lane::kF32, Lane::kF64, x.a())};
  return Narrowed(b, x.target, x.a());
}

TypedValue I64ToFloat(const Expansion& x) {
  ValueBuilder& b = x.builder;
  if (x.target == DType::kF64) return {x.target, I64ToF64(b, x.type(), x.a())};
  const bool direct = IsSigned(x.type()) && !IsNarrowFloat(x.target) &&
                      HasConversion(b.isa(), Lane::kI64, Lane::kF32);
  if (direct) return {x.target, Convert(b, Lane::kI64, Lane::kF32, x.a())};
  return NarrowedF64(b, x.target, FoldedI64ToF64(b, x.type(), x.a()));
}

// An f32 holds a folded number exactly: only its own bits are left.
TypedValue IntegerToFloat(const Expansion& x) {
  ValueBuilder& b = x.builder;
  if (x.lane() == Lane::kI64) return I64ToFloat(x);
  const TypeFacts &from = FactsOf(x.type()), &to = FactsOf(x.target),
                  &single = FactsOf(DType::kF32);
  const int beyond = from.significand - single.significand;
  const bool folds = IsNarrowFloat(x.target) && beyond > 0;
  const Operand v = folds ? FoldLowBits(b, x.type(), x.a(), single.significand, beyond) : x.a();
  const Operand converted = I32ToFloat(b, x.type(), LaneOf(x.target), v);
  if (from.significand <= to.significand) return {x.target, converted};
  return NarrowedOwn(b, x.target, converted);
}

// ---- Float to integer

// A NaN is converted to 0, as the notation has it.
Operand ZeroForNan(ValueBuilder& b, Lane lane, Operand v) {
  return b.Select(b.Compare(Predicate::kEqual, lane, v, v), lane, v, b.ConstantOf(lane, 0));
}

// The lanes have one width. The least integer with all bits flipped is the greatest.
// x86 gives 0x80.. for what does not fit: right for numbers that are too small, and to be flipped
// to 0x7f.. for those that are too large.
Operand TruncateSaturating(ValueBuilder& b, Lane from, Lane to, Operand v) {
  const int bytes = LaneBytes(to);
  const Operand number = ZeroForNan(b, from, v);
  const Operand end = b.FloatOf(from, bytes == 4 ? 0x1p31 : 0x1p63);
  const Operand above = b.LanesOf(b.Compare(Predicate::kLessEqual, from, end, number), bytes);
  return b.Vector(Opcode::kXor, to, {Convert(b, from, to, number), above});
}

Operand RoundedF64(ValueBuilder& b, Operand v, RoundingMode mode) {
  return b.Vector(Opcode::kRound, Lane::kF64, {v}, static_cast<int64_t>(mode));
}

// -1 where end <= v, else 0.
Operand LanesFrom(ValueBuilder& b, Lane lane, double end, Operand v) {
  return b.LanesOf(b.Compare(Predicate::kLessEqual, lane, b.FloatOf(lane, end), v),
                   LaneBytes(lane));
}

// Modulo 2^64. REQUIRES: whole numbers in [-2^63, 2^64].
Operand WholeToI64(ValueBuilder& b, Operand n) {
  const auto real = [&](Opcode opcode, Operand x, Operand y) {
    return b.Vector(opcode, Lane::kF64, {x, y});
  };
  const auto bits = [&](Opcode opcode, Operand x, Operand y) {
    return b.Vector(opcode, Lane::kI64, {x, y});
  };
  const auto number = [&](double value) { return b.FloatOf(Lane::kF64, value); };
  // n = 2^32 high + low, 0 <= low < 2^32, all exact.
  const Operand high = RoundedF64(b, real(Opcode::kMul, n, number(0x1p-32)), RoundingMode::kFloor);
  const Operand low = b.Vector(Opcode::kFma, Lane::kF64, {high, number(-0x1p32), n});
  const Operand high_bits =
      b.Vector(Opcode::kShiftLeft, Lane::kI64, {real(Opcode::kAdd, high, number(0x1.8p52))}, 32);
  const Operand low_bits =
      bits(Opcode::kXor, real(Opcode::kAdd, low, number(0x1p52)), number(0x1p52));
  return bits(Opcode::kOr, high_bits, low_bits);
}

// Rounded and clamped as a float, so that the conversion itself is exact.
Operand F64ToI64(ValueBuilder& b, Operand v) {
  if (HasConversion(b.isa(), Lane::kF64, Lane::kI64))
    return TruncateSaturating(b, Lane::kF64, Lane::kI64, v);
  Operand n = RoundedF64(b, ZeroForNan(b, Lane::kF64, v), RoundingMode::kTruncate);
  n = b.Vector(Opcode::kMinX86, Lane::kF64, {n, b.FloatOf(Lane::kF64, 0x1p63)});
  n = b.Vector(Opcode::kMaxX86, Lane::kF64, {n, b.FloatOf(Lane::kF64, -0x1p63)});
  const Operand above = LanesFrom(b, Lane::kF64, 0x1p63, n);
  // 2^63 was converted to the least integer.
  return b.Vector(Opcode::kXor, Lane::kI64, {WholeToI64(b, n), above});
}

// max_x86 gives its second operand for a NaN.
Operand ZeroForNegative(ValueBuilder& b, Lane lane, Operand v) {
  return b.Vector(Opcode::kMaxX86, lane, {v, b.FloatOf(lane, 0)});
}

Operand F64ToU64(ValueBuilder& b, Operand v) {
  Operand n = RoundedF64(b, ZeroForNegative(b, Lane::kF64, v), RoundingMode::kTruncate);
  n = b.Vector(Opcode::kMinX86, Lane::kF64, {n, b.FloatOf(Lane::kF64, 0x1p64)});
  return b.Vector(Opcode::kOr, Lane::kI64, {WholeToI64(b, n), LanesFrom(b, Lane::kF64, 0x1p64, n)});
}

Operand F64ToU32(ValueBuilder& b, Operand v) {
  const Operand number = ZeroForNegative(b, Lane::kF64, v);
  const Operand below_end =
      b.Vector(Opcode::kMinX86, Lane::kF64, {number, b.FloatOf(Lane::kF64, 0xffffffff)});
  return WholeToU32(b, RoundedF64(b, below_end, RoundingMode::kTruncate));
}

// Numbers from 2^31 on are converted less 2^31, which is exact; then that bit is set.
Operand F32ToU32(ValueBuilder& b, Operand v) {
  const Operand n = ZeroForNegative(b, Lane::kF32, v);
  const Operand large = LanesFrom(b, Lane::kF32, 0x1p31, n);
  const Operand part = b.Vector(Opcode::kAnd, Lane::kF32, {large, b.FloatOf(Lane::kF32, 0x1p31)});
  const Operand rest =
      Convert(b, Lane::kF32, Lane::kI32, b.Vector(Opcode::kSub, Lane::kF32, {n, part}));
  const Operand bit =
      b.Vector(Opcode::kAnd, Lane::kI32, {large, b.ConstantOf(Lane::kI32, SignBitOf(Lane::kI32))});
  const Operand whole = b.Vector(Opcode::kOr, Lane::kI32, {rest, bit});
  return b.Vector(Opcode::kOr, Lane::kI32, {whole, LanesFrom(b, Lane::kF32, 0x1p32, n)});
}

// Converts lanes of `from` to 32 bits, clamped before.
Operand ToNarrow(ValueBuilder& b, Lane from, Operand v, DType to) {
  // max_x86 gives its second operand for a NaN: 0, the least unsigned number.
  if (IsSigned(to)) v = ZeroForNan(b, from, v);
  const Scalar least = Lowest(to), greatest = Highest(to);
  v = b.Vector(Opcode::kMaxX86, from, {v, b.FloatOf(from, least.ToDouble())});
  v = b.Vector(Opcode::kMinX86, from, {v, b.FloatOf(from, greatest.ToDouble())});
  return Convert(b, from, Lane::kI32, v);
}

// By the width of the result, and its signedness where x86 has only signed conversions. All
// saturate, and NaN gives 0.
Operand FloatToInteger(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane from = x.lane();
  if (ByteSize(x.target) < 4) return ToNarrow(b, from, x.a(), x.target);
  if (LaneOf(x.target) == Lane::kI64) {
    const Operand wide = Convert(b, from, Lane::kF64, x.a());
    return IsUnsigned(x.target) ? F64ToU64(b, wide) : F64ToI64(b, wide);
  }
  if (IsUnsigned(x.target)) return from == Lane::kF32 ? F32ToU32(b, x.a()) : F64ToU32(b, x.a());
  if (from == Lane::kF32) return TruncateSaturating(b, from, Lane::kI32, x.a());
  const Operand number = ZeroForNan(b, from, x.a());
  const Operand below_end = b.Vector(Opcode::kMinX86, from, {number, b.FloatOf(from, 0x7fffffff)});
  return Convert(b, from, Lane::kI32, below_end);
}

// ---- Booleans

TypedValue ToBool(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Operand zero = b.ConstantOf(x.lane(), 0);
  if (IsFloat(x.lane())) return b.Compare(Predicate::kNotEqual, x.lane(), x.a(), zero);
  return b.Not(b.Compare(Predicate::kEqual, x.lane(), x.a(), zero));
}

TypedValue FromBool(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane lane = b.LaneOf(x.target);
  const Operand one = IsFloat(lane) ? b.FloatOf(lane, 1) : b.ConstantOf(lane, 1);
  return {x.target, b.Vector(Opcode::kAnd, lane, {b.LanesOf(x.args[0], LaneBytes(lane)), one})};
}

// Lanes are widened by their sign, which a u32 does not have.
TypedValue IntegerToInteger(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane to = b.LaneOf(x.target);
  Operand v = Convert(b, x.lane(), to, x.a());
  if (LaneBytes(x.lane()) < LaneBytes(to) && FillsUnsigned(x.lane(), x.type())) {
    v = b.Vector(Opcode::kAnd, Lane::kI64, {v, b.ConstantOf(Lane::kI64, 0xffffffff)});
  }
  return Narrowed(b, x.target, v);
}

}  // namespace

// u32: to f64 by way of i32 with the sign bit turned, exactly; to f32 as 2^16 * high + low, rounded
// once by the multiply-add.
Operand I32ToFloat(ValueBuilder& b, DType from, Lane to, Operand v) {
  if (!FillsUnsigned(Lane::kI32, from)) return Convert(b, Lane::kI32, to, v);
  if (to == Lane::kF64) {
    const Operand turned =
        b.Vector(Opcode::kXor, Lane::kI32, {v, b.ConstantOf(Lane::kI32, SignBitOf(Lane::kI32))});
    return b.Vector(Opcode::kAdd, to, {Convert(b, Lane::kI32, to, turned), b.FloatOf(to, 0x1p31)});
  }
  const Operand high = b.Vector(Opcode::kShiftRight, Lane::kI32, {v}, 16);
  const Operand low = b.Vector(Opcode::kAnd, Lane::kI32, {v, b.ConstantOf(Lane::kI32, 0xffff)});
  return b.Vector(
      Opcode::kFma, to,
      {Convert(b, Lane::kI32, to, high), b.FloatOf(to, 0x1p16), Convert(b, Lane::kI32, to, low)});
}

Operand WholeToU32(ValueBuilder& b, Operand whole) {
  const Operand less = b.Vector(Opcode::kSub, Lane::kF64, {whole, b.FloatOf(Lane::kF64, 0x1p31)});
  const Operand turned = Convert(b, Lane::kF64, Lane::kI32, less);
  return b.Vector(Opcode::kXor, Lane::kI32,
                  {turned, b.ConstantOf(Lane::kI32, SignBitOf(Lane::kI32))});
}

TypedValue ExpandCast(const Expansion& x) {
  if (x.type() == x.target) return x.args[0];
  if (x.target == DType::kBool) return ToBool(x);
  if (x.type() == DType::kBool) return FromBool(x);
  if (IsFloat(x.target)) return IsFloat(x.type()) ? FloatToFloat(x) : IntegerToFloat(x);
  if (IsFloat(x.type())) return {x.target, FloatToInteger(x)};
  return IntegerToInteger(x);
}

}  // namespace nestor::jit
