// Statements and values. A value is computed in the lanes of the surrounding loop; an element that
// all lanes share is loaded to all of them, and a scalar that was computed before the loop is
// broadcast once, at its entry. Accesses to elements are in translate_accesses.cc.
#include <algorithm>

#include "jit/codegen/translator.h"
#include "loop_ir/affine.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::Access;
using loop::TensorId;
using loop::ValueId;

const TypedValue* Translator::Memo::Find(ValueId id) const {
  const auto known = values_.find(id.value);
  return known == values_.end() ? nullptr : &known->second;
}

// Values of one statement that are used twice are computed once; their registers may then not be
// reused as results (Holds).
void Translator::Memo::Add(ValueId id, const TypedValue& value) {
  values_.emplace(id.value, value);
  operands_.insert(value.operand);
}

void Translator::Memo::Clear() {
  values_.clear();
  operands_.clear();
}

Operand Translator::Emit(Operation operation) {
  const RegisterClass result = Info(operation.opcode).result;
  if (result == RegisterClass::kNone) return EmitTo({}, operation);
  return EmitTo(
      result == RegisterClass::kMask ? f_->list().NewMask() : f_->list().NewRegister(result),
      operation);
}

Operand Translator::EmitTo(Operand result, Operation operation) {
  operation.result = result;
  f_->list().operations.push_back(operation);
  return result;
}

Operation Translator::MakeMemory(Opcode opcode, DType type, int lanes, const Memory& memory) const {
  Operation operation{opcode, LaneOf(type), static_cast<uint8_t>(lanes), type};
  operation.memory = memory;
  return operation;
}

// The lanes that take part in a tail.
Operand Translator::ActiveMask(int lane_bytes) {
  Operation mask{Opcode::kMaskOfCount, IntegerLane(lane_bytes), static_cast<uint8_t>(lanes_.count)};
  mask.operands[0] = lanes_.active;
  return f_->OnEntry(lanes_.group, mask);
}

// ---- Statements

// A masked store's place and conditions come before its value, which is computed only if it is
// stored. All operations get the statement's number, from which a fault is explained.
void Translator::Statement(const loop::Statement& statement) {
  const auto [number, is_new] =
      numbers_.try_emplace(&statement, static_cast<int32_t>(out_.statements.size()));
  if (is_new) out_.statements.push_back(statement);
  statement_ = number->second;
  const size_t first = f_->list().operations.size();
  // Registers are numbered as they are made, so those from here on are the statement's own.
  first_own_register_ = static_cast<int64_t>(f_->list().classes.size());
  memo_.Clear();
  const HomeKind kind = KindOf(statement.target.tensor);
  const bool in_memory = kind != HomeKind::kScalar && kind != HomeKind::kTile;
  Location location;
  if (in_memory || statement.target.masked) location = Locate(statement.target);
  if (location.valid.kind == Operand::kNone) {
    Write(statement, location);
  } else {
    // A dropped value is not evaluated.
    const int dropped = f_->list().NewLabel();
    f_->Branch(Condition::kEqual, location.valid, Immediate(0), dropped);
    f_->OpenRegion();
    Write(statement, location);
    f_->CloseRegion();
    f_->Label(dropped);
  }
  std::vector<Operation>& operations = f_->list().operations;
  for (size_t i = first; i < operations.size(); ++i) {
    if (operations[i].statement < 0) operations[i].statement = statement_;
  }
}

void Translator::Write(const loop::Statement& statement, const Location& location) {
  if (statement.op && IsArg(*statement.op)) return WriteArg(statement, location);
  switch (KindOf(statement.target.tensor)) {
    case HomeKind::kScalar: return WriteScalar(statement);
    case HomeKind::kTile: return WriteTile(statement);
    default: return WriteMemory(statement, location);
  }
}

TypedValue Translator::Result(const loop::Statement& statement, const TypedValue& old) {
  const TypedValue value = Value(statement.value);
  ValueBuilder builder = Builder();
  return ApplyScalarOp(builder, StepOp(*statement.op), {old, value}, old.type);
}

