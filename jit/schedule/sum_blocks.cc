// The middle loop of blocking for caches (Goto and van de Geijn, 2008, where it is the loop over
// k_c): the outermost sum is cut into pieces of as many steps as fit a block, given the steps of
// the other sums, so that the packed columns of a block stay in the second cache while all tiles
// below each other read them. The sums of the tiles wait in `partial` from one block to the next;
// each tile begins with them again, so that the order of additions is the same as without blocks.
#include "jit/schedule/sum_blocks.h"

#include <utility>

#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/affine.h"
#include "uops/mutant.h"

namespace nestor::loop {

absl::optional<SumBlocks::Cut> SumBlocks::CutAt(int64_t steps, int64_t rows, int64_t vectors,
                                                int64_t lanes) {
  const Loop& outermost = *nest_.sums[0];
  const IndexId length = LengthOf(steps);
  const auto more = DifferenceOf(pool_, packing_.LengthOfHull(0), length);
  if (BoundsMove(pool_, outermost) || more.value_or(1) <= 0) return absl::nullopt;
  Shape shape = short_.ExtentsInSums();
  for (const int64_t extent : {rows, vectors, lanes}) shape.push_back(pool_.Const(extent));
  return BlocksOf(length, std::move(shape));
}

SumBlocks::Cut SumBlocks::BlocksOf(IndexId length, Shape kept) {
  const DType type = program_[nest_.accumulator].type;
  const TensorId partial = program_.AddTensor({"partial", type, std::move(kept), Storage::kTemp});
  return {length, pool_.Max(pool_.Const(1), OverUp(pool_, packing_.LengthOfHull(0), length)),
          partial};
}

// The number of steps of the outermost sum in a block, at least one.
IndexId SumBlocks::LengthOf(int64_t steps) {
  const IndexId one = pool_.Const(1);
  IndexId inner = one;
  for (size_t i = 1; i < nest_.sums.size(); ++i) inner = pool_.Mul(inner, packing_.LengthOfHull(i));
  return pool_.Max(pool_.Div(pool_.Const(steps), pool_.Max(inner, one)), one);
}

// The last block ends where the hull of the sum does.
RegisterTile::SumBlock SumBlocks::At(const Cut& cut, IndexId number, IndexId row, IndexId vector) {
  IndexId begin = pool_.Mul(cut.length, number);
  if (NESTOR_MUTANT("sum_blocks_overlap"))
    begin = pool_.Max(pool_.Sub(begin, pool_.Const(1)), pool_.Const(0));
  const IndexId end = pool_.Min(packing_.LengthOfHull(0), pool_.Add(begin, cut.length));
  return {number, cut.count, begin, end, cut.length, cut.partial, short_.PlaceInSums(),
          row,    vector};
}

}  // namespace nestor::loop
