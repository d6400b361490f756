// Statements and values. A value is computed in the lanes of the loop around; what all
// lanes share is loaded to all of them, and a scalar that was computed before the loop
// is spread over them once, at its entry.
//
// An access that may not be made is guarded: a masked one by a branch around it, one
// that should be in range but could not be proven to be by a branch that leaves the
// function with the statement's number.
#include <algorithm>
#include <functional>

#include "jit/codegen/transpose.h"
#include "jit/codegen/translator.h"
#include "loop_ir/lanes.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::Access;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;
using loop::ValueId;

namespace {

Operand Immediate(int64_t v) { return Operand::Immediate(v); }
bool IsZero(Operand operand) { return operand == Immediate(0); }

}  // namespace

const TypedValue* Translator::Memo::Find(ValueId id) const {
  const auto known = values_.find(id.value);
  return known == values_.end() ? nullptr : &known->second;
}

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
  return EmitTo(result == RegisterClass::kMask ? f_->list().NewMask() : f_->list().NewRegister(result), operation);
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
  Operation mask{Opcode::kMaskOfCount, lane_bytes == 4 ? Lane::kI32 : Lane::kI64,
                 static_cast<uint8_t>(lanes_.count)};
  mask.operands[0] = lanes_.active;
  return f_->OnEntry(lanes_.group, mask);
}

// ---- Statements

void Translator::Statement(const loop::Statement& statement) {
  const auto [number, is_new] = numbers_.try_emplace(&statement, static_cast<int32_t>(out_.statements.size()));
  if (is_new) out_.statements.push_back(statement);
  statement_ = number->second;
  const size_t first = f_->list().operations.size();
  first_own_register_ = static_cast<int64_t>(f_->list().classes.size());
  memo_.Clear();
  const HomeKind kind = KindOf(statement.target.tensor);
  const bool in_memory = kind != HomeKind::kScalar && kind != HomeKind::kTile;
  Location location;
  if (in_memory || statement.target.masked) location = Locate(statement.target);
  if (location.valid.kind == Operand::kNone) {
    Write(statement, location);
  } else {
    // What is dropped is not evaluated.
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

// `target`, a register, gets the value; the operation that has just computed it writes
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
  if (is_mask) move.lane = target.mask_lane_bytes == 4 ? Lane::kI32 : Lane::kI64;
  move.operands[0] = value.operand;
  EmitTo(target.operand, move);
}

// Whether the statement has made the register: not where its value is another tensor's
// register as it is, or that reinterpreted.
bool Translator::IsOwn(Operand operand) const {
  return operand.is_register() && operand.value >= first_own_register_;
}

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

void Translator::WriteTile(const loop::Statement& statement) {
  int64_t lane = 0;
  TypedValue target{program_[statement.target.tensor].type, TileRegister(statement.target, lane)};
  registers_[statement.target.tensor.value].columns.clear();
  TypedValue value = statement.op ? Result(statement, target) : Value(statement.value);
  memo_.Clear();
  if (IsPartial() && !CoversTile(statement.target)) {
    ValueBuilder builder = Builder();
    const Operand mask = ActiveMask(LaneBytes(LaneOf(target.type)));
    value.operand = builder.Vector(Opcode::kBlend, LaneOf(target.type), {mask, value.operand, target.operand});
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

// The first of equals, the first NaN if any.
std::pair<TypedValue, TypedValue> Translator::Better(ReduceOp op, const TypedValue& best, const TypedValue& place,
                                                     const TypedValue& value, const TypedValue& position) {
  ValueBuilder builder = Builder();
  const auto apply = [&](ScalarOp scalar, std::initializer_list<TypedValue> args, DType type) {
    return ApplyScalarOp(builder, scalar, args, type);
  };
  const ScalarOp greater = NESTOR_MUTANT("argmax_last_of_equals") ? ScalarOp::kGe : ScalarOp::kGt;
  TypedValue better = apply(op == ReduceOp::kArgmax ? greater : ScalarOp::kLt, {value, best}, DType::kBool);
  if (IsFloat(value.type)) {
    better = apply(ScalarOp::kOr, {better, apply(ScalarOp::kNe, {value, value}, DType::kBool)}, DType::kBool);
    better = apply(ScalarOp::kAnd, {better, apply(ScalarOp::kEq, {best, best}, DType::kBool)}, DType::kBool);
  }
  const TypedValue empty = apply(ScalarOp::kLt, {place, builder.Constant(Scalar::I64(0))}, DType::kBool);
  better = apply(ScalarOp::kOr, {better, empty}, DType::kBool);
  return {apply(ScalarOp::kSelect, {better, value, best}, value.type),
          apply(ScalarOp::kSelect, {better, position, place}, DType::kI64)};
}

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

// Where an arg accumulator's position lies: i64s behind its values, of which it has as
// many. The distance of the first is in the table; an element's grows with its offset.
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
  Location positions{{first, {}, 1, 0}, location.valid, location.stride};
  if (!IsZero(location.stride)) {
    NESTOR_CHECK(location.stride == Immediate(size), "positions of strided elements");
    positions.stride = Immediate(8);
  }
  return positions;
}

// ---- Values

// How many registers it takes to compute the value, the operand that needs most first; of a
// value that several others hold, more than it takes. (Sethi and Ullman, "The generation of
// optimal code for arithmetic expressions", 1970.)
int Translator::NeedOf(ValueId id) {
  for (size_t i = needs_.size(); i <= static_cast<size_t>(id.value); ++i) {
    const auto* apply = absl::get_if<loop::ApplyValue>(&program_.values[i].node);
    int need = 1;
    if (apply != nullptr) {
      absl::InlinedVector<int, 3> of_operands;
      for (ValueId arg : apply->args) of_operands.push_back(needs_[static_cast<size_t>(arg.value)]);
      std::sort(of_operands.begin(), of_operands.end(), std::greater<>());
      for (size_t k = 0; k < of_operands.size(); ++k) need = std::max(need, of_operands[k] + static_cast<int>(k));
    }
    needs_.push_back(need);
  }
  return needs_[static_cast<size_t>(id.value)];
}

// Operands first, without recursion: a sum may have any number of terms.
TypedValue Translator::Value(ValueId root) {
  std::vector<std::pair<ValueId, bool>> stack = {{root, false}};  // whether the operands are known
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
    std::stable_sort(args.begin(), args.end(), [&](ValueId a, ValueId b) { return NeedOf(a) > NeedOf(b); });
    for (size_t i = args.size(); i-- > 0;) stack.emplace_back(args[i], false);
  }
  return *memo_.Find(root);
}

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
      return ApplyScalarOp(builder, v.op, args, type);
    }
  };
  // A copy: translating may add to the program.
  const loop::Value value = program_[id];
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

