// An element is in a scalar's register, in a lane of a tile's register, or in memory, where each
// kind of load and store has its price: the cheapest one that the stride and the lanes allow is
// chosen here.
//
// An access that is not always made is guarded: a masked one by a branch around it, for which
// Locate gives the condition, and by a mask of the lanes in which it is in range, if these differ;
// one that is not proven to be in range by a branch that leaves the function with the statement's
// number.
#include "jit/codegen/translate_accesses.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/transpose.h"
#include "loop_ir/lanes.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::Access;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;

TypedValue AccessTranslator::LoadUnmasked(const Access& access) {
  return LoadAt(access, tensors_.AreRegisters(access.tensor) ? Location() : Locate(access));
}

TypedValue AccessTranslator::LoadAt(const Access& access, const Location& location) {
  switch (tensors_.KindOf(access.tensor)) {
    case HomeKind::kScalar: return LoadScalar(access.tensor);
    case HomeKind::kTile: return LoadTile(access);
    default: return LoadMemory(access.tensor, location);
  }
}

TypedValue AccessTranslator::LoadScalar(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  const TensorRegisters& home = tensors_.Registers(tensor);
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  const TypedValue value = is_arg ? TypedValue{DType::kI64, home.position} : home.value;
  return home.lanes == f_.lanes().count ? value : f_.Spread(value);
}

// Registers hold the rows of a tile. A read along the first axis transposes a square tile once and
// takes a column of that, until the tile is written again.
TypedValue AccessTranslator::LoadTile(const Access& access) {
  int64_t lane = 0;
  const DType type = program_[access.tensor].type;
  if (access.place.size() == 2 && f_.lanes().var >= 0 &&
      program_.pool.VarValue(access.place[0]) == f_.lanes().var) {
    // Along the first axis: a column.
    TensorRegisters& home = tensors_.Registers(access.tensor);
    if (home.columns.empty()) home.columns = TransposeTile(f_.list(), jit::LaneOf(type), home.tile);
    return {type, home.columns[f_.Index(access.place[1]).value]};
  }
  Operand vector = TileRegister(access, lane);
  ValueBuilder of_tile = TileBuilder(access.tensor), builder = f_.Builder();
  const Lane tile_lane = of_tile.LaneOf(type);
  if (lane != 0) {
    // Lanes past the end of the tile hold anything, and a short register is shifted sooner.
    const int64_t extent = ConstantOf(program_, program_[access.tensor].shape.back());
    const int64_t lanes = std::min<int64_t>(tensors_.Registers(access.tensor).lanes, extent);
    Operation shift{Opcode::kLaneShift, tile_lane,
                    static_cast<uint8_t>(std::bit_ceil(static_cast<uint64_t>(lanes)))};
    shift.operands[0] = vector;
    shift.immediate = lane;
    vector = f_.Emit(shift);
  }
  // Outside of vectors a narrow integer is extended.
  const bool extends =
      tile_lane != builder.LaneOf(type) && !NESTOR_MUTANT("narrow_lane_not_extended");
  return extends ? Narrowed(builder, type, vector) : TypedValue{type, vector};
}

Operand& AccessTranslator::TileRegister(const Access& access, int64_t& lane) {
  TensorRegisters& home = tensors_.Registers(access.tensor);
  const Shape& shape = program_[access.tensor].shape;
  int64_t vector = 0;
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const bool last = axis + 1 == access.place.size();
    const Operand at = f_.Index(access.place[axis]);
    // Loops around tiles are written out, so their indices are numbers.
    NESTOR_CHECK(at.kind == Operand::kImmediate, "a place in a register tile is a number");
    lane = last ? at.value % home.lanes : 0;
    const int64_t extent = ConstantOf(program_, shape[axis]);
    vector = last ? vector * ((extent + home.lanes - 1) / home.lanes) + at.value / home.lanes
                  : vector * extent + at.value;
  }
  NESTOR_CHECK(vector < static_cast<int64_t>(home.tile.size()), "a place outside a register tile");
  return home.tile[vector];
}

