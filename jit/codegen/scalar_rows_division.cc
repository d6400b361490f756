// Integer division and remainder, rounded down; by zero they give 0. x86 has no vector
// form.
//
// i32: in f64. |a / b| <= 2^31 / |b|, so the quotient's rounding error is below
// 2^31 / |b| 2^-53 < 1 / |b|; a quotient that is not an integer is at least 1 / |b| away
// from every integer, so rounding neither reaches nor passes one, and its floor is that
// of a / b. -2^31 / -1 converts to INT32_MIN, as it should wrap.
// u8, i8: likewise in f32: 2^8 / |b| 2^-24 < 1 / |b|.
// i64: in general registers, lane by lane.
#include "absl/functional/function_ref.h"
#include "jit/codegen/scalar_rows_expansions.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

// floor(a / b) where b is not 0; else anything.
Operand QuotientThroughFloats(const Expansion& x) {
  ValueBuilder& b = x.builder;
  const Lane real = x.type() == DType::kI32 ? Lane::kF64 : Lane::kF32;
  const auto convert = [&](Operand v) {
    return b.Vector(Opcode::kConvert, real, {v}, static_cast<int64_t>(Lane::kI32));
  };
  Operand q = b.Vector(Opcode::kDiv, real, {convert(x.a()), convert(x.b())});
  q = b.Vector(Opcode::kRound, real, {q}, static_cast<int64_t>(NESTOR_MUTANT("floordiv_truncates") ? RoundingMode::kTruncate
                                                                                                : RoundingMode::kFloor));
  return b.Vector(Opcode::kConvert, Lane::kI32, {q}, static_cast<int64_t>(real));
}

// 0 where b is.
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

// f of each pair of lanes.
Operand LaneByLane(const Expansion& x, absl::FunctionRef<Operand(Operand, Operand)> f) {
  ValueBuilder& b = x.builder;
  const Operand numbers = b.list().AddConstant({Lane::kI64, 0, 1});
  Operand all;
  for (int i = 0; i < b.lanes(); ++i) {
    const Operand y = f(LaneOfVector(b, x.a(), i), LaneOfVector(b, x.b(), i));
    const Operand everywhere = b.Vector(Opcode::kBroadcastGeneral, Lane::kI64, {y});
    if (i == 0) {
      all = everywhere;
    } else {
      const TypedValue here = b.Compare(Predicate::kEqual, Lane::kI64, numbers, b.ConstantOf(Lane::kI64, i));
      all = b.Select(here, Lane::kI64, everywhere, all);
    }
  }
  return all;
}

// n by d in general registers. `opcode`: kFloorDivG or kFloorModG, which take no 0; d is 1
// instead then.
Operand DivideI64(const Expansion& x, Opcode opcode) {
  ValueBuilder& b = x.builder;
  return LaneByLane(x, [&](Operand n, Operand d) {
    const auto equal = static_cast<int64_t>(Condition::kEqual);
    const Operand is_zero = b.General(Opcode::kCompareG, {d, Operand::Immediate(0)}, equal);
    return b.General(opcode, {n, b.General(Opcode::kOrG, {d, is_zero})});
  });
}

}  // namespace

TypedValue ExpandFloorDiv(const Expansion& x) {
  if (x.type() == DType::kI64) return ZeroByZero(x, DivideI64(x, Opcode::kFloorDivG));
  return ZeroByZero(x, Narrowed(x.builder, x.type(), QuotientThroughFloats(x)).operand);
}

TypedValue ExpandMod(const Expansion& x) {
  ValueBuilder& b = x.builder;
  if (x.type() == DType::kI64) return {x.type(), DivideI64(x, Opcode::kFloorModG)};  // by 1: 0
  const Operand product = b.Vector(Opcode::kMul, Lane::kI32, {QuotientThroughFloats(x), x.b()});
  return ZeroByZero(x, b.Vector(Opcode::kSub, Lane::kI32, {x.a(), NESTOR_MUTANT("mod_of_wrong_sign") ? b.Vector(Opcode::kXor, Lane::kI32, {product, b.ConstantOf(Lane::kI32, ~uint64_t{0})}) : product}));
}

}  // namespace nestor::jit
