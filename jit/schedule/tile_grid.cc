// How large a tile is, and how rows and columns divide into tiles. The tile must fit the registers
// (RegistersOf) with rows * vectors accumulators, and should have as many as possible, since a step
// makes rows * vectors products of rows + vectors loads; 6 x 2 for 16 registers and 8 x 3 for 32
// are such sizes. Where the number of rows is known, it is divided evenly, and freed registers go
// to more vectors.
//
//   20 rows, tiles of 8:  8 + 8 + 4 rows are worse than 7 + 7 + 6: known rows are shared out evenly
//
// Numbers of tiles are index expressions, since sizes are symbols; their forms (quotients rather
// than remainders, minima with constants) are chosen so that bounds can be proven
// (loop_ir/ranges.h).
#include "jit/schedule/tile_grid.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/affine.h"

namespace nestor::loop {

namespace {

// The least number of blocks of rows and columns together, where both may be few: with these, two
// threads, say, get about equal shares.
constexpr int64_t kLeastBlocksOfPoints = 16;

// The most vectors in a tile of few rows: rows of images often have 7 * 2^n vectors.
constexpr int64_t kMostVectors = 7;

}  // namespace

void JamShortRows(const Program& program, absl::optional<int64_t> columns, int64_t lanes,
                  Contraction& nest) {
  if (!columns || *columns > lanes || nest.batch.empty()) return;
  const Loop& last = *nest.batch.back();
  const bool moves = absl::c_any_of(
      nest.sums, [&](const Loop* sum) { return BoundsMoveWith(program.pool, *sum, last.var); });
  const auto depends = [&](const auto& operand) {
    return DependsOn(program, AccessOf(program, operand), last);
  };
  if (moves || absl::c_any_of(nest.rows, depends)) return;
  nest.jammed = &last;
  nest.batch.pop_back();
  for (Contraction::Operand& operand : nest.columns) {
    operand.batch_loops = std::min(operand.batch_loops, static_cast<int>(nest.batch.size()));
  }
}

void MoveOutBatchesOfColumns(const Program& program, Contraction& nest) {
  if (absl::c_any_of(nest.batch,
                     [&](const Loop* batch) { return BoundsMove(program.pool, *batch); }))
    return;
  const auto moves_columns = [&](const Loop* batch) {
    return absl::c_any_of(nest.columns, [&](const Contraction::Operand& operand) {
      return DependsOn(program, AccessOf(program, operand), *batch);
    });
  };
  std::stable_partition(nest.batch.begin(), nest.batch.end(), moves_columns);
  for (std::vector<Contraction::Operand>* operands : {&nest.rows, &nest.columns}) {
    for (Contraction::Operand& operand : *operands)
      operand.batch_loops = BatchLoopsOf(program, nest, AccessOf(program, operand));
  }
}

TileGrid::TileGrid(Program& program, Ranges& ranges, const Contraction& nest, int64_t lanes)
    : SizeArithmetic(program.pool), program_(program), ranges_(ranges), nest_(nest), lanes_(lanes),
      rows_(ranges.LengthOf(*nest.row)), columns_(ranges.LengthOf(*nest.column)) {}

// Shrinks rows until the tile fits; then, for a known number of rows, widens it.
void TileGrid::Choose(const Options& options) {
  const jit::IsaFacts& isa = jit::FactsOf(options.isa);
  const int registers = isa.vectors;
  tile_ = {isa.tile_rows, isa.tile_vectors};
  const int64_t most_vectors = options.vectors > 0 ? options.vectors : kMostVectors;
  if (SharesOutRows() && AreOfWindowsAlongMemory()) tile_.rows = isa.shared_tile_rows;
  if (options.rows > 0) tile_.rows = options.rows;
  if (options.vectors > 0) tile_.vectors = options.vectors;
  while (RegistersOf(tile_) > registers && tile_.rows > 1) --tile_.rows;
  if (const auto known = pool_.ConstValue(rows_); known && *known > 0) {
    const int64_t tiles = (*known + tile_.rows - 1) / tile_.rows;
    tile_.rows = (*known + tiles - 1) / tiles;
    while (tile_.vectors < most_vectors &&
           RegistersOf({tile_.rows, tile_.vectors + 1}) <= registers)
      ++tile_.vectors;
  }
}

// A tile needs its accumulators, a vector of each column operand, a broadcast of each row operand
// and a product at once.
int64_t TileGrid::RegistersOf(Extent tile) const {
  return tile.rows * tile.vectors + tile.vectors * static_cast<int64_t>(nest_.columns.size()) + 1 +
         static_cast<int64_t>(nest_.rows.size());
}

IndexId TileGrid::Vectors() {
  return nest_.jammed != nullptr ? ranges_.LengthOf(*nest_.jammed) : OverUp(columns_, lanes_);
}

IndexId TileGrid::WholeTiles() {
  const IndexId tiles =
      Over(nest_.jammed != nullptr ? Vectors() : Over(columns_, lanes_), tile_.vectors);
  // As in strips narrower than a tile.
  if (ranges_.LessEqual(tiles, Const(0))) return Const(0);
  if (tile_.vectors != 3) return tiles;
  const IndexId one_left = pool_.Mod(pool_.Mod(Vectors(), Const(3)), Const(2));
  return pool_.Max(pool_.Sub(tiles, one_left), Const(0));
}

// Tiles of the full height would have some rows more than there are. As many tiles as these are one
// row lower; if there are fewer tiles, all are, and not all rows of the first one are kept.
std::vector<TileGrid::Band> TileGrid::Bands() {
  const int64_t height = tile_.rows, low = height - 1;
  if (!SharesOutRows()) return {{height, Const(0), Over(rows_, height)}};
  const IndexId tiles = OverUp(rows_, height), missing = pool_.Sub(Times(height, tiles), rows_),
                lower = pool_.Min(missing, tiles);
  // In these forms provers see which rows these are, and that there is one.
  const IndexId unkept = pool_.Max(pool_.Sub(missing, tiles), Const(0)),
                in_part = pool_.Min(pool_.Min(unkept, Const(1)), rows_),
                whole = pool_.Min(Over(rows_, low), pool_.Sub(lower, in_part)),
                above = Times(low, pool_.Sub(tiles, Const(1)));
  return {{height, Const(0), pool_.Min(Over(rows_, height), pool_.Sub(tiles, lower))},
          {low, pool_.Sub(rows_, Times(low, whole)), whole},
          {low, Const(0), in_part, pool_.Min(rows_, pool_.Sub(rows_, above))}};
}

bool TileGrid::SharesOutRows() const {
  return !nest_.is_ragged && tile_.rows > 2 && !pool_.ConstValue(rows_) &&
         (AreOfImage() || ArePoints());
}

bool TileGrid::AreOfImage() const {
  return absl::c_any_of(nest_.rows, [&](const Contraction::Operand& operand) {
    const Access access = AccessOf(program_, operand);
    return SlidesAlong(program_, access, nest_.sums, *nest_.row) ||
           AreRowsOfTemporary(program_, access, *nest_.row);
  });
}

// Steps of fewer rows cost little there: neighbours share cache lines, and the loop over the window
// is written out.
bool TileGrid::AreOfWindowsAlongMemory() const {
  return !nest_.sums.empty() && KnownLength(program_, *nest_.sums.back()) &&
         absl::c_all_of(nest_.rows, [&](const Contraction::Operand& operand) {
           return MovesLastAlone(program_, AccessOf(program_, operand), *nest_.row);
         });
}

bool TileGrid::ArePoints() const {
  return pool_[rows_].kind == IndexKind::kMul &&
         absl::c_any_of(nest_.rows, [&](const Contraction::Operand& operand) {
           return program_[AccessOf(program_, operand).tensor].storage == Storage::kTemp;
         });
}

TileGrid::Blocks TileGrid::InBlocks(IndexId tiles, int64_t most, IndexId least_count) {
  const IndexId full = OverUp(tiles, most);
  const bool moves = pool_.HasVar(tiles) || pool_.HasVar(least_count);
  if (most == 1 || SharesOutRows() || moves) return {full, Const(most)};
  return InEvenBlocks(tiles, full, least_count);
}

TileGrid::Blocks TileGrid::InColumnBlocks(IndexId tiles, int64_t most, int64_t row_block) {
  if (!ArePoints() || !SharesOutRows()) return InBlocks(tiles, most, Const(1));
  const IndexId row_blocks = pool_.Max(OverUp(OverUp(rows_, tile_.rows), row_block), Const(1));
  return InEvenBlocks(tiles, OverUp(tiles, most),
                      pool_.Div(Const(kLeastBlocksOfPoints), row_blocks));
}

// `full` blocks would hold all tiles; their length is then evened out: ceil(tiles / count).
TileGrid::Blocks TileGrid::InEvenBlocks(IndexId tiles, IndexId full, IndexId least_count) {
  const IndexId count =
      pool_.IsConst(least_count, 1) ? full : pool_.Max(full, pool_.Min(tiles, least_count));
  const IndexId others = pool_.Max(pool_.Sub(count, Const(1)), Const(0));
  return {count, pool_.Div(pool_.Add(tiles, others), pool_.Max(count, Const(1)))};
}

}  // namespace nestor::loop
