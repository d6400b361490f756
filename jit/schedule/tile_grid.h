// How the rows and columns of a contraction are divided into register tiles.
#ifndef NESTOR_JIT_SCHEDULE_TILE_GRID_H_
#define NESTOR_JIT_SCHEDULE_TILE_GRID_H_

#include <cstdint>
#include <vector>

#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// Puts rows of an image that are known to be no longer than a vector beside each other: the last
// batch loop is jammed, unless the sum's bounds or the rows move with it. `columns`: how many, if
// that is known. REQUIRES: columns are read in place.
void JamShortRows(const Program& program, absl::optional<int64_t> columns, int64_t lanes,
                  Contraction& nest);

// Moves the batch loops with which columns move around the others, so that a copy of columns is made
// once for all iterations of these. REQUIRES: rows are read in place, as they are not copied more
// often then.
void MoveOutBatchesOfColumns(const Program& program, Contraction& nest);

class TileGrid : private SizeArithmetic {
 public:
  struct Extent {
    int64_t rows, vectors;
  };
  // The most rows and vectors of a tile; 0: as many as there are registers
  // for. See ContractionTileOptions.
  struct Options {
    jit::Isa isa;
    int64_t rows, vectors;
  };
  // Tiles of `height` rows, from row `first` on; or at most one, of which `kept` rows are kept.
  struct Band {
    int64_t height;
    IndexId first, tiles;
    absl::optional<IndexId> kept = absl::nullopt;
  };
  struct Blocks {
    IndexId count, length;
  };

  // REQUIRES: the arguments outlive this, `ranges` is at the place of the nest, and Choose is
  // called before the functions below it. Before that, a loop may be taken out of the nest's batch
  // loops and jammed.
  TileGrid(Program& program, Ranges& ranges, const Contraction& nest, int64_t lanes);

  IndexId rows() const { return rows_; }
  IndexId columns() const { return columns_; }

  // Chooses the widest tile: as many rows as there are, or an even share of them, and as many
  // vectors as then fit, up to 7.
  void Choose(const Options& options);
  const Extent& tile() const { return tile_; }

  // The number of vectors of columns. The last one may have fewer lanes; in a jammed
  // nest, each may.
  IndexId Vectors();
  // The number of tiles of the widest kind, all of whose vectors are whole. With three vectors in a
  // tile, one tile less where one vector would be left: two pairs are faster.
  IndexId WholeTiles();

  // Bands of tiles from the first row on. Where rows are not shared out, some may be left below.
  std::vector<Band> Bands();
  // The first row of a tile of the band.
  IndexId RowOf(const Band& band, IndexId tile) {
    return band.kept ? band.first : pool_.Add(band.first, Times(band.height, tile));
  }
  // Whether rows are divided evenly among tiles: those of an image along which windows slide, or
  // that lies in a copy, or all points of an image in a temporary. There may be few of these, and a
  // tile of which not all rows are kept is a large part of the work.
  bool SharesOutRows() const;

  // Blocks of at most `most` tiles each; at least `least_count` blocks, if there are so many tiles.
  // All blocks but the last have the same length, so that threads get equal shares. Where the
  // number of tiles, or `least_count`, moves with a loop around, or where rows are shared out, all
  // blocks but the last have `most` tiles: there are few tiles, or provers would not see that a
  // block of equal length begins after the one before.
  Blocks InBlocks(IndexId tiles, int64_t most, IndexId least_count);
  // The same for tiles beside each other, where blocks of rows have at most `row_block` tiles. For
  // points, which may be few, there are enough blocks of rows and columns together that threads get
  // about equal shares.
  Blocks InColumnBlocks(IndexId tiles, int64_t most, int64_t row_block);

 private:
  bool AreOfImage() const;
  bool AreOfWindowsAlongMemory() const;
  // Their number is a product, as where axes were merged.
  bool ArePoints() const;
  Blocks InEvenBlocks(IndexId tiles, IndexId full, IndexId least_count);
  int64_t RegistersOf(Extent tile) const;

  Program& program_;
  Ranges& ranges_;
  const Contraction& nest_;
  const int64_t lanes_;
  const IndexId rows_, columns_;  // how many
  Extent tile_{};
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TILE_GRID_H_
