// Statements. What is written goes to the register of a scalar, to a register of a tile, or to
// memory. If the operation that has just computed a value can write it to the target's register
// itself, no move is made.
#include "jit/codegen/translate_statements.h"

#include <initializer_list>
#include <utility>

namespace nestor::jit {

using loop::Access;
using loop::TensorId;

namespace {

// Picks the first of equal values, and the first NaN if any.
std::pair<TypedValue, TypedValue> Better(ValueBuilder builder, ReduceOp op, const TypedValue& best,
                                         const TypedValue& place, const TypedValue& value,
                                         const TypedValue& position) {
  const auto apply = [&](ScalarOp scalar, std::initializer_list<TypedValue> args, DType type) {
    return ApplyScalarOp(builder, scalar, args, type);
  };
  TypedValue better =
      apply(op == ReduceOp::kArgmax ? ScalarOp::kGt : ScalarOp::kLt, {value, best}, DType::kBool);
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

}  // namespace

int32_t StatementTranslator::NumberOf(const loop::Statement& statement) {
  const auto [number, is_new] =
      numbers_.try_emplace(&statement, static_cast<int32_t>(numbered_.size()));
  if (is_new) numbered_.push_back(statement);
  return number->second;
}

// A masked store's place and conditions come before its value, which is computed only if it is
// stored.
void StatementTranslator::Statement(const loop::Statement& statement) {
  f_.BeginStatement(NumberOf(statement));
  values_.Forget();
  const bool in_memory = !tensors_.AreRegisters(statement.target.tensor);
  Location location;
  if (in_memory || statement.target.masked) location = accesses_.Locate(statement.target);
  if (location.valid.kind == Operand::kNone) {
    Write(statement, location);
  } else {
    // A dropped value is not evaluated.
    const int dropped = f_.list().NewLabel();
    f_.Branch(Condition::kEqual, location.valid, Immediate(0), dropped);
    f_.OpenRegion();
    Write(statement, location);
    f_.CloseRegion();
    f_.Label(dropped);
  }
  f_.EndStatement();
}

void StatementTranslator::Write(const loop::Statement& statement, const Location& location) {
  if (statement.op && IsArg(*statement.op)) return WriteArg(statement, location);
  switch (tensors_.KindOf(statement.target.tensor)) {
    case HomeKind::kScalar: return WriteScalar(statement);
    case HomeKind::kTile: return WriteTile(statement);
    default: return WriteMemory(statement, location);
  }
}

TypedValue StatementTranslator::Result(const loop::Statement& statement, const TypedValue& old) {
  const TypedValue value = values_.Value(statement.value);
  ValueBuilder builder = f_.Builder();
  return ApplyScalarOp(builder, StepOp(*statement.op), {old, value}, old.type);
}

// A scalar that is written once is bound to the register of its value, without a move; unless that
// register belongs to another statement, which may write it again.
void StatementTranslator::WriteScalar(const loop::Statement& statement) {
  TensorRegisters& home = tensors_.Registers(statement.target.tensor);
  if (!tensors_.HomeOf(statement.target.tensor).is_single) {
    const TypedValue value =
        statement.op ? Result(statement, home.value) : values_.Value(statement.value);
    values_.Forget();
    return values_.Assign(home.value, value);
  }
  home.value = values_.Value(statement.value);
  // A register that may change later is copied.
  if (home.value.operand.is_register() && !f_.IsOwn(home.value.operand)) {
    TypedValue copy = home.value;
    copy.operand = copy.type == DType::kBool ? f_.list().NewMask() : f_.list().NewVector();
    values_.Forget();
    values_.Assign(copy, home.value);
    home.value = copy;
  }
  tensors_.SetScalar(statement.target.tensor, home.value.operand);
}

// In a tail, lanes that take no part keep what they held, unless they lie beyond the tile's end.
void StatementTranslator::WriteTile(const loop::Statement& statement) {
  int64_t lane = 0;
  TypedValue target{program_[statement.target.tensor].type,
                    accesses_.TileRegister(statement.target, lane)};
  tensors_.Registers(statement.target.tensor).columns.clear();
  TypedValue value = statement.op ? Result(statement, target) : values_.Value(statement.value);
  values_.Forget();
  if (f_.IsPartial() && !CoversTile(statement.target)) {
    ValueBuilder builder = f_.Builder();
    const Operand mask = f_.ActiveMask(LaneBytes(f_.LaneOf(target.type)));
    value.operand = builder.Vector(Opcode::kBlend, f_.LaneOf(target.type),
                                   {mask, value.operand, target.operand});
  }
  values_.Assign(target, value);
}

// Whether the loop walks the tile's axis to its end: lanes beyond hold anything.
bool StatementTranslator::CoversTile(const Access& target) const {
  return program_.pool.VarValue(target.place.back()) == f_.lanes().var &&
         program_.pool.ConstValue(program_[target.tensor].shape.back()) == f_.lanes().end;
}

void StatementTranslator::WriteMemory(const loop::Statement& statement, const Location& location) {
  const TensorId tensor = statement.target.tensor;
  const DType type = program_[tensor].type;
  const TypedValue value = statement.op ? Result(statement, accesses_.LoadElements(type, location))
                                        : values_.Value(statement.value);
  accesses_.StoreElements(type, location, value, statement.streams);
}

// An arg accumulator is a pair, the best value so far and its position; both are replaced together.
void StatementTranslator::WriteArg(const loop::Statement& statement, const Location& location) {
  const TensorId tensor = statement.target.tensor;
  const TypedValue value = values_.Value(statement.value),
                   position = values_.Value(statement.position);
  if (tensors_.KindOf(tensor) == HomeKind::kScalar) {
    TensorRegisters& home = tensors_.Registers(tensor);
    TypedValue place{DType::kI64, home.position};
    const auto [best, where] =
        Better(f_.Builder(), *statement.op, home.value, place, value, position);
    values_.Assign(home.value, best);
    return values_.Assign(place, where);
  }
  const Location positions = accesses_.PositionsOf(tensor, location);
  const TypedValue place = accesses_.LoadElements(DType::kI64, positions);
  const TypedValue old = accesses_.LoadElements(value.type, location);
  const auto [best, where] = Better(f_.Builder(), *statement.op, old, place, value, position);
  accesses_.StoreElements(value.type, location, best, false);
  accesses_.StoreElements(DType::kI64, positions, where, false);
}

}  // namespace nestor::jit