// Assigns the value to `target`, a register; an operation that has just computed it writes
// there directly.
void Translator::Assign(TypedValue& target, const TypedValue& value) {
  std::vector<Operation>& operations = f_->list().operations;
  const bool is_mask = target.type == DType::kBool;
  const bool fresh = !memo_.Holds(value.operand) && !operations.empty() && IsOwn(value.operand) &&
                     operations.back().result == value.operand;
  if (is_mask && value.mask_lane_bytes != target.mask_lane_bytes) {
    ValueBuilder builder = Builder();
    const Operand mask = builder.MaskFor(value, target.mask_lane_bytes);
    return Assign(target, {DType::kBool, mask, target.mask_lane_bytes});
  }
  if (fresh) {
    operations.back().result = target.operand;
    return;
  }
  Operation move{is_mask ? Opcode::kMaskMove : Opcode::kMove, LaneOf(target.type),
                 static_cast<uint8_t>(lanes_.count)};
  if (is_mask) move.lane = IntegerLane(target.mask_lane_bytes);
  move.operands[0] = value.operand;
  EmitTo(target.operand, move);
}

// Whether the statement itself has made the register: not if its value is just another tensor's
// register, or that reinterpreted.
bool Translator::IsOwn(Operand operand) const {
  return operand.is_register() && operand.value >= first_own_register_;
}

// A scalar that is written once is bound to the register of its value, without a move; unless that
// register belongs to another statement, which may write it again.
void Translator::WriteScalar(const loop::Statement& statement) {
  Registers& home = registers_[statement.target.tensor.value];
  if (!homes_[statement.target.tensor.value].is_single) {
    const TypedValue value = statement.op ? Result(statement, home.value) : Value(statement.value);
    memo_.Clear();
    return Assign(home.value, value);
  }
  home.value = Value(statement.value);
  // A register that may change later is copied.
  if (home.value.operand.is_register() && !IsOwn(home.value.operand)) {
    TypedValue copy = home.value;
    copy.operand = copy.type == DType::kBool ? f_->list().NewMask() : f_->list().NewVector();
    memo_.Clear();
    Assign(copy, home.value);
    home.value = copy;
  }
  places_[statement.target.tensor.value].scalar = home.value.operand;
}

// In a tail, lanes that take no part keep what they held, unless they lie beyond the tile's end.
void Translator::WriteTile(const loop::Statement& statement) {
  int64_t lane = 0;
  TypedValue target{program_[statement.target.tensor].type, TileRegister(statement.target, lane)};
  registers_[statement.target.tensor.value].columns.clear();
  TypedValue value = statement.op ? Result(statement, target) : Value(statement.value);
  memo_.Clear();
  if (IsPartial() && !CoversTile(statement.target)) {
    ValueBuilder builder = Builder();
    const Operand mask = ActiveMask(LaneBytes(LaneOf(target.type)));
    value.operand =
        builder.Vector(Opcode::kBlend, LaneOf(target.type), {mask, value.operand, target.operand});
  }
  Assign(target, value);
}

// Whether the loop walks the tile's axis to its end: lanes beyond hold anything.
bool Translator::CoversTile(const Access& target) const {
  return program_.pool.VarValue(target.place.back()) == lanes_.var &&
         program_.pool.ConstValue(program_[target.tensor].shape.back()) == lanes_.end;
}

void Translator::WriteMemory(const loop::Statement& statement, const Location& location) {
  const TensorId tensor = statement.target.tensor;
  const DType type = program_[tensor].type;
  const TypedValue value =
      statement.op ? Result(statement, LoadElements(type, location)) : Value(statement.value);
  StoreElements(type, location, value, statement.streams);
}