ValueBuilder AccessTranslator::TileBuilder(TensorId tile) {
  const int lanes = tensors_.HomeOf(tile).tile_lanes;
  const DType type = program_[tile].type;
  const bool is_narrow = lanes > LanesOf(type, f_.list().isa);
  return ValueBuilder(f_.list(), lanes, is_narrow ? ByteSize(type) : kLeastLaneBytes);
}

// Prefetches only for the first of the vectors that share a cache line.
void AccessTranslator::Prefetch(const loop::Prefetch& prefetch) {
  const Access& access = prefetch.access;
  const DType type = program_[access.tensor].type;
  if (f_.lanes().var >= 0 && f_.Var(f_.lanes().var).second * ByteSize(type) % kCacheLineBytes != 0)
    return;
  std::vector<ComputedPlace> computed(access.place.size());
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const IndexId e = access.place[axis];
    if (f_.IsFollowed(e)) continue;
    const bool early = program_.pool.HasLoad(e);
    const auto compute = [&] {
      computed[axis] = {f_.Checked(e).value, early ? f_.lanes().region : -1};
    };
    if (early) f_.EmitOnEntry(f_.lanes().region, compute);
    else compute();
  }
  const bool second = prefetch.cache == loop::Prefetch::Cache::kSecond;
  f_.Emit(f_.MakeMemory(second ? Opcode::kPrefetchSecond : Opcode::kPrefetch, type,
                        f_.lanes().count, f_.Address(access.tensor, access.place, computed)));
}

// ---- Memory

// The result of reading the tensor.
TypedValue AccessTranslator::LoadMemory(TensorId tensor, const Location& location) {
  const TensorInfo& info = program_[tensor];
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  if (is_arg) return LoadElements(DType::kI64, PositionsOf(tensor, location));
  return LoadElements(info.type, location, info.storage == Storage::kInput);
}

// The cheapest kind of load that the stride and the lanes allow: by mask, broadcast (stride 0),
// strided, the first lanes only, or a plain vector.
TypedValue AccessTranslator::LoadElements(DType type, const Location& location, bool invariant) {
  Operation load = f_.MakeMemory(Opcode::kLoad, type, f_.lanes().count, location.memory);
  load.invariant = invariant;
  ValueBuilder builder = f_.Builder();
  if (location.lanes.kind != Operand::kNone) {
    load.opcode = Opcode::kLoadMasked;
    load.operands[0] = location.stride;
    load.operands[1] = location.lanes;
  } else if (f_.lanes().count > 1 && location.stride == Immediate(0)) {
    load.opcode = Opcode::kLoadBroadcast;
  } else if (f_.lanes().count > 1 && !(location.stride == Immediate(ByteSize(type)))) {
    load.opcode = f_.IsPartial() ? Opcode::kLoadStridedPartial : Opcode::kLoadStrided;
    load.operands[0] = location.stride;
    load.operands[2] = f_.lanes().active;
  } else if (f_.IsPartial()) {
    load.opcode = Opcode::kLoadPartial;
    if (GoesByMask(load, f_.list().isa))
      load.operands[1] = f_.ActiveMask(LaneBytes(f_.LaneOf(type)));
    load.operands[2] = f_.lanes().active;
  }
  return FromLoaded(builder, type, f_.Emit(load));
}

// As LoadElements; past the caches only whole vectors.
void AccessTranslator::StoreElements(DType type, const Location& location, const TypedValue& value,
                                     bool streams) {
  ValueBuilder builder = f_.Builder();
  Operation store = f_.MakeMemory(Opcode::kStore, type, f_.lanes().count, location.memory);
  store.operands[0] = ToStored(builder, value);
  if (f_.lanes().count > 1 && !(location.stride == Immediate(ByteSize(type)))) {
    store.opcode = f_.IsPartial() ? Opcode::kStoreStridedPartial : Opcode::kStoreStrided;
    store.operands[1] = location.stride;
    store.operands[2] = f_.lanes().active;
  } else if (f_.IsPartial()) {
    store.opcode = Opcode::kStorePartial;
    if (GoesByMask(store, f_.list().isa))
      store.operands[1] = f_.ActiveMask(LaneBytes(f_.LaneOf(type)));
    store.operands[2] = f_.lanes().active;
  } else if (streams && f_.lanes().count > 1) {
    store.opcode = Opcode::kStoreStream;
  }
  f_.Emit(store);
}

