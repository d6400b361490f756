// The same statement runs for one element, for a vector of them, and in a tail for the first lanes
// of a vector. What it needs for this, masks of lanes and scalars in all lanes, is the same for
// many operations and often for many iterations. Here it is emitted wherever it is needed; the
// optimiser of operations leaves one of each, before the loops that do not change it.
#include "jit/codegen/lane_builder.h"

#include <vector>

#include "uops/mutant.h"

namespace nestor::jit {

// ---- Lanes

Operand LaneBuilder::ActiveMask(int lane_bytes) {
  Operation mask{Opcode::kMaskOfCount, IntegerLane(lane_bytes), static_cast<uint8_t>(lanes_.count)};
  mask.operands[0] = lanes_.active;
  return Emit(mask);
}

// It tests the begin and the end only if the loop's own bounds do not ensure them.
Operand LaneBuilder::LanesInRange(IndexId e, IndexId extent, int lane_bytes) {
  IndexPool& pool = program_.pool;
  Operation mask{Opcode::kMaskOfCount, IntegerLane(lane_bytes), static_cast<uint8_t>(lanes_.count)};
  const auto emit = [&](Opcode opcode, Operand a, Operand b = {}) {
    mask.opcode = opcode;
    mask.operands[0] = a;
    mask.operands[1] = b;
    return Emit(mask);
  };
  const auto first_lanes = [&](IndexId count) {
    return emit(Opcode::kMaskOfCount, Index(pool.Max(count, pool.Const(0))));
  };
  const auto is_known = [&](IndexId difference) {
    return pool.ConstValue(difference).value_or(-1) >= 0;
  };
  const IndexId offset = pool.Sub(e, pool.Var(lanes_.var));
  const bool all_before_end = is_known(pool.Sub(extent, pool.Add(lanes_.loop->end, offset))) ||
                              NESTOR_MUTANT("lanes_beyond_end_read");
  Operand inside = IsPartial() ? ActiveMask(lane_bytes) : Operand();
  if (!all_before_end) {
    const Operand before_end = first_lanes(pool.Sub(extent, e));
    inside = IsPartial() ? emit(Opcode::kMaskAnd, before_end, inside) : before_end;
  } else if (!IsPartial()) {
    inside = emit(Opcode::kMaskOfCount, Immediate(lanes_.count));
  }
  if (is_known(pool.Add(lanes_.loop->begin, offset)) || NESTOR_MUTANT("lanes_before_begin_read"))
    return inside;
  return emit(Opcode::kMaskAndNot, first_lanes(pool.Neg(e)), inside);
}

TypedValue LaneBuilder::Spread(const TypedValue& scalar) {
  if (scalar.operand.kind == Operand::kConstant) {
    ValueBuilder builder = Builder();
    return {scalar.type,
            builder.ConstantOf(LaneOf(scalar.type), *builder.KnownBits(scalar.operand))};
  }
  const uint8_t lanes = static_cast<uint8_t>(lanes_.count);
  Operation spread{Opcode::kBroadcast, LaneOf(scalar.type), lanes};
  spread.operands[0] = scalar.operand;
  if (scalar.type != DType::kBool) return {scalar.type, Emit(spread)};
  // Uses lanes so narrow that a vector has as many as the loop runs in.
  const Lane lane = LaneOf(DType::kBool);
  Operand mask = scalar.operand;
  if (scalar.mask_lane_bytes == 8 && MasksAreVectors(list().isa)) {
    Operation narrow{Opcode::kMaskNarrow, Lane::kI64, 1};
    narrow.operands[0] = mask;
    mask = Emit(narrow);
  }
  Operation to_lanes{Opcode::kLanesOfMask, Lane::kI32, 1};
  to_lanes.operands[0] = mask;
  spread.lane = lane;
  spread.operands[0] = Emit(to_lanes);
  Operation to_mask{Opcode::kMaskOfLanes, lane, lanes};
  to_mask.operands[0] = Emit(spread);
  return {DType::kBool, Emit(to_mask), LaneBytes(lane)};
}

// ---- Operations

Operand LaneBuilder::Emit(Operation operation) {
  const RegisterClass result = Info(operation.opcode).result;
  if (result == RegisterClass::kNone) return EmitTo({}, operation);
  return EmitTo(result == RegisterClass::kMask ? list().NewMask() : list().NewRegister(result),
                operation);
}

Operand LaneBuilder::EmitTo(Operand result, Operation operation) {
  operation.result = result;
  list().operations.push_back(operation);
  return result;
}

Operation LaneBuilder::MakeMemory(Opcode opcode, DType type, int lanes,
                                  const Memory& memory) const {
  Operation operation{opcode, LaneOf(type), static_cast<uint8_t>(lanes), type};
  operation.memory = memory;
  return operation;
}

Operand LaneBuilder::InRegister(Operand operand) {
  return operand.is_register() ? operand : General(Opcode::kMoveG, operand);
}

// ---- Statements

void LaneBuilder::BeginStatement(int32_t number) {
  statement_ = number;
  first_operation_ = list().operations.size();
  // Registers are numbered as they are made, so those from here on are the statement's own.
  first_own_register_ = static_cast<int64_t>(list().classes.size());
}

void LaneBuilder::EndStatement() {
  std::vector<Operation>& operations = list().operations;
  for (size_t i = first_operation_; i < operations.size(); ++i) {
    if (operations[i].statement < 0) operations[i].statement = statement_;
  }
}

bool LaneBuilder::IsOwn(Operand operand) const {
  return operand.is_register() && operand.value >= first_own_register_;
}

// 0 is success, so statements are numbered from 1 here.
void LaneBuilder::Trap(Operand valid) {
  const int good = list().NewLabel();
  Branch(Condition::kNotEqual, valid, Immediate(0), good);
  Operation leave{Opcode::kReturn};
  leave.operands[0] = Immediate(statement_ + 1);
  Emit(leave);
  Label(good);
}

}  // namespace nestor::jit
