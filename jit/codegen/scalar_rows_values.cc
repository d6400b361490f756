// Values in registers: the builder that the expansions are written in, and the conversions between
// the lanes of an operation, a value of an element type, and memory.
//
// An x86 instruction takes at most one operand from memory, the last (for an fma or a blend the
// middle one, too); so the builder gives constants that place where the operation commutes, and a
// register elsewhere.
// A mask that is a vector of zeros and ones can be used by an And, where one in a mask register
// needs a blend.
#include <algorithm>
#include <utility>

#include "absl/base/casts.h"
#include "jit/codegen/scalar_rows.h"
#include "jit/codegen/scalar_rows_expansions.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

// Whether operand i, though not the last, can be a constant.
bool TakesMiddleConstant(const Operation& op, size_t i) {
  if (i != 1) return false;
  return op.opcode == Opcode::kBlend ||
         (op.opcode == Opcode::kFma && op.operands[2].kind != Operand::kConstant);
}

}  // namespace

// Appends the operation with constants where the instruction can take them from memory; others are
// moved to a register first.
Operand ValueBuilder::Append(Opcode opcode, Lane lane, absl::Span<const Operand> operands,
                             int64_t immediate, Operand result) {
  Operation operation = {};
  operation.opcode = opcode;
  operation.lane = lane;
  operation.lanes = static_cast<uint8_t>(lanes_);
  std::copy(operands.begin(), operands.end(), operation.operands);
  operation.immediate = immediate;
  operation.result = result;
  Operand* const o = operation.operands;
  if (o[0].kind == Operand::kConstant && Commutes(operation)) std::swap(o[0], o[1]);
  for (size_t i = 0; i + 1 < operands.size(); ++i) {
    if (o[i].kind != Operand::kConstant || TakesMiddleConstant(operation, i)) continue;
    o[i] = Vector(Opcode::kMove, lane, {o[i]});
  }
  list_.operations.push_back(operation);
  return result;
}

Operand ValueBuilder::Vector(Opcode opcode, Lane lane, absl::Span<const Operand> operands,
                             int64_t immediate) {
  return Append(opcode, lane, operands, immediate, list_.NewVector());
}

Operand ValueBuilder::Vector(Opcode opcode, Lane lane, std::initializer_list<Operand> operands,
                             int64_t immediate) {
  return Append(opcode, lane, operands, immediate, list_.NewVector());
}

Operand ValueBuilder::Mask(Opcode opcode, Lane lane, std::initializer_list<Operand> operands,
                           int64_t immediate) {
  return Append(opcode, lane, operands, immediate, list_.NewMask());
}

Operand ValueBuilder::General(Opcode opcode, std::initializer_list<Operand> operands,
                              int64_t immediate) {
  return Append(opcode, Lane::kI64, operands, immediate, list_.NewGeneral());
}

TypedValue ValueBuilder::Constant(const Scalar& value) {
  const Lane lane = LaneOf(value.type);
  if (value.type == DType::kBool) {
    const Operand lanes = Vector(Opcode::kMove, lane, {ConstantOf(lane, -value.bits)});
    return {value.type, Mask(Opcode::kMaskOfLanes, lane, {lanes}), LaneBytes(lane)};
  }
  if (IsNarrowFloat(value.type)) return {value.type, FloatOf(lane, value.ToDouble())};
  return {value.type, ConstantOf(lane, value.bits)};
}

Operand ValueBuilder::ConstantOf(Lane lane, uint64_t bits) {
  return list_.AddConstant({lane, bits});
}

// The bits as they lie in the lane: an f32 in the low 32.
Operand ValueBuilder::FloatOf(Lane lane, double value) {
  return ConstantOf(lane, lane == Lane::kF64 ? absl::bit_cast<uint64_t>(value)
                                             : absl::bit_cast<uint32_t>(static_cast<float>(value)));
}

absl::optional<uint64_t> ValueBuilder::KnownBits(Operand operand) const {
  if (operand.kind != Operand::kConstant || list_.constants[operand.value].step != 0)
    return absl::nullopt;
  return list_.constants[operand.value].bits;
}

TypedValue ValueBuilder::Compare(Predicate predicate, Lane lane, Operand a, Operand b) {
  return {DType::kBool, Mask(Opcode::kCompare, lane, {a, b}, static_cast<int64_t>(predicate)),
          LaneBytes(lane)};
}