TypedValue Translator::IndexNumber(IndexId e) {
  const CheckedIndex index = f_->Checked(e);
  if (index.valid.kind != Operand::kNone) Trap(index.valid);
  ValueBuilder builder = Builder();
  const Operand first = builder.Vector(Opcode::kBroadcastGeneral, Lane::kI64, {index.value});
  if (lanes_.count == 1) return {DType::kI64, first};
  const auto coefficient = CoefficientOf(program_, e, lanes_.var);
  NESTOR_CHECK(coefficient.has_value(), "an index value that lanes cannot follow");
  const int64_t step = ConstantOf(*coefficient);
  if (step == 0) return {DType::kI64, first};
  const Operand steps = f_->list().AddConstant({Lane::kI64, 0, static_cast<uint64_t>(step)});
  return {DType::kI64, builder.Vector(Opcode::kAdd, Lane::kI64, {first, steps})};
}

TypedValue Translator::Load(const Access& access) {
  if (access.masked) {
    const Location location = Locate(access);
    if (location.valid.kind == Operand::kNone) return LoadAt(access, location);
    return LoadMasked(access, location);
  }
  const HomeKind kind = KindOf(access.tensor);
  if (kind == HomeKind::kScalar || kind == HomeKind::kTile) return LoadAt(access, {});
  return LoadMemory(access.tensor, Locate(access));
}

// Without looking at the mask.
TypedValue Translator::LoadAt(const Access& access, const Location& location) {
  switch (KindOf(access.tensor)) {
    case HomeKind::kScalar: return LoadScalar(access.tensor);
    case HomeKind::kTile: return LoadTile(access);
    default: return LoadMemory(access.tensor, location);
  }
}

// Of vectors that share a cache line, for the first.
void Translator::Prefetch(const Access& access) {
  const DType type = program_[access.tensor].type;
  if (lanes_.var >= 0 && f_->Var(lanes_.var).second * ByteSize(type) % kCacheLineBytes != 0) return;
  std::vector<ComputedPlace> computed(access.place.size());
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    if (!program_.pool.HasLoad(access.place[axis])) continue;
    f_->EmitOnEntry(lanes_.region, [&] { computed[axis] = {f_->Checked(access.place[axis]).value, lanes_.region}; });
  }
  Emit(MakeMemory(Opcode::kPrefetch, type, lanes_.count, f_->Address(access.tensor, access.place, computed)));
}