// Conditions come first, then each axis that is
// not followed by strides or not known to be in range. A masked access whose range differs from
// lane to lane gets a mask of lanes; a checked one that is outside leaves the function. Subscripts
// that all lanes share are computed before the loop.
Location AccessTranslator::Locate(const Access& access) {
  Location location;
  const Loads loads = program_.proven && !access.ChecksLoads() ? Loads::kInRange : Loads::kChecked;
  for (IndexId condition : access.conditions) {
    location.valid = f_.Both(location.valid, f_.ConditionValue(condition));
  }
  const Shape& shape = program_[access.tensor].shape;
  std::vector<ComputedPlace> computed(access.place.size());
  Operand inside;
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const IndexId e = access.place[axis];
    const bool plain = f_.IsFollowed(e);
    const bool in_range = program_.proven && !access.IsChecked(axis);
    if (plain && in_range) continue;
    const bool early = !plain && IsSharedGather(e);
    Operand axis_inside;
    const bool by_lane =
        access.masked && f_.lanes().var >= 0 && HoldsVar(program_.pool, e, f_.lanes().var);
    const auto compute = [&] {
      // Before the loop, what is proven inside of it may not hold.
      const CheckedIndex checked = f_.Checked(e, early ? Loads::kChecked : loads);
      if (!plain) computed[axis] = {checked.value, early ? f_.lanes().region : -1};
      if (in_range) return;
      axis_inside = by_lane ? checked.valid : f_.InRange(checked, shape[axis]);
    };
    if (early) f_.EmitOnEntry(f_.lanes().region, compute);
    else compute();
    inside = f_.Both(inside, axis_inside);
    if (!in_range && by_lane)
      location.lanes =
          f_.LanesInRange(e, shape[axis], LaneBytes(f_.LaneOf(program_[access.tensor].type)));
  }
  if (access.masked) {
    location.valid = f_.Both(location.valid, inside);
  } else if (inside.kind != Operand::kNone) {
    f_.Trap(inside);
  }
  if (tensors_.AreRegisters(access.tensor)) return location;
  location.memory = f_.Address(access.tensor, access.place, computed);
  location.stride =
      f_.lanes().var < 0 ? Immediate(0) : f_.Stride(access.tensor, access.place, f_.lanes().var);
  return location;
}

// Whether a gathered index is the same throughout a vector loop and gathers from inputs, so that it
// can be looked up once before the loop.
bool AccessTranslator::IsSharedGather(IndexId e) const {
  return f_.lanes().var >= 0 && f_.FrameOf(e) <= f_.lanes().region && LoadsOnlyInputs(program_, e);
}

// The location of an arg accumulator's position: the positions are i64s after its values, of
// which it has as many. The distance to the first is in the table; that to an element's grows
// with its offset.
Location AccessTranslator::PositionsOf(TensorId tensor, const Location& location) {
  const int64_t size = ByteSize(program_[tensor].type);
  const IndexList origin(program_[tensor].shape.size(), program_.pool.Const(0));
  const Memory base = f_.Address(tensor, origin);
  const Operand element = f_.General(Opcode::kAddressG, {});
  f_.list().operations.back().memory = location.memory;
  const Operand offset = f_.General(Opcode::kSubG, element, base.base);
  const Operand scaled = f_.General(Opcode::kMulG, offset, Immediate(8));
  const Operand bytes = f_.General(Opcode::kFloorDivG, scaled, Immediate(size));
  Operand first = f_.General(Opcode::kAddG, base.base,
                             Operand::Table(table_.Slot({TableSlot::kPositions, tensor})));
  first = f_.General(Opcode::kAddG, first, bytes);
  Location positions{{first, {}, 1, 0}, location.valid, location.stride, {}};
  if (!(location.stride == Immediate(0))) {
    NESTOR_CHECK(location.stride == Immediate(size), "positions of strided elements");
    positions.stride = Immediate(8);
  }
  return positions;
}

}  // namespace nestor::jit
