// Prefetches of a register tile for the tiles that come after it: columns of the next block of the
// sum, rows of the tile below, and the next panel.
#ifndef NESTOR_JIT_SCHEDULE_REGISTER_TILE_PREFETCHES_H_
#define NESTOR_JIT_SCHEDULE_REGISTER_TILE_PREFETCHES_H_

#include <vector>

#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_packing.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/tile_parts.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// A tile that is too small to have time for prefetches gets none.
class RegisterTilePrefetches : private SizeArithmetic {
 public:
  // REQUIRES: the arguments outlive this; `packing` decides before the first call.
  RegisterTilePrefetches(Program& program, const Contraction& nest, Packing& packing)
      : SizeArithmetic(program.pool), program_(program), make_(program), nest_(nest),
        packing_(packing) {}

  // Adds to `sums`, the loops over the sums of a tile, prefetches of columns of the block of the
  // sum after `part`. The sums from number `first_without_loop` on have no loops.
  void NextBlock(Scope& sums, const TilePatch& patch, const TileSumBlock& part,
                 size_t first_without_loop);
  // Prefetches of rows of the tile below. REQUIRES: the loops are not written out.
  void NextRows(Scope& sums, const TilePatch& patch, const absl::optional<TileSumBlock>& part);
  // Adds prefetches for the topmost tile of the next block to `sum`, the loop over the sum. Returns
  // whether it did.
  bool NextPanel(Loop& sum, const TilePatch& patch, const absl::optional<TileSumBlock>& part,
                 const TileBelow& below);
  // 1 where the tile shall run with the prefetches of NextPanel, else 0.
  IndexId FetchesNextPanel(TileGrid::Extent extent, const absl::optional<TileSumBlock>& part,
                           const TileBelow& below);

 private:
  // The innermost of the loops over the sums that is not written out, and the steps of an
  // iteration of it.
  struct SumLoops {
    Loop* innermost;
    std::vector<std::vector<IndexId>> steps;
  };
  absl::optional<SumLoops> LoopsOf(Scope& sums, size_t first_without_loop);
  std::vector<std::vector<IndexId>> StepsOf(const Loop& loop,
                                            const std::vector<std::vector<IndexId>>& around);

  Program& program_;
  LoopMaker make_;
  const Contraction& nest_;
  Packing& packing_;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_REGISTER_TILE_PREFETCHES_H_
