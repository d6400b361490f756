// Accesses. An access that is not always made is guarded: a masked one by a branch around it, and
// by a mask of the lanes in which it is in range, if these differ; one that is not proven to be in
// range by a branch that leaves the function with the statement's number.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/translator.h"
#include "jit/codegen/transpose.h"
#include "jit/target/products.h"
#include "loop_ir/lanes.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::Access;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;

// A masked access whose mask is not needed is a plain one.
TypedValue Translator::Load(const Access& access) {
  if (access.masked) {
    const Location location = Locate(access);
    if (location.valid.kind == Operand::kNone) return LoadLanes(access, location);
    return LoadMasked(access, location);
  }
  const HomeKind kind = KindOf(access.tensor);
  if (kind == HomeKind::kScalar || kind == HomeKind::kTile) return LoadAt(access, {});
  return LoadMemory(access.tensor, Locate(access));
}

// Loads without testing the part of the mask that all lanes share.
TypedValue Translator::LoadLanes(const Access& access, const Location& location) {
  const TypedValue loaded = LoadAt(access, location);
  // A masked load gives 0 in the lanes that it leaves out.
  if (location.lanes.kind == Operand::kNone || IsPlusZero(program_, access.fill)) return loaded;
  ValueBuilder builder = Builder();
  const TypedValue fill = Value(access.fill);
  return {loaded.type, builder.Vector(Opcode::kBlend, LaneOf(loaded.type),
                                      {location.lanes, loaded.operand, fill.operand})};
}

TypedValue Translator::LoadAt(const Access& access, const Location& location) {
  switch (KindOf(access.tensor)) {
    case HomeKind::kScalar: return LoadScalar(access.tensor);
    case HomeKind::kTile: return LoadTile(access);
    default: return LoadMemory(access.tensor, location);
  }
}

// Prefetches only for the first of the vectors that share a cache line.
void Translator::Prefetch(const loop::Prefetch& prefetch) {
  const Access& access = prefetch.access;
  const DType type = program_[access.tensor].type;
  if (lanes_.var >= 0 && f_->Var(lanes_.var).second * ByteSize(type) % kCacheLineBytes != 0) return;
  std::vector<ComputedPlace> computed(access.place.size());
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const IndexId e = access.place[axis];
    if (f_->IsFollowed(e)) continue;
    const bool early = program_.pool.HasLoad(e);
    const auto compute = [&] {
      computed[axis] = {f_->Checked(e).value, early ? lanes_.region : -1};
    };
    if (early) f_->EmitOnEntry(lanes_.region, compute);
    else compute();
  }
  const bool second = prefetch.cache == loop::Prefetch::Cache::kSecond;
  Emit(MakeMemory(second ? Opcode::kPrefetchSecond : Opcode::kPrefetch, type, lanes_.count,
                  f_->Address(access.tensor, access.place, computed)));
}

// Registers hold the rows of a tile. A read along the first axis transposes a square tile once and
// takes a column of that, until the tile is written again.
TypedValue Translator::LoadTile(const Access& access) {
  int64_t lane = 0;
  const DType type = program_[access.tensor].type;
  if (access.place.size() == 2 && lanes_.var >= 0 &&
      program_.pool.VarValue(access.place[0]) == lanes_.var) {
    // Along the first axis: a column.
    Registers& home = registers_[access.tensor.value];
    if (home.columns.empty())
      home.columns = TransposeTile(f_->list(), jit::LaneOf(type), home.tile);
    return {type, home.columns[f_->Index(access.place[1]).value]};
  }
  Operand vector = TileRegister(access, lane);
  ValueBuilder of_tile = TileBuilder(access.tensor), builder = Builder();
  const Lane tile_lane = of_tile.LaneOf(type);
  if (lane != 0) {
    // Lanes past the end of the tile hold anything, and a short register is shifted sooner.
    const int64_t extent = ConstantOf(program_[access.tensor].shape.back());
    const int64_t lanes = std::min<int64_t>(registers_[access.tensor.value].lanes, extent);
    Operation shift{Opcode::kLaneShift, tile_lane,
                    static_cast<uint8_t>(std::bit_ceil(static_cast<uint64_t>(lanes)))};
    shift.operands[0] = vector;
    shift.immediate = lane;
    vector = Emit(shift);
  }
  // Outside of vectors a narrow integer is extended.
  const bool extends =
      tile_lane != builder.LaneOf(type) && !NESTOR_MUTANT("narrow_lane_not_extended");
  return extends ? Narrowed(builder, type, vector) : TypedValue{type, vector};
}

