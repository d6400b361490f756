// Index expressions. An affine one is computed once, in the outermost frame that knows the loop
// indices in it; it always has a value. Any other one, which gathers or may overflow, is computed
// in place, together with whether it has a value.
#include <limits>

#include "jit/codegen/function_builder.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

Opcode GeneralOpcode(IndexKind kind) {
  switch (kind) {
    case IndexKind::kAdd: return Opcode::kAddG;
    case IndexKind::kMul: return Opcode::kMulG;
    case IndexKind::kDiv: return Opcode::kFloorDivG;
    case IndexKind::kMod: return Opcode::kFloorModG;
    case IndexKind::kMin: return Opcode::kMinG;
    case IndexKind::kMax: return Opcode::kMaxG;
    case IndexKind::kAnd: return Opcode::kAndG;
    case IndexKind::kOr: return Opcode::kOrG;
    default: return Opcode::kCompareG;
  }
}

Condition ConditionOf(IndexKind kind) {
  switch (kind) {
    case IndexKind::kLt: return Condition::kLess;
    case IndexKind::kLe: return Condition::kLessEqual;
    case IndexKind::kNe: return Condition::kNotEqual;
    default: return Condition::kEqual;
  }
}

}  // namespace

std::pair<Operand, int64_t> FunctionBuilder::Var(int64_t var) const {
  for (int depth = depth_; depth >= 0; --depth) {
    if (frames_[depth].var == var) return {frames_[depth].value, frames_[depth].offset};
  }
  NESTOR_CHECK(false, "a loop index outside its loop");
  return {};
}

// The frame of the innermost loop whose index is in e: there, and in all frames inside, e is known.
int FunctionBuilder::FrameOf(IndexId e) const {
  if (!program_.pool.HasVar(e)) return 0;
  const int64_t own = program_.pool.VarValue(e);  // most are variables
  const auto knows = [&](const Frame& frame) {
    return own >= 0 ? frame.var == own : frame.var >= 0 && HoldsVar(program_.pool, e, frame.var);
  };
  int depth = Depth();
  while (depth > 0 && !knows(frames_[depth])) --depth;
  return depth;
}

// A number, a slot of the table if only sizes are in it, or a register that is set on entry to the
// frame of its innermost index; each expression once per frame.
Operand FunctionBuilder::Index(IndexId e) {
  if (const auto value = program_.pool.ConstValue(e)) return Immediate(*value);
  if (!program_.pool.HasVar(e)) {
    TableSlot slot{TableSlot::kIndex};
    slot.parts.push_back({1, e, {}, 0});
    return Operand::Table(table_.Slot(slot));
  }
  const int depth = FrameOf(e);
  const auto known = frames_[depth].indices.find(e);
  if (known != frames_[depth].indices.end()) return known->second;
  const Operand result = Compute(e, depth);
  frames_[depth].indices.emplace(e, result);
  return result;
}

// The operation for one node, on operands that Index gives.
Operand FunctionBuilder::Compute(IndexId e, int depth) {
  const IndexNode node = program_.pool[e];
  if (node.kind == IndexKind::kVar) {
    const auto [value, offset] = Var(node.value);
    if (value.kind == Operand::kImmediate) return Immediate(value.value + offset);
    return offset == 0 ? value : OnEntry(depth, Make(Opcode::kAddG, value, Immediate(offset), 0));
  }
  if (node.kind == IndexKind::kNot) {
    return OnEntry(depth, Make(Opcode::kCompareG, Index(node.args[0]), Immediate(0),
                               static_cast<int64_t>(Condition::kEqual)));
  }
  const Operand a = Index(node.args[0]);
  Operand b = Index(node.args[1]);
  const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
  if (divides && b.kind == Operand::kTable) {
    // It is computed even if the loop inside does not run, so it must never divide by zero.
    TableSlot slot{TableSlot::kDivisor};
    slot.parts.push_back({1, node.args[1], {}, 0});
    b = Operand::Table(table_.Slot(slot));
  }
  if (divides && b == Immediate(0)) b = Immediate(1);
  if (a.kind == Operand::kImmediate && b.kind == Operand::kImmediate && !IsCondition(node.kind)) {
    if (const auto value = CheckedApply(node.kind, a.value, b.value)) return Immediate(*value);
  }
  const int64_t condition =
      IsCondition(node.kind) ? static_cast<int64_t>(ConditionOf(node.kind)) : 0;
  return OnEntry(depth, Make(GeneralOpcode(node.kind), a, b, condition));
}