// Picks the first of equal values, and the first NaN if any.
std::pair<TypedValue, TypedValue> Translator::Better(ReduceOp op, const TypedValue& best,
                                                     const TypedValue& place,
                                                     const TypedValue& value,
                                                     const TypedValue& position) {
  ValueBuilder builder = Builder();
  const auto apply = [&](ScalarOp scalar, std::initializer_list<TypedValue> args, DType type) {
    return ApplyScalarOp(builder, scalar, args, type);
  };
  const ScalarOp greater = NESTOR_MUTANT("argmax_last_of_equals") ? ScalarOp::kGe : ScalarOp::kGt;
  TypedValue better =
      apply(op == ReduceOp::kArgmax ? greater : ScalarOp::kLt, {value, best}, DType::kBool);
  if (IsFloat(value.type)) {
    better = apply(ScalarOp::kOr, {better, apply(ScalarOp::kNe, {value, value}, DType::kBool)},
                   DType::kBool);
    better = apply(ScalarOp::kAnd, {better, apply(ScalarOp::kEq, {best, best}, DType::kBool)},
                   DType::kBool);
  }
  const TypedValue empty =
      apply(ScalarOp::kLt, {place, builder.Constant(Scalar::I64(0))}, DType::kBool);
  better = apply(ScalarOp::kOr, {better, empty}, DType::kBool);
  return {apply(ScalarOp::kSelect, {better, value, best}, value.type),
          apply(ScalarOp::kSelect, {better, position, place}, DType::kI64)};
}

// An arg accumulator is a pair, the best value so far and its position; both are replaced together.
void Translator::WriteArg(const loop::Statement& statement, const Location& location) {
  const TensorId tensor = statement.target.tensor;
  const TypedValue value = Value(statement.value), position = Value(statement.position);
  if (KindOf(tensor) == HomeKind::kScalar) {
    Registers& home = registers_[tensor.value];
    TypedValue place{DType::kI64, home.position};
    const auto [best, where] = Better(*statement.op, home.value, place, value, position);
    Assign(home.value, best);
    return Assign(place, where);
  }
  const Location positions = PositionsOf(tensor, location);
  const TypedValue place = LoadElements(DType::kI64, positions);
  const TypedValue old = LoadElements(value.type, location);
  const auto [best, where] = Better(*statement.op, old, place, value, position);
  StoreElements(value.type, location, best, false);
  StoreElements(DType::kI64, positions, where, false);
}

// The location of an arg accumulator's position: the positions are i64s after its values, of
// which it has as many. The distance to the first is in the table; that to an element's grows
// with its offset.
Translator::Location Translator::PositionsOf(TensorId tensor, const Location& location) {
  const int64_t size = ByteSize(program_[tensor].type);
  const IndexList origin(program_[tensor].shape.size(), program_.pool.Const(0));
  const Memory base = f_->Address(tensor, origin);
  const Operand element = f_->General(Opcode::kAddressG, {});
  f_->list().operations.back().memory = location.memory;
  const Operand offset = f_->General(Opcode::kSubG, element, base.base);
  const Operand scaled = f_->General(Opcode::kMulG, offset, Immediate(8));
  const Operand bytes = f_->General(Opcode::kFloorDivG, scaled, Immediate(size));
  Operand first = f_->General(Opcode::kAddG, base.base,
                              Operand::Table(out_.table.Slot({TableSlot::kPositions, tensor})));
  first = f_->General(Opcode::kAddG, first, bytes);
  Location positions{{first, {}, 1, 0}, location.valid, location.stride, {}};
  if (!(location.stride == Immediate(0))) {
    NESTOR_CHECK(location.stride == Immediate(size), "positions of strided elements");
    positions.stride = Immediate(8);
  }
  return positions;
}

// ---- Values

// How many registers the value takes if the operand that needs most is computed first; too many for
// a value that several others contain. (Sethi and Ullman, "The generation of optimal code for
// arithmetic expressions", 1970.)
int Translator::NeedOf(ValueId id) {
  for (size_t i = needs_.size(); i <= static_cast<size_t>(id.value); ++i) {
    const auto* apply = absl::get_if<loop::ApplyValue>(&program_.values[i].node);
    int need = 1;
    if (apply != nullptr) {
      absl::InlinedVector<int, 3> of_operands;
      for (ValueId arg : apply->args) of_operands.push_back(needs_[static_cast<size_t>(arg.value)]);
      std::sort(of_operands.begin(), of_operands.end(), std::greater<>());
      for (size_t k = 0; k < of_operands.size(); ++k)
        need = std::max(need, of_operands[k] + static_cast<int>(k));
    }
    needs_.push_back(need);
  }
  return needs_[static_cast<size_t>(id.value)];
}