TypedValue Translator::LoadScalar(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  const Registers& home = registers_[tensor.value];
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  const TypedValue value = is_arg ? TypedValue{DType::kI64, home.position} : home.value;
  return home.lanes == lanes_.count ? value : Spread(value);
}

// Broadcasts a scalar from before the vector loop to all lanes.
TypedValue Translator::Spread(const TypedValue& scalar) {
  if (scalar.operand.kind == Operand::kConstant) {
    ValueBuilder builder = Builder();
    return {scalar.type,
            builder.ConstantOf(LaneOf(scalar.type), *builder.KnownBits(scalar.operand))};
  }
  const uint8_t lanes = static_cast<uint8_t>(lanes_.count);
  Operation spread{Opcode::kBroadcast, LaneOf(scalar.type), lanes};
  spread.operands[0] = scalar.operand;
  if (scalar.type != DType::kBool) return {scalar.type, f_->OnEntry(lanes_.region, spread)};
  // Uses lanes so narrow that a vector has as many as the loop runs in.
  const Lane lane = LaneOf(DType::kBool);
  Operand mask = scalar.operand;
  if (scalar.mask_lane_bytes == 8 && MasksAreVectors(options_.isa)) {
    Operation narrow{Opcode::kMaskNarrow, Lane::kI64, 1};
    narrow.operands[0] = mask;
    mask = f_->OnEntry(lanes_.region, narrow);
  }
  Operation to_lanes{Opcode::kLanesOfMask, Lane::kI32, 1};
  to_lanes.operands[0] = mask;
  spread.lane = lane;
  spread.operands[0] = f_->OnEntry(lanes_.region, to_lanes);
  Operation to_mask{Opcode::kMaskOfLanes, lane, lanes};
  to_mask.operands[0] = f_->OnEntry(lanes_.region, spread);
  return {DType::kBool, f_->OnEntry(lanes_.region, to_mask), LaneBytes(lane)};
}

// The fill, over which the element is loaded only if the access is made:
//
//   r = move fill
//   branch if not valid to outside
//   r = load ..
//   outside:
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
  Assign(target, LoadLanes(access, location));
  f_->CloseRegion();
  f_->Label(outside);
  return target;
}

// ---- Memory

// The result of reading the tensor.
TypedValue Translator::LoadMemory(TensorId tensor, const Location& location) {
  const TensorInfo& info = program_[tensor];
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  if (is_arg) return LoadElements(DType::kI64, PositionsOf(tensor, location));
  return LoadElements(info.type, location, info.storage == Storage::kInput);
}

// The cheapest kind of load that the stride and the lanes allow: by mask, broadcast (stride 0),
// strided, the first lanes only, or a plain vector.
TypedValue Translator::LoadElements(DType type, const Location& location, bool invariant) {
  Operation load = MakeMemory(Opcode::kLoad, type, lanes_.count, location.memory);
  load.invariant = invariant;
  ValueBuilder builder = Builder();
  if (location.lanes.kind != Operand::kNone) {
    load.opcode = Opcode::kLoadMasked;
    load.operands[0] = location.stride;
    load.operands[1] = location.lanes;
  } else if (lanes_.count > 1 && location.stride == Immediate(0)) {
    load.opcode = Opcode::kLoadBroadcast;
  } else if (lanes_.count > 1 && !(location.stride == Immediate(ByteSize(type)))) {
    load.opcode = IsPartial() ? Opcode::kLoadStridedPartial : Opcode::kLoadStrided;
    load.operands[0] = location.stride;
    load.operands[2] = lanes_.active;
  } else if (IsPartial()) {
    load.opcode = Opcode::kLoadPartial;
    if (GoesByMask(load, f_->list().isa)) load.operands[1] = ActiveMask(LaneBytes(LaneOf(type)));
    load.operands[2] = lanes_.active;
  }
  return FromLoaded(builder, type, Emit(load));
}