TypedValue ValueBuilder::Combine(Opcode opcode, const TypedValue& a, const TypedValue& b) {
  const int bytes = a.mask_lane_bytes;
  return {DType::kBool, Mask(opcode, IntegerLane(bytes), {a.operand, MaskFor(b, bytes)}), bytes};
}

TypedValue ValueBuilder::Not(const TypedValue& mask) {
  if (!MasksAreVectors(isa()))
    return Combine(Opcode::kMaskXor, mask, Constant(Scalar::Of(DType::kBool, true)));
  const Lane lane = IntegerLane(mask.mask_lane_bytes);
  return {DType::kBool, Mask(Opcode::kXor, lane, {mask.operand, ConstantOf(lane, ~uint64_t{0})}),
          mask.mask_lane_bytes};
}

Operand ValueBuilder::MaskFor(const TypedValue& mask, int lane_bytes) {
  // A mask register has one bit per lane, whatever its width.
  if (mask.mask_lane_bytes == lane_bytes || !MasksAreVectors(isa())) return mask.operand;
  // A loop in lanes of 8 or 16 bits holds values of that width alone (narrow_bytes).
  NESTOR_CHECK(mask.mask_lane_bytes + lane_bytes == 4 + 8, "a mask of lanes that meet no others");
  const Opcode opcode = lane_bytes == 8 ? Opcode::kMaskWiden : Opcode::kMaskNarrow;
  return Mask(opcode, IntegerLane(mask.mask_lane_bytes), {mask.operand});
}

Operand ValueBuilder::LanesOf(const TypedValue& mask, int lane_bytes) {
  const Operand same_width = MaskFor(mask, lane_bytes);
  if (MasksAreVectors(isa())) return same_width;
  return Vector(Opcode::kLanesOfMask, IntegerLane(lane_bytes), {same_width});
}

// With a zero on one side AVX2 takes one `and`, where a blend is two micro-operations.
Operand ValueBuilder::Select(const TypedValue& mask, Lane lane, Operand b, Operand c) {
  const Operand same_width = MaskFor(mask, LaneBytes(lane));
  if (MasksAreVectors(isa())) {
    if (KnownBits(c) == uint64_t{0}) return Vector(Opcode::kAnd, lane, {same_width, b});
    if (KnownBits(b) == uint64_t{0}) return Vector(Opcode::kAndNot, lane, {same_width, c});
  }
  return Vector(Opcode::kBlend, lane, {same_width, b, c});
}

// x86 compares signed lanes; flipping the first bit of both turns unsigned order into signed order.
TypedValue LessOfIntegers(ValueBuilder& builder, DType type, Operand a, Operand b) {
  const Lane lane = builder.LaneOf(type);
  if (FillsUnsigned(lane, type)) {
    const auto turned = [&](Operand v) {
      if (const auto bits = builder.KnownBits(v))
        return builder.ConstantOf(lane, *bits ^ SignBitOf(lane));
      return builder.Vector(Opcode::kXor, lane, {v, builder.ConstantOf(lane, SignBitOf(lane))});
    };
    a = turned(a), b = turned(b);
  }
  return builder.Compare(Predicate::kLess, lane, a, b);
}

// A bool in memory is a byte; in code it is a mask.
TypedValue FromLoaded(ValueBuilder& builder, DType type, Operand loaded) {
  if (type != DType::kBool) return {type, loaded};
  const Lane lane = builder.LaneOf(type);
  const Operand zero = builder.ConstantOf(lane, 0);
  if (lane == Lane::kI8) return builder.Not(builder.Compare(Predicate::kEqual, lane, loaded, zero));
  // Loaded bytes are not negative.
  return builder.Compare(Predicate::kLess, lane, zero, loaded);
}

Operand ToStored(ValueBuilder& builder, const TypedValue& value) {
  const Lane lane = builder.LaneOf(value.type);
  if (value.operand.kind == Operand::kConstant)
    return builder.Vector(Opcode::kMove, lane, {value.operand});
  if (value.type != DType::kBool) return value.operand;
  return builder.Vector(Opcode::kAnd, lane,
                        {builder.LanesOf(value, LaneBytes(lane)), builder.ConstantOf(lane, 1)});
}

}  // namespace nestor::jit
