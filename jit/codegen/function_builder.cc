// An affine index expression always has a value, which AddressBuilder computes early. Any other one,
// which gathers or may overflow, is computed in place, together with whether it has a value.
#include "jit/codegen/function_builder.h"

#include <limits>
#include <vector>

#include "uops/mutant.h"

namespace nestor::jit {

Operand FunctionBuilder::Both(Operand a, Operand b) {
  if (a.kind == Operand::kNone) return b;
  if (b.kind == Operand::kNone) return a;
  return General(Opcode::kAndG, a, b);
}

CheckedIndex FunctionBuilder::Checked(IndexId e, Loads loads) {
  const IndexNode node = program_.pool[e];
  if (program_.pool.IsAffine(e) && !program_.pool.HasLoad(e))
    return {Index(e), DividesByNonzero(e)};
  if (node.kind == IndexKind::kLoad) return CheckedLoad(node, loads);
  return CheckedArithmetic(node, loads);
}

// 1 if no divisor in an affine expression is 0: all its other parts have a value. Divisors consist
// of symbols and numbers, so this is known before the first loop.
Operand FunctionBuilder::DividesByNonzero(IndexId e) {
  Operand valid;
  std::vector<IndexId> divisors;
  VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
    const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
    if (!divides) return;
    const auto number = program_.pool.ConstValue(node.args[1]);
    if (!number) divisors.push_back(node.args[1]);
    else if (*number == 0) valid = Immediate(0);
  });
  for (IndexId divisor : divisors) {
    valid = Both(valid, OnEntry(0, Make(Opcode::kCompareG, Index(divisor), Immediate(0),
                                        static_cast<int64_t>(Condition::kNotEqual))));
  }
  return valid;
}

// x[a[e]]: the load of a[e] as an index. It is not made where e is outside of a, and then the
// result is 0 and not valid; an element that is no index (a u64 from 2^63 on) is not valid either.
//
//   r = 0
//   branch if not (0 <= e < extent) to outside
//   r = load_g [address of a[e]]
//   outside:
CheckedIndex FunctionBuilder::CheckedLoad(const IndexNode& node, Loads loads) {
  const loop::TensorId tensor{static_cast<int32_t>(node.value)};
  const TensorPlace& place = places_[tensor.value];
  const bool is_position =
      program_[tensor].storage == loop::Storage::kAccumulator && IsArg(program_[tensor].op);
  const DType type = loop::ReadType(program_[tensor]);
  if (place.kind == TensorPlace::kRegister) {
    Operation lane = Make(Opcode::kLaneG, place.scalar);
    lane.lane = LaneOf(type);
    lane.type = type;
    lane.result = list_.NewGeneral();
    list_.operations.push_back(lane);
    return {lane.result, IsIndex(type, lane.result)};
  }
  std::vector<ComputedPlace> computed(node.args.size());
  Operand valid;
  for (size_t axis = 0; axis < node.args.size(); ++axis) {
    const CheckedIndex e = Checked(node.args[axis], loads);
    computed[axis].value = e.value;
    if (loads == Loads::kInRange) continue;
    valid = Both(valid, InRange(e, program_[tensor].shape[axis]));
  }
  const int outside = list_.NewLabel();
  const Operand result = General(Opcode::kMoveG, Immediate(0));
  const bool checks = !NESTOR_MUTANT("gather_unchecked");
  if (valid.kind != Operand::kNone && checks)
    Branch(Condition::kEqual, valid, Immediate(0), outside);
  Operation load = Make(Opcode::kLoadG, {});
  load.memory = Address(tensor, {node.args.begin(), node.args.end()}, computed);
  if (is_position) {
    TableSlot slot{TableSlot::kPositions, tensor};
    load.memory.base = General(Opcode::kAddG, load.memory.base, Operand::Table(table_.Slot(slot)));
  }
  load.type = type;
  load.result = result;
  list_.operations.push_back(load);
  Label(outside);
  return {result, Both(valid, IsIndex(type, result))};
}

// 0 if the number is not an i64, but a u64 from 2^63 on. kNone if all numbers of the type are.
Operand FunctionBuilder::IsIndex(DType type, Operand number) {
  if (WidensToI64(type)) return {};
  return General(Opcode::kCompareG, number, Immediate(0),
                 static_cast<int64_t>(Condition::kGreaterEqual));
}

// Both operands are evaluated; if one has no value, the result has none.
CheckedIndex FunctionBuilder::CheckedArithmetic(const IndexNode& node, Loads loads) {
  const CheckedIndex a = Checked(node.args[0], loads);
  if (node.kind == IndexKind::kNot) {
    return {
        General(Opcode::kCompareG, a.value, Immediate(0), static_cast<int64_t>(Condition::kEqual)),
        a.valid};
  }
  const CheckedIndex b = Checked(node.args[1], loads);
  Operand valid = Both(a.valid, b.valid);
  Operand divisor = b.value;
  const auto compare = [&](Condition condition, Operand x, Operand y) {
    return General(Opcode::kCompareG, x, y, static_cast<int64_t>(condition));
  };
  const auto is_false = [&](Operand x) { return compare(Condition::kEqual, x, Immediate(0)); };
  switch (node.kind) {
    case IndexKind::kAdd:
      valid = Both(valid, is_false(General(Opcode::kAddOverflowsG, a.value, b.value)));
      break;
    case IndexKind::kMul:
      valid = Both(valid, is_false(General(Opcode::kMulOverflowsG, a.value, b.value)));
      break;
    case IndexKind::kDiv:
    case IndexKind::kMod: {
      const Operand zero = is_false(b.value);
      valid = Both(valid, is_false(zero));
      divisor = General(Opcode::kAddG, b.value, zero);
      if (node.kind == IndexKind::kMod) break;
      const Operand least =
          compare(Condition::kEqual, a.value, Immediate(std::numeric_limits<int64_t>::min()));
      const Operand minus_one = compare(Condition::kEqual, b.value, Immediate(-1));
      valid = Both(valid, is_false(General(Opcode::kAndG, least, minus_one)));
      break;
    }
    default: break;
  }
  const Opcode opcode = OpcodeOf(node.kind);
  return {General(opcode, a.value, divisor, static_cast<int64_t>(ConditionOf(node.kind))), valid};
}

Operand FunctionBuilder::ConditionValue(IndexId e) {
  const CheckedIndex condition = Checked(e);
  return Both(condition.valid, condition.value);
}

// 0 <= e < extent, and e did not overflow while it was computed. An extent is not negative, so as a
// number without a sign a negative e lies above it.
Operand FunctionBuilder::InRange(const CheckedIndex& e, IndexId extent) {
  return Both(e.valid, General(Opcode::kCompareG, e.value, Index(extent),
                               static_cast<int64_t>(Condition::kBelow)));
}

}  // namespace nestor::jit