// Operands first, without recursion: a sum may have any number of terms.
TypedValue Translator::Value(ValueId root) {
  std::vector<std::pair<ValueId, bool>> stack = {{root, false}};  // whether its operands are known
  while (!stack.empty()) {
    const auto [id, ready] = stack.back();
    stack.pop_back();
    if (memo_.Find(id) != nullptr) continue;
    const auto* apply = absl::get_if<loop::ApplyValue>(&program_[id].node);
    if (ready || apply == nullptr) {
      memo_.Add(id, Compute(id));
      continue;
    }
    stack.emplace_back(id, true);
    absl::InlinedVector<ValueId, 3> args(apply->args.begin(), apply->args.end());
    if (ungated_.contains(id.value)) args = {apply->args[2]};
    std::stable_sort(args.begin(), args.end(),
                     [&](ValueId a, ValueId b) { return NeedOf(a) > NeedOf(b); });
    for (size_t i = args.size(); i-- > 0;) stack.emplace_back(args[i], false);
  }
  return *memo_.Find(root);
}

// The value from operands that are in `memo_` already.
TypedValue Translator::Compute(ValueId id) {
  struct Visitor {
    Translator& self;
    DType type;
    TypedValue operator()(const loop::ConstantValue& v) const {
      ValueBuilder builder = self.Builder();
      return builder.Constant(v.value);
    }
    TypedValue operator()(const loop::ParamValue& v) const { return self.Param(v.name, type); }
    TypedValue operator()(const loop::IndexValue& v) const { return self.IndexNumber(v.index); }
    TypedValue operator()(const loop::LoadValue& v) const { return self.Load(v.access); }
    TypedValue operator()(const loop::ApplyValue& v) const {
      absl::InlinedVector<TypedValue, 3> args;
      for (ValueId arg : v.args) args.push_back(*self.memo_.Find(arg));
      ValueBuilder builder = self.Builder();
      const bool is_product = v.op == ScalarOp::kMulz && self.without_gates_;
      return ApplyScalarOp(builder, is_product ? ScalarOp::kMul : v.op, args, type);
    }
  };
  // A copy: translating may add to the program.
  const loop::Value value = program_[id];
  if (ungated_.contains(id.value))
    return *memo_.Find(absl::get<loop::ApplyValue>(value.node).args[2]);
  return absl::visit(Visitor{*this, value.type}, value.node);
}

// The table holds the bits of Scalar; a 16-bit float is widened there.
TypedValue Translator::Param(const std::string& name, DType type) {
  if (NESTOR_MUTANT("param_read_at_compile_time")) {
    for (const ParamInfo& param : program_.params) {
      ValueBuilder builder = Builder();
      if (param.name == name && param.value) return builder.Constant(*param.value);
    }
  }
  TableSlot slot{TableSlot::kParam};
  slot.param = name;
  Operation load{Opcode::kMoveG};
  load.operands[0] = Operand::Table(out_.table.Slot(slot));
  const Operand bits = f_->OnEntry(0, load);
  Operation spread{Opcode::kBroadcastGeneral, LaneOf(type), static_cast<uint8_t>(lanes_.count)};
  spread.operands[0] = bits;
  const Operand value = f_->OnEntry(lanes_.region, spread);
  ValueBuilder builder = Builder();
  return FromLoaded(builder, type, value);
}

// The number of the first lane, and that of lane k: k times the coefficient of the lanes' index
// more.
TypedValue Translator::IndexNumber(IndexId e) {
  const CheckedIndex index = f_->Checked(e);
  if (index.valid.kind != Operand::kNone) Trap(index.valid);
  ValueBuilder builder = Builder();
  const Operand first = builder.Vector(Opcode::kBroadcastGeneral, Lane::kI64, {index.value});
  if (lanes_.count == 1) return {DType::kI64, first};
  const auto step = loop::StrideIn(program_.pool, e, lanes_.var);
  NESTOR_CHECK(step.has_value(), "an index value that lanes cannot follow");
  if (*step == 0) return {DType::kI64, first};
  const Operand steps = f_->list().AddConstant({Lane::kI64, 0, static_cast<uint64_t>(*step)});
  return {DType::kI64, builder.Vector(Opcode::kAdd, Lane::kI64, {first, steps})};
}

}  // namespace nestor::jit
