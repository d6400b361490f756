// Integer division and remainder, rounded down; by zero they give 0. x86 has no vector
// form.
//
// i32: in f64. |a / b| <= 2^31 / |b|, so the quotient's rounding error is below
// 2^31 / |b| 2^-53 < 1 / |b|; a quotient that is not an integer is at least 1 / |b| away
// from every integer, so rounding neither reaches nor passes one, and its floor is that of a / b.
// -2^31 / -1 converts to INT32_MIN, which is the required wrapping.
// u32: likewise, below 2^32 / |b|.
// 8 and 16 bits: likewise in f32: 2^16 / |b| 2^-24 < 1 / |b|.
// i64: in general registers, lane by lane.
// u64: through i64 (Warren, "Hacker's Delight", unsigned from signed division): twice the
// quotient of n / 2 is that of n or one less. A divisor from 2^63 on goes into n once at most.
#include "absl/functional/function_ref.h"
#include "jit/codegen/scalar_rows_expansions.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

// floor(a / b) where b is not 0, else undefined.
Operand QuotientThroughFloats(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane real = ByteSize(x.type()) == 4 ? Lane::kF64 : Lane::kF32;
  const auto convert = [&](Operand v) { return I32ToFloat(b, x.type(), real, v); };
  Operand q = b.Vector(Opcode::kDiv, real, {convert(x.a()), convert(x.b())});
  q = b.Vector(Opcode::kRound, real, {q},
               static_cast<int64_t>(NESTOR_MUTANT("floordiv_truncates") ? RoundingMode::kTruncate
                                                                        : RoundingMode::kFloor));
  if (FillsUnsigned(x.lane(), x.type())) return WholeToU32(b, q);
  return b.Vector(Opcode::kConvert, Lane::kI32, {q}, static_cast<int64_t>(real));
}

// The result, but 0 where b is 0.
// A constant divisor, the usual case, needs no test.
TypedValue ZeroByZero(const Expansion& x, Operand result) {
  ValueBuilder& b = x.builder;
  const Lane lane = x.lane();
  const absl::optional<uint64_t> divisor = b.KnownBits(x.b());
  if (divisor && *divisor != 0) return {x.type(), result};
  const Operand zero = b.ConstantOf(lane, 0);
  return {x.type(), b.Select(b.Compare(Predicate::kEqual, lane, x.b(), zero), lane, zero, result)};
}

// Lane `lane` of v in a general register. A shift by a power of two is one instruction.
Operand LaneOfVector(ValueBuilder& b, Operand v, int lane) {
  if (v.kind == Operand::kConstant) v = b.Vector(Opcode::kMove, Lane::kI64, {v});
  for (int shift = 1; shift <= lane; shift *= 2) {
    if (lane & shift) v = b.Vector(Opcode::kLaneShift, Lane::kI64, {v}, shift);
  }
  return b.General(Opcode::kLaneG, {v});
}

// Applies f to each pair of lanes.
Operand LaneByLane(ValueBuilder& b, Operand n, Operand d,
                   absl::FunctionRef<Operand(Operand, Operand)> f) {
  const Operand numbers = b.list().AddConstant({Lane::kI64, 0, 1});
  Operand all;
  for (int i = 0; i < b.lanes(); ++i) {
    const Operand y = f(LaneOfVector(b, n, i), LaneOfVector(b, d, i));
    // There is no insertion of one lane for all widths; a broadcast and a blend do it.
    const Operand everywhere = b.Vector(Opcode::kBroadcastGeneral, Lane::kI64, {y});
    if (i == 0) {
      all = everywhere;
    } else {
      const TypedValue here =
          b.Compare(Predicate::kEqual, Lane::kI64, numbers, b.ConstantOf(Lane::kI64, i));
      all = b.Select(here, Lane::kI64, everywhere, all);
    }
  }
  return all;
}

// Divides n by d in general registers. `opcode`: kFloorDivG or kFloorModG, which do not allow 0; d
// is then 1 instead.
Operand DivideI64(ValueBuilder& b, Opcode opcode, Operand dividends, Operand divisors) {
  return LaneByLane(b, dividends, divisors, [&](Operand n, Operand d) {
    const auto equal = static_cast<int64_t>(Condition::kEqual);
    const Operand is_zero = b.General(Opcode::kCompareG, {d, Operand::Immediate(0)}, equal);
    return b.General(opcode, {n, b.General(Opcode::kOrG, {d, is_zero})});
  });
}

// a - b * quotient, which is exact modulo 2^n.
Operand Remainder(const Expansion& x, Operand quotient) {
  ValueBuilder& b = x.builder;
  const bool wide = x.lane() == Lane::kI64;
  Operand product =
      wide ? MulOfI64(b, quotient, x.b()) : b.Vector(Opcode::kMul, Lane::kI32, {quotient, x.b()});
  if (NESTOR_MUTANT("mod_of_wrong_sign")) {
    product = b.Vector(Opcode::kXor, x.lane(), {product, b.ConstantOf(x.lane(), ~uint64_t{0})});
  }
  return b.Vector(Opcode::kSub, x.lane(), {x.a(), product});
}

// -1 where r is not below the divisor, else 0.
Operand LanesNotBelow(const Expansion& x, Operand r) {
  return x.builder.LanesOf(x.builder.Not(LessOfIntegers(x.builder, x.type(), r, x.b())), 8);
}

// The quotient for u64; undefined where b is 0.
Operand QuotientU64(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane lane = x.lane();
  const Operand half = b.Vector(Opcode::kShiftRight, lane, {x.a()}, 1);
  const Operand twice =
      b.Vector(Opcode::kShiftLeft, lane, {DivideI64(b, Opcode::kFloorDivG, half, x.b())}, 1);
  const Operand missed = LanesNotBelow(x, Remainder(x, twice));
  const Operand small = b.Vector(Opcode::kSub, lane, {twice, missed});
  const Operand once =
      b.Vector(Opcode::kAnd, lane, {LanesNotBelow(x, x.a()), b.ConstantOf(lane, 1)});
  const TypedValue is_large = b.Compare(Predicate::kLess, lane, x.b(), b.ConstantOf(lane, 0));
  return b.Select(is_large, lane, once, small);
}

}  // namespace

TypedValue ExpandFloorDiv(const Expansion& x) {
  if (x.type() == DType::kI64)
    return ZeroByZero(x, DivideI64(x.builder, Opcode::kFloorDivG, x.a(), x.b()));
  if (x.lane() == Lane::kI64) return ZeroByZero(x, QuotientU64(x));
  return ZeroByZero(x, Narrowed(x.builder, x.type(), QuotientThroughFloats(x)).operand);
}

TypedValue ExpandMod(const Expansion& x) {
  // The remainder by 1 is 0.
  if (x.type() == DType::kI64)
    return {x.type(), DivideI64(x.builder, Opcode::kFloorModG, x.a(), x.b())};
  const Operand quotient = x.lane() == Lane::kI64 ? QuotientU64(x) : QuotientThroughFloats(x);
  return ZeroByZero(x, Remainder(x, quotient));
}

}  // namespace nestor::jit