Operand FunctionBuilder::Both(Operand a, Operand b) {
  if (a.kind == Operand::kNone) return b;
  if (b.kind == Operand::kNone) return a;
  return General(Opcode::kAndG, a, b);
}

CheckedIndex FunctionBuilder::Checked(IndexId e) {
  const IndexNode node = program_.pool[e];
  if (program_.pool.IsAffine(e) && !program_.pool.HasLoad(e))
    return {Index(e), DividesByNonzero(e)};
  if (node.kind == IndexKind::kLoad) return CheckedLoad(node);
  return CheckedArithmetic(node);
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
CheckedIndex FunctionBuilder::CheckedLoad(const IndexNode& node) {
  const loop::TensorId tensor{static_cast<int32_t>(node.value)};
  const TensorPlace& place = places_[tensor.value];
  const bool is_position =
      program_[tensor].storage == loop::Storage::kAccumulator && IsArg(program_[tensor].op);
  const DType type = loop::ReadType(program_[tensor]);
  if (place.kind == TensorPlace::kRegister) {
    Operation lane = Make(Opcode::kLaneG, place.scalar, {}, 0);
    lane.lane = LaneOf(type);
    lane.type = type;
    lane.result = list_.NewGeneral();
    list_.operations.push_back(lane);
    return {lane.result, IsIndex(type, lane.result)};
  }
  std::vector<ComputedPlace> computed(node.args.size());
  Operand valid;
  for (size_t axis = 0; axis < node.args.size(); ++axis) {
    const CheckedIndex e = Checked(node.args[axis]);
    valid = Both(valid, InRange(e, program_[tensor].shape[axis]));
    computed[axis].value = e.value;
  }
  const int outside = list_.NewLabel();
  const Operand result = General(Opcode::kMoveG, Immediate(0));
  const bool checks = !NESTOR_MUTANT("gather_unchecked");
  if (valid.kind != Operand::kNone && checks)
    Branch(Condition::kEqual, valid, Immediate(0), outside);
  Operation load = Make(Opcode::kLoadG, {}, {}, 0);
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
CheckedIndex FunctionBuilder::CheckedArithmetic(const IndexNode& node) {
  const CheckedIndex a = Checked(node.args[0]);
  if (node.kind == IndexKind::kNot) {
    return {
        General(Opcode::kCompareG, a.value, Immediate(0), static_cast<int64_t>(Condition::kEqual)),
        a.valid};
  }
  const CheckedIndex b = Checked(node.args[1]);
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
  const Opcode opcode = GeneralOpcode(node.kind);
  return {General(opcode, a.value, divisor, static_cast<int64_t>(ConditionOf(node.kind))), valid};
}

Operand FunctionBuilder::ConditionValue(IndexId e) {
  const CheckedIndex condition = Checked(e);
  return Both(condition.valid, condition.value);
}

// 0 <= e < extent, and e did not overflow while it was computed.
Operand FunctionBuilder::InRange(const CheckedIndex& e, IndexId extent) {
  const auto compare = [&](Condition condition, Operand y) {
    return General(Opcode::kCompareG, e.value, y, static_cast<int64_t>(condition));
  };
  Operand inside = compare(Condition::kGreaterEqual, Immediate(0));
  inside = General(Opcode::kAndG, inside, compare(Condition::kLess, Index(extent)));
  return Both(e.valid, inside);
}

}  // namespace nestor::jit