TypedValue Translator::LoadTile(const Access& access) {
  int64_t lane = 0;
  const DType type = program_[access.tensor].type;
  if (access.place.size() == 2 && lanes_.var >= 0 && program_.pool.VarValue(access.place[0]) == lanes_.var) {
    // Along the first axis: a column.
    Registers& home = registers_[access.tensor.value];
    if (home.columns.empty()) home.columns = TransposeTile(f_->list(), LaneOf(type), home.tile);
    return {type, home.columns[f_->Index(access.place[1]).value]};
  }
  const Operand vector = TileRegister(access, lane);
  if (lane == 0) return {type, vector};
  ValueBuilder builder(f_->list(), homes_[access.tensor.value].tile_lanes);
  return {type, builder.Vector(Opcode::kLaneShift, LaneOf(type), {vector}, lane)};
}

TypedValue Translator::LoadScalar(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  const Registers& home = registers_[tensor.value];
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  const TypedValue value = is_arg ? TypedValue{DType::kI64, home.position} : home.value;
  return home.lanes == lanes_.count ? value : Spread(value);
}

// A scalar from before the vector loop, in all lanes.
TypedValue Translator::Spread(const TypedValue& scalar) {
  if (scalar.operand.kind == Operand::kConstant) return scalar;
  const uint8_t lanes = static_cast<uint8_t>(lanes_.count);
  Operation spread{Opcode::kBroadcast, LaneOf(scalar.type), lanes};
  spread.operands[0] = scalar.operand;
  if (scalar.type != DType::kBool) return {scalar.type, f_->OnEntry(lanes_.region, spread)};
  // In 32-bit lanes, of which a vector has room for as many as any loop runs in.
  Operand mask = scalar.operand;
  if (scalar.mask_lane_bytes == 8 && options_.isa == Isa::kAvx2) {
    Operation narrow{Opcode::kMaskNarrow, Lane::kI64, 1};
    narrow.operands[0] = mask;
    mask = f_->OnEntry(lanes_.region, narrow);
  }
  Operation to_lanes{Opcode::kLanesOfMask, Lane::kI32, 1};
  to_lanes.operands[0] = mask;
  spread.lane = Lane::kI32;
  spread.operands[0] = f_->OnEntry(lanes_.region, to_lanes);
  Operation to_mask{Opcode::kMaskOfLanes, Lane::kI32, lanes};
  to_mask.operands[0] = f_->OnEntry(lanes_.region, spread);
  return {DType::kBool, f_->OnEntry(lanes_.region, to_mask), 4};
}

TypedValue Translator::LoadMasked(const Access& access, const Location& location) {
  TypedValue result = Value(access.fill);
  if (NESTOR_MUTANT("fill_of_wrong_sign") && IsFloat(result.type)) {
    ValueBuilder builder = Builder();
    result = ApplyScalarOp(builder, ScalarOp::kNeg, {result}, result.type);
  }
  const bool is_mask = result.type == DType::kBool;
  TypedValue target = result;
  target.operand = is_mask ? f_->list().NewMask() : f_->list().NewVector();
  Operation move{is_mask ? Opcode::kMaskMove : Opcode::kMove, LaneOf(target.type),
                 static_cast<uint8_t>(lanes_.count)};
  move.operands[0] = result.operand;
  EmitTo(target.operand, move);
  const int outside = f_->list().NewLabel();
  f_->Branch(Condition::kEqual, location.valid, Immediate(0), outside);
  f_->OpenRegion();
  Assign(target, LoadAt(access, location));
  f_->CloseRegion();
  f_->Label(outside);
  return target;
}

// ---- Memory

// What a read of the tensor gives.
TypedValue Translator::LoadMemory(TensorId tensor, const Location& location) {
  const TensorInfo& info = program_[tensor];
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  if (is_arg) return LoadElements(DType::kI64, PositionsOf(tensor, location));
  return LoadElements(info.type, location, info.storage == Storage::kInput);
}

