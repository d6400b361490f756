// What a register tile is made for: a patch of rows and columns, a part of the sums, a panel.
#ifndef NESTOR_JIT_SCHEDULE_TILE_PARTS_H_
#define NESTOR_JIT_SCHEDULE_TILE_PARTS_H_

#include "absl/types/optional.h"
#include "jit/schedule/contraction_packing.h"
#include "jit/schedule/tile_grid.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Where the sums of a tile are, in memory or registers: at [around.., row + r, vector + v, lane].
struct TileSums {
  TensorId tensor;
  IndexList around;
  IndexId row, vector;
};

// Where a tile lies: it begins at a row and a vector of columns.
struct TilePatch {
  TileGrid::Extent extent;
  IndexId row, vector;
  // The number of rows that are kept, where it may be less than the tile's.
  absl::optional<IndexId> rows_left = absl::nullopt;
  // Whether the patch excludes the last vector, which may have fewer lanes.
  bool is_whole = true;
  Packing::Columns columns = Packing::Columns::kInCopies;
  // Where the sums wait to be used (RegisterTile::EndsOfWaiting). Not given: they are used at once.
  absl::optional<TileSums> waiting = absl::nullopt;
};

// Which part of the sums a tile takes.
struct TileSumBlock {
  IndexId number, count;
  IndexId begin, end;  // steps of the outermost sum, counted from the begin of its hull
  IndexId length;      // of all blocks but the last
  TensorId partial;    // sums of the blocks before
  // Where the tile is in `partial`: how far the loops within blocks have come, and its
  // row and vector.
  IndexList around;
  IndexId row, vector;

  // Whether there are blocks after this one, 0 or 1.
  IndexId HasMore(IndexPool& pool) const {
    return pool.Min(pool.Const(1), pool.Sub(pool.Sub(count, pool.Const(1)), number));
  }
};

// The panel of a block of tiles, and how many tiles are above this one: in the blocks of rows
// `before` its own that share the panel, and in its own block. If there are none, it fills the
// panel. The next block has the columns `block_vectors` vectors further on.
struct TileBelow {
  Packing::Panel panel;
  IndexId before, in_block, block_vectors;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TILE_PARTS_H_