// As LoadElements; past the caches only whole vectors.
void Translator::StoreElements(DType type, const Location& location, const TypedValue& value,
                               bool streams) {
  ValueBuilder builder = Builder();
  Operation store = MakeMemory(Opcode::kStore, type, lanes_.count, location.memory);
  store.operands[0] = ToStored(builder, value);
  if (lanes_.count > 1 && !(location.stride == Immediate(ByteSize(type)))) {
    store.opcode = IsPartial() ? Opcode::kStoreStridedPartial : Opcode::kStoreStrided;
    store.operands[1] = location.stride;
    store.operands[2] = lanes_.active;
  } else if (IsPartial()) {
    store.opcode = Opcode::kStorePartial;
    if (GoesByMask(store, f_->list().isa)) store.operands[1] = ActiveMask(LaneBytes(LaneOf(type)));
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
    // Loops around tiles are written out, so their indices are numbers.
    NESTOR_CHECK(at.kind == Operand::kImmediate, "a place in a register tile is a number");
    lane = last ? at.value % home.lanes : 0;
    const int64_t extent = ConstantOf(shape[axis]);
    vector = last ? vector * ((extent + home.lanes - 1) / home.lanes) + at.value / home.lanes
                  : vector * extent + at.value;
  }
  NESTOR_CHECK(vector < static_cast<int64_t>(home.tile.size()), "a place outside a register tile");
  return home.tile[vector];
}

// The address of the access, and whether it is made. Conditions come first, then each axis that is
// not followed by strides or not known to be in range. A masked access whose range differs from
// lane to lane gets a mask of lanes; a checked one that is outside leaves the function. Subscripts
// that all lanes share are computed before the loop.
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
    const bool by_lane = access.masked && lanes_.var >= 0 && HoldsVar(program_.pool, e, lanes_.var);
    const auto compute = [&] {
      const CheckedIndex checked = f_->Checked(e);
      if (!plain) computed[axis] = {checked.value, early ? lanes_.region : -1};
      if (in_range) return;
      axis_inside = by_lane ? checked.valid : f_->InRange(checked, shape[axis]);
    };
    if (early) f_->EmitOnEntry(lanes_.region, compute);
    else compute();
    inside = f_->Both(inside, axis_inside);
    if (!in_range && by_lane)
      location.lanes =
          LanesInRange(e, shape[axis], LaneBytes(LaneOf(program_[access.tensor].type)));
  }
  if (access.masked) {
    location.valid = f_->Both(location.valid, inside);
  } else if (inside.kind != Operand::kNone) {
    Trap(inside);
  }
  const HomeKind kind = KindOf(access.tensor);
  if (kind == HomeKind::kScalar || kind == HomeKind::kTile) return location;
  location.memory = f_->Address(access.tensor, access.place, computed);
  location.stride =
      lanes_.var < 0 ? Immediate(0) : f_->Stride(access.tensor, access.place, lanes_.var);
  return location;
}

// A mask of the participating lanes in which an index that grows by one from lane to lane is in
// range. It tests the begin and the end only if the loop's own bounds do not ensure them.
Operand Translator::LanesInRange(IndexId e, IndexId extent, int lane_bytes) {
  IndexPool& pool = program_.pool;
  Operation mask{Opcode::kMaskOfCount, IntegerLane(lane_bytes), static_cast<uint8_t>(lanes_.count)};
  const auto on_entry = [&](int depth, Opcode opcode, Operand a, Operand b = {}) {
    mask.opcode = opcode;
    mask.operands[0] = a;
    mask.operands[1] = b;
    return f_->OnEntry(depth, mask);
  };
  const auto first_lanes = [&](IndexId count) {
    return on_entry(f_->FrameOf(e), Opcode::kMaskOfCount,
                    f_->Index(pool.Max(count, pool.Const(0))));
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
    inside =
        IsPartial() ? on_entry(f_->FrameOf(e), Opcode::kMaskAnd, before_end, inside) : before_end;
  } else if (!IsPartial()) {
    inside = on_entry(lanes_.region, Opcode::kMaskOfCount, Immediate(lanes_.count));
  }
  if (is_known(pool.Add(lanes_.loop->begin, offset)) || NESTOR_MUTANT("lanes_before_begin_read"))
    return inside;
  return on_entry(f_->FrameOf(e), Opcode::kMaskAndNot, first_lanes(pool.Neg(e)), inside);
}

// Whether a gathered index is the same throughout a vector loop and gathers from inputs, so that it
// can be looked up once before the loop.
bool Translator::IsSharedGather(IndexId e) const {
  return lanes_.var >= 0 && f_->FrameOf(e) <= lanes_.region && LoadsOnlyInputs(program_, e);
}

// Leaves the function unless `valid`.
// 0 is success, so statements are numbered from 1 here.
void Translator::Trap(Operand valid) {
  const int good = f_->list().NewLabel();
  f_->Branch(Condition::kNotEqual, valid, Immediate(0), good);
  Operation leave{Opcode::kReturn};
  leave.operands[0] = Immediate(statement_ + 1);
  Emit(leave);
  f_->Label(good);
}

}  // namespace nestor::jit
