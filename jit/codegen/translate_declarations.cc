// A tensor has its registers where it is declared: in a loop they are the same in each iteration,
// and are set to the start value again. Memory needs code only for accumulators, which start at
// their identity.
#include "jit/codegen/translate_declarations.h"

#include "jit/codegen/operand_constraints.h"
#include "jit/target/lanes.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;

namespace {

// The start value of an accumulator.
Scalar StartOf(const TensorInfo& info) {
  if (NESTOR_MUTANT("max_starts_at_zero") && info.op == ReduceOp::kMax)
    return Scalar::Zero(info.type);
  if (NESTOR_MUTANT("max_starts_at_lowest_finite") && info.op == ReduceOp::kMax &&
      IsFloat(info.type)) {
    return {info.type, Lowest(info.type).bits - 1};  // below -inf's
  }
  return Identity(info.op, info.type);
}

}  // namespace

// Only accumulators in memory need code here: the others are registers, or unwritten.
void DeclarationTranslator::Declare(TensorId tensor) {
  switch (tensors_.KindOf(tensor)) {
    case HomeKind::kScalar: return DeclareScalar(tensor);
    case HomeKind::kTile: return DeclareTile(tensor);
    case HomeKind::kMemory:
    case HomeKind::kPrivate:
      if (program_[tensor].storage == Storage::kAccumulator) Fill(tensor);
      return;
    case HomeKind::kArgument: return;
  }
}

// A register of its own for a scalar that is written more than once; an arg accumulator has a
// second one for its position, -1 at first.
void DeclarationTranslator::DeclareScalar(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  TensorRegisters& home = tensors_.Registers(tensor);
  home = {};
  home.lanes = f_.lanes().count;
  if (tensors_.HomeOf(tensor).is_single) return;  // bound when it is written
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  ValueBuilder builder = f_.Builder();
  home.value = {info.type, info.type == DType::kBool ? f_.list().NewMask() : f_.list().NewVector(),
                LaneBytes(f_.LaneOf(DType::kBool))};
  if (is_arg) {
    home.position = f_.list().NewVector();
    tensors_.SetScalar(tensor, home.position);
    TypedValue position{DType::kI64, home.position};
    values_.Assign(position, builder.Constant(Scalar::I64(-1)));
  } else {
    tensors_.SetScalar(tensor, home.value.operand);
  }
  // A temp is written before it is read; but not on every path that the allocator
  // sees.
  const Scalar start =
      info.storage == Storage::kAccumulator && !is_arg ? StartOf(info) : Scalar::Zero(info.type);
  const auto assign = [&] { values_.Assign(home.value, builder.Constant(start)); };
  NESTOR_MUTANT("stale_accumulator") ? f_.EmitOnEntry(0, assign) : assign();
}

// A register for each vector along the last axis, in row-major order; all start at the identity.
void DeclarationTranslator::DeclareTile(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  TensorRegisters& home = tensors_.Registers(tensor);
  home = {};
  home.lanes = tensors_.HomeOf(tensor).tile_lanes;
  int64_t vectors = 1;
  for (size_t axis = 0; axis < info.shape.size(); ++axis) {
    int64_t extent = ConstantOf(program_, info.shape[axis]);
    if (axis + 1 == info.shape.size()) extent = (extent + home.lanes - 1) / home.lanes;
    vectors *= extent;
  }
  ValueBuilder builder = accesses_.TileBuilder(tensor);
  const Scalar start =
      info.storage == Storage::kAccumulator ? StartOf(info) : Scalar::Zero(info.type);
  const TypedValue identity = builder.Constant(start);
  for (int64_t i = 0; i < vectors; ++i) {
    home.tile.push_back(f_.list().NewVector());
    Operation move{Opcode::kMove, builder.LaneOf(info.type), static_cast<uint8_t>(home.lanes)};
    move.operands[0] = identity.operand;
    f_.EmitTo(home.tile.back(), move);
  }
}

// An accumulator in memory starts at its identity.
void DeclarationTranslator::Fill(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  IndexId elements = program_.pool.Const(1);
  for (IndexId extent : info.shape) elements = program_.pool.Mul(elements, extent);
  const Operand count = f_.Index(elements);
  IndexList origin(info.shape.size(), program_.pool.Const(0));
  Location location{f_.Address(tensor, origin), {}, Immediate(0), {}};
  if (!IsArg(info.op)) return FillMemory(location.memory, info.type, StartOf(info).bits, count);
  FillMemory(accesses_.PositionsOf(tensor, location).memory, DType::kI64, ~uint64_t{0}, count);
}

// A loop of whole vectors, then the rest under a mask:
//
//   while (left >= lanes) { store [pointer], value; pointer += ..; left -= lanes }
//   store_partial [pointer], value, left
void DeclarationTranslator::FillMemory(Memory memory, DType type, uint64_t bits, Operand count) {
  const int lanes = LanesOf(type, f_.list().isa);
  const Lanes around = f_.lanes();
  f_.lanes() = {lanes, kLeastLaneBytes, -1, f_.Depth(), {}, -1, nullptr};
  ValueBuilder builder = f_.Builder();
  const Operand value = ToStored(builder, builder.Constant(Scalar{type, bits}));
  f_.OpenRegion();
  const Operand pointer = f_.General(Opcode::kAddressG, {});
  f_.list().operations.back().memory = memory;
  const Operand left = f_.General(Opcode::kMoveG, count);
  const int tail = f_.list().NewLabel(), again = f_.list().NewLabel();
  f_.Branch(Condition::kLess, left, Immediate(lanes), tail);
  Operation begin{Opcode::kLoopBegin};
  begin.immediate = again;
  f_.list().operations.push_back(begin);
  Operation store = f_.MakeMemory(Opcode::kStore, type, lanes, {pointer, {}, 1, 0});
  store.operands[0] = value;
  f_.Emit(store);
  const auto move = [&](Operand what, int64_t by) {
    Operation add{Opcode::kAddG};
    add.operands[0] = what;
    add.operands[1] = Immediate(by);
    f_.EmitTo(what, add);
  };
  move(pointer, int64_t{lanes} * ByteSize(type));
  move(left, -lanes);
  Operation end{Opcode::kLoopEnd};
  end.condition = Condition::kGreaterEqual;
  end.operands[0] = left;
  end.operands[1] = Immediate(lanes);
  end.immediate = again;
  f_.Emit(end);
  f_.Label(tail);
  f_.lanes().active = left;
  store.opcode = Opcode::kStorePartial;
  if (GoesByMask(store, f_.list().isa))
    store.operands[1] = f_.ActiveMask(LaneBytes(f_.LaneOf(type)));
  store.operands[2] = left;
  f_.Emit(store);
  f_.CloseRegion();
  f_.lanes() = around;
}

}  // namespace nestor::jit