TypedValue Translator::LoadElements(DType type, const Location& location, bool invariant) {
  Operation load = MakeMemory(Opcode::kLoad, type, lanes_.count, location.memory);
  load.invariant = invariant;
  ValueBuilder builder = Builder();
  if (lanes_.count > 1 && IsZero(location.stride)) {
    load.opcode = Opcode::kLoadBroadcast;
  } else if (lanes_.count > 1 && !(location.stride == Immediate(ByteSize(type)))) {
    load.opcode = IsPartial() ? Opcode::kLoadStridedPartial : Opcode::kLoadStrided;
    load.operands[0] = InRegister(location.stride);
    load.operands[2] = lanes_.active;
  } else if (IsPartial()) {
    load.opcode = Opcode::kLoadPartial;
    load.operands[1] = ActiveMask(LaneBytes(LaneOf(type)));
    load.operands[2] = lanes_.active;
  }
  return FromLoaded(builder, type, Emit(load));
}

void Translator::StoreElements(DType type, const Location& location, const TypedValue& value, bool streams) {
  ValueBuilder builder = Builder();
  Operation store = MakeMemory(Opcode::kStore, type, lanes_.count, location.memory);
  store.operands[0] = ToStored(builder, value);
  if (lanes_.count > 1 && !(location.stride == Immediate(ByteSize(type)))) {
    store.opcode = IsPartial() ? Opcode::kStoreStridedPartial : Opcode::kStoreStrided;
    store.operands[1] = InRegister(location.stride);
    store.operands[2] = lanes_.active;
  } else if (IsPartial()) {
    store.opcode = Opcode::kStorePartial;
    store.operands[1] = ActiveMask(LaneBytes(LaneOf(type)));
    store.operands[2] = lanes_.active;
  } else if (streams && lanes_.count > 1) {
    store.opcode = Opcode::kStoreStream;
  }
  Emit(store);
}

// The register of a tile that an access means, and the first of its lanes.
Operand& Translator::TileRegister(const Access& access, int64_t& lane) {
  Registers& home = registers_[access.tensor.value];
  const Shape& shape = program_[access.tensor].shape;
  int64_t vector = 0;
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const bool last = axis + 1 == access.place.size();
    const Operand at = f_->Index(access.place[axis]);
    NESTOR_CHECK(at.kind == Operand::kImmediate, "a place in a register tile is a number");
    lane = last ? at.value % home.lanes : 0;
    const int64_t extent = ConstantOf(shape[axis]);
    vector = last ? vector * ((extent + home.lanes - 1) / home.lanes) + at.value / home.lanes
                  : vector * extent + at.value;
  }
  NESTOR_CHECK(vector < static_cast<int64_t>(home.tile.size()), "a place outside a register tile");
  return home.tile[vector];
}

Translator::Location Translator::Locate(const Access& access) {
  Location location;
  for (IndexId condition : access.conditions) {
    location.valid = f_->Both(location.valid, f_->ConditionValue(condition));
  }
  const Shape& shape = program_[access.tensor].shape;
  std::vector<ComputedPlace> computed(access.place.size());
  Operand inside;
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const IndexId e = access.place[axis];
    const bool plain = f_->IsFollowed(e);
    const bool in_range = program_.proven && !access.IsChecked(axis);
    if (plain && in_range) continue;
    const bool early = !plain && IsSharedGather(e);
    Operand axis_inside;
    const auto compute = [&] {
      const CheckedIndex checked = f_->Checked(e);
      if (!plain) computed[axis] = {checked.value, early ? lanes_.region : -1};
      if (!in_range) axis_inside = f_->InRange(checked, shape[axis]);
    };
    if (early) f_->EmitOnEntry(lanes_.region, compute);
    else compute();
    inside = f_->Both(inside, axis_inside);
  }
  if (access.masked) {
    location.valid = f_->Both(location.valid, inside);
  } else if (inside.kind != Operand::kNone) {
    Trap(inside);
  }
  const HomeKind kind = KindOf(access.tensor);
  if (kind == HomeKind::kScalar || kind == HomeKind::kTile) return location;
  location.memory = f_->Address(access.tensor, access.place, computed);
  location.stride = lanes_.var < 0 ? Immediate(0) : f_->Stride(access.tensor, access.place, lanes_.var);
  return location;
}

// Whether a gathered index is the same for all of a vector loop and gathers from inputs,
// so that it can be looked up once before the loop.
bool Translator::IsSharedGather(IndexId e) const {
  return lanes_.var >= 0 && f_->FrameOf(e) <= lanes_.region && LoadsOnlyInputs(program_, e);
}

// Leaves the function unless `valid`.
void Translator::Trap(Operand valid) {
  const int good = f_->list().NewLabel();
  f_->Branch(Condition::kNotEqual, valid, Immediate(0), good);
  Operation leave{Opcode::kReturn};
  leave.operands[0] = Immediate(statement_ + 1);
  Emit(leave);
  f_->Label(good);
}

}  // namespace nestor::jit
