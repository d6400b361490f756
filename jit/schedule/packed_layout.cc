// A place (row, vector, lane, steps) is found in two ways: in a copy by its axes (PlaceIn), and in the
// nest as written by setting the nest's indices (Moved). That both are the same element is what
// makes a copy right. Steps count from the begin of the sums' hulls, so that one layout serves all
// iterations whose bounds move.
#include "jit/schedule/packed_layout.h"

#include "absl/algorithm/container.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/affine.h"

namespace nestor::loop {

IndexId PackedLayout::LengthOfHull(const Loop& loop, const Hull& hull) const {
  if (loop.begin == hull.begin && loop.end == hull.end) return ranges_.LengthOf(loop);
  const IndexId length = pool_.Sub(hull.end, hull.begin);
  return ranges_.NonNegative(length) ? length : pool_.Max(length, pool_.Const(0));
}

void PackedLayout::Measure() {
  rows_ = ranges_.LengthOf(*nest_.row);
  columns_ = LengthOfHull(*nest_.column, *HullOf(program_, *nest_.column));
}

IndexId PackedLayout::Vectors() const {
  if (nest_.jammed != nullptr) return ranges_.LengthOf(*nest_.jammed);
  return OverUp(pool_, columns_, pool_.Const(lanes_));
}

Shape PackedLayout::ShapeOf(const PackedOperand& packed) const {
  Shape shape = {packed.in_columns ? Vectors()
                                   : LengthOfHull(*nest_.row, *HullOf(program_, *nest_.row))};
  for (const size_t sum : packed.sums) shape.push_back(LengthOfHull(sum));
  if (packed.in_columns) shape.push_back(pool_.Const(lanes_));
  if (packed.in_panels) shape[0] = pool_.Sub(shape[0], whole_);
  return shape;
}

IndexList PackedLayout::PlaceIn(const PackedOperand& packed, const TilePlace& at) const {
  IndexList place = {packed.in_columns ? at.vector : at.row};
  if (packed.in_panels) place[0] = pool_.Sub(at.vector, whole_);
  for (const size_t sum : packed.sums) place.push_back(at.sums[sum]);
  if (packed.in_columns) place.push_back(at.lane);
  return place;
}

ValueId PackedLayout::Moved(ValueId value, const TilePlace& at) const {
  VarReplacement replace(program_);
  Locate(replace, at.row, at.vector, at.lane);
  for (size_t i = 0; i < at.sums.size(); ++i) {
    if (at.sums[i].value >= 0)
      replace.Set(nest_.sums[i]->var, pool_.Add(nest_.hulls[i].begin, at.sums[i]));
  }
  return RewriteIndices(program_, value, [&](IndexId e) { return replace(e); });
}

void PackedLayout::Locate(VarReplacement& replace, IndexId row, IndexId vector,
                          IndexId lane) const {
  replace.Set(nest_.row->var, pool_.Add(nest_.row->begin, row));
  if (nest_.jammed != nullptr)
    replace.Set(nest_.jammed->var, pool_.Add(nest_.jammed->begin, vector));
  replace.Set(nest_.column->var, ColumnAt(vector, lane));
}

IndexId PackedLayout::ColumnAt(IndexId vector, IndexId lane) const {
  const IndexId before =
      nest_.jammed != nullptr ? pool_.Const(0) : pool_.Mul(pool_.Const(lanes_), vector);
  return pool_.Add(nest_.column->begin, pool_.Add(before, lane));
}

bool PackedLayout::ReadsBeyond(const PackedOperand& packed) const {
  const std::vector<Access> accesses = AccessesOf(program_, packed.operand);
  return !accesses[0].masked && absl::c_all_of(accesses, [&](const Access& access) {
    return access.masked || ReadsBeyond(access);
  });
}

// An access that only grows along its column and its sums is greatest at the last of each: if that
// lies in the tensor, all of them do.
bool PackedLayout::ReadsBeyond(const Access& access) const {
  const IndexId beside = nest_.jammed != nullptr ? pool_.Const(1) : Vectors();
  const IndexId last = pool_.Sub(pool_.Mul(pool_.Const(lanes_), beside), pool_.Const(1));
  VarReplacement at_end(program_);
  at_end.Set(nest_.column->var, pool_.Add(nest_.column->begin, last));
  std::vector<const Loop*> loops = nest_.sums;
  loops.push_back(nest_.column);
  for (size_t i = 0; i < nest_.hulls.size(); ++i) {
    at_end.Set(nest_.sums[i]->var, pool_.Sub(nest_.hulls[i].end, pool_.Const(1)));
  }
  const auto walks_forward = [&](IndexId e) {
    return absl::c_all_of(loops, [&](const Loop* loop) {
      const auto step = CoefficientOf(pool_, e, loop->var);
      return step && ranges_.NonNegative(step->Build(pool_));
    });
  };
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const IndexId e = access.place[axis];
    if (!HoldsVar(pool_, e, nest_.column->var)) continue;
    const IndexId end = at_end(e);
    if (!walks_forward(e) || pool_.HasVar(end) ||
        !ranges_.Less(end, program_[access.tensor].shape[axis]))
      return false;
  }
  return true;
}

}  // namespace nestor::loop
