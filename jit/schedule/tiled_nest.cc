// A contraction becomes a blocked matrix product: the loops of Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication" (2008), with a register tile at their core
// (register_tile.h).
//
//   copies that pack operands                      # in the batch loops that each depends on
//   for blocks of rows { for blocks of columns {
//     for blocks of the sum {
//       for p in the block's rows { for q in its columns { tile } }
//   } } }
//   narrower tiles beside them; a tile of which some rows are not kept, below all, or, where rows
//   are shared out, in blocks as the others
//
// A block of columns stays in the second cache for all rows of the block, the rows of one tile in
// the first. The topmost tiles of a block may pack columns as well (panels, contraction_packing.h).
// Short batch loops, for which nothing is packed, are put around the tiles of a block, inside of
// its sum's blocks if not too many partial sums are kept then. Where rows are so few that each
// column is read once or twice, packing does not pay: the nest runs as it was, or, with many
// columns, rows read them in place, a few steps of the sum at a time (FlatRows).
//
// Rows, columns and steps are symbols, so each alternative is in the program, and bounds that are 0
// leave out those that do not run. Each (row, column) belongs to exactly one tile whose row is
// kept.
#include "jit/schedule/tiled_nest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction_packing.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/register_tile.h"
#include "jit/schedule/short_loops.h"
#include "jit/schedule/sum_blocks.h"
#include "jit/schedule/tile_grid.h"
#include "jit/target/lanes.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// If the number of rows is known, and tiles are made for it, this many are enough.
constexpr int64_t kLeastKnownRows = 2;

// Narrow tiles below and beside each other in a block. More tiles below each other read the columns
// fewer times; those beside each other, which are few, are shared out.
constexpr int64_t kNarrowRowBlock = 8, kNarrowColumnBlock = 1;

// The least number of blocks of rows, or, if rows are few, of columns, where nothing else is shared
// out and there is a tile for each.
constexpr int64_t kLeastBlocks = 2;

// Rows that read columns in place are in at most kFlatTiles tiles; they take kFlatSteps steps
// of the sum at a time, of kFlatBlocks blocks of columns: some KiB along memory, so that
// processors fetch ahead.
constexpr int64_t kFlatTiles = 8, kFlatSteps = 16, kFlatBlocks = 7;

// One more block of rows shares a panel for each this many blocks of columns.
constexpr int64_t kColumnBlocksForRowBlock = 2;

// Tiles of `vectors` each, side by side from vector `first` on.
struct Side {
  int64_t vectors;
  IndexId first, tiles;
  bool is_whole;                    // none of them has the last vector
  int64_t row_block, column_block;  // tiles of a block, below and beside each other
};

// One contraction on its way to tiles.
class Tiling : private SizeArithmetic {
 public:
  Tiling(Program& program, Ranges& ranges, const ContractionTileOptions& options,
         const Contraction& nest, const Loop& whole)
      : SizeArithmetic(program.pool), program_(program), ranges_(ranges), options_(options),
        make_(program), nest_(nest), whole_(whole), type_(program[nest.accumulator].type),
        lanes_(jit::LanesOf(type_, options.isa)),
        packing_(program, ranges, nest_, lanes_, {options.bound, options.panels}),
        grid_(program, ranges, nest_, lanes_), short_(program, ranges),
        sum_blocks_(program, nest_, packing_, short_) {}

  // Whether tiles pay: not for few rows, with columns that lie well.
  bool IsWorth() {
    return packing_.IsInRange() && (!packing_.ColumnsLieWell() || !HasFewIterations(*nest_.row));
  }

  // The nest as it was, with few rows, in the version for sizes at which few rows read columns that
  // lie well; otherwise, the tiles take them, too. Rows whose number moves with a loop around share
  // the copies with others, and so use tiles. Where the rows of the copy are not proven to be few
  // (their number may have no value, as N / M where M is 0), it would be tiled as the nest is.
  absl::optional<Scope> FewRows() {
    if (!packing_.ColumnsLieWell() || pool_.HasVar(rows_) || pool_.ConstValue(rows_))
      return absl::nullopt;
    Loop copy = whole_;
    Loop* row = &copy;
    while (row->var != nest_.row->var) row = row->body[0].As<Loop>();
    row->end = pool_.Add(row->begin, pool_.Min(rows_, Const(kLeastRows - 1)));
    if (!HasFewIterations(*row) ||
        !IsVersionForFew(program_, rows_, kLeastRows, options_.version)) {
      return absl::nullopt;
    }
    return ScopeOf(std::move(copy));
  }

  Scope Run() {
    packing_.Measure();
    if (packing_.ColumnsAreInPlace())
      JamShortRows(program_, pool_.ConstValue(columns_), lanes_, nest_);
    else if (packing_.RowsAreInPlace()) MoveOutBatchesOfColumns(program_, nest_);
    grid_.Choose({options_.isa, options_.rows, options_.vectors});
    packing_.Decide(Times(tile_.vectors, grid_.WholeTiles()));
    if (nest_.jammed == nullptr && !packing_.UsesPanels())
      short_.TakeFrom(nest_, packing_.BatchLoops(), RowsInBlock());
    flat_ = AreFlat();
    register_tile_.emplace(program_, ranges_, nest_, packing_, lanes_, rows_, columns_);
    return Level(0);
  }

 private:
  using Extent = TileGrid::Extent;
  using Band = TileGrid::Band;
  using Patch = RegisterTile::Patch;
  using SumBlock = RegisterTile::SumBlock;

  // Copies are left out where there are no columns, where these are mostly the few rows of another
  // nest.
  absl::optional<IndexId> IsCopied() {
    if (pool_.ConstValue(columns_) || !HasFewIterations(*nest_.column)) return absl::nullopt;
    return pool_.Min(Const(1), columns_);
  }

  // ---- What is decided first

  int64_t RowsInBlock() const {
    const int64_t most = options_.row_block * tile_.rows;
    return std::min(pool_.ConstValue(rows_).value_or(most), most);
  }

  // Whether the loop is proven to have few iterations, for all sizes.
  bool HasFewIterations(const Loop& loop) {
    const IndexId length = ranges_.LengthOf(loop);
    const int64_t least = pool_.ConstValue(length) ? kLeastKnownRows : kLeastRows;
    return ranges_.Less(length, Const(least));
  }

  // ---- The loops around tiles

  // The batch loops from number `depth` on, with the copies made there, around the rest.
  Scope Level(size_t depth) {
    Scope scope = packing_.CopiesBehind(depth, IsCopied());
    if (depth == nest_.batch.size()) {
      const std::vector<Band> bands = grid_.Bands();
      Append(scope, InBlocks(bands, WholeSide()));
      for (const Band& band : bands) Append(scope, NarrowTiles(band));
      if (!grid_.SharesOutRows()) Append(scope, LastRows());
      return scope;
    }
    Append(scope, Around(*nest_.batch[depth], Level(depth + 1)));
    return scope;
  }

  Side WholeSide() {
    return {tile_.vectors, Const(0),           grid_.WholeTiles(),
            true,          options_.row_block, options_.column_block};
  }

  // The tiles of all bands. Where short loops read the columns of a block again for each of their
  // iterations, the bands take turns in it, since columns of many sums do not stay in the caches.
  Scope InBlocks(absl::Span<const Band> bands, const Side& side) {
    if (bands.size() > 1 && short_.HasAnyInSums()) return ColumnsAround(bands, side);
    Scope scope;
    for (const Band& band : bands) {
      Append(scope, options_.columns_outside ? ColumnsAround(absl::MakeConstSpan(&band, 1), side)
                                             : RowsAround(band, side));
    }
    return scope;
  }
  // for blocks of columns { for blocks of rows, band by band { for blocks of sums { tiles } } }
  Scope ColumnsAround(absl::Span<const Band> bands, const Side& side) {
    return make_.Counted("q", IfNotFlat(BlocksOfColumns(side).count), kPlain, [&](IndexId q) {
      Scope scope;
      for (const Band& band : bands) {
        Append(scope, make_.Counted("p", GroupsOfRows(band, side), kPlain,
                                    [&](IndexId p) { return Group(band, side, p, q); }));
      }
      return scope;
    });
  }
  // for blocks of rows { for blocks of columns { for blocks of sums { tiles } } }
  Scope RowsAround(const Band& band, const Side& side) {
    return make_.CountedTwice("p", IfNotFlat(GroupsOfRows(band, side)), "q",
                              BlocksOfColumns(side).count,
                              [&](IndexId p, IndexId q) { return Group(band, side, p, q); });
  }
  // How many groups there are of blocks of rows that share a panel.
  IndexId GroupsOfRows(const Band& band, const Side& side) {
    const IndexId sharing = RowBlocksOfPanel();
    return pool_.Div(pool_.Add(BlocksOfRows(band, side).count, pool_.Sub(sharing, Const(1))),
                     pool_.Max(sharing, Const(1)));
  }
  // The tiles of such a group in a block of columns.
  Scope Group(const Band& band, const Side& side, IndexId group, IndexId column_block) {
    const IndexId sharing = RowBlocksOfPanel(), first = pool_.Mul(sharing, group);
    const IndexId count = pool_.Min(sharing, pool_.Sub(BlocksOfRows(band, side).count, first));
    return ColumnBlock(band, side, first, count,
                       pool_.Mul(BlocksOfColumns(side).length, column_block));
  }
  // How many blocks of rows share a panel. With many columns, as many as leave enough groups for
  // all threads; with few, which are quickly copied again, each block has its own.
  IndexId RowBlocksOfPanel() {
    if (!packing_.UsesPanels()) return Const(1);
    return OverUp(columns_,
                  kColumnBlocksForRowBlock * options_.column_block * tile_.vectors * lanes_);
  }
  // A product without a batch is shared out by its rows, or, if these are few, by its columns.
  IndexId LeastBlocks() { return Const(nest_.batch.empty() ? kLeastBlocks : 1); }
  // Copies of columns are read once for each block of rows: a nest with several blocks of columns
  // is shared out by these.
  IndexId LeastRowBlocks(const Side& side) {
    if (!nest_.batch.empty() || packing_.UsesPanels()) return LeastBlocks();
    const IndexId others = pool_.Max(Const(0), pool_.Sub(BlocksOfColumns(side).count, Const(1)));
    return pool_.Max(Const(1), pool_.Sub(LeastBlocks(), others));
  }
  // Blocks are as even as possible, so that threads get equal shares.
  TileGrid::Blocks BlocksOfRows(const Band& band, const Side& side) {
    return grid_.InBlocks(band.tiles, side.row_block, LeastRowBlocks(side));
  }
  TileGrid::Blocks BlocksOfColumns(const Side& side) {
    return grid_.InColumnBlocks(side.tiles, side.column_block, side.row_block);
  }

  // Tiles from number `first` on, in `count` blocks of rows.
  Scope ColumnBlock(const Band& band, const Side& side, IndexId first_block, IndexId count,
                    IndexId first) {
    const absl::optional<SumBlocks::Cut> blocks = sum_blocks_.CutAt(
        options_.sum_block, side.row_block * tile_.rows, side.column_block * side.vectors, lanes_);
    Scope scope;
    if (blocks) scope.push_back(DeclarationOf(blocks->partial));
    if (!packing_.UsesPanels()) {
      return short_.AroundSums([&] {
        Append(scope, TileBlock(band, side, first_block, first, blocks, absl::nullopt));
        return scope;
      });
    }
    const int64_t vectors = side.column_block * side.vectors;
    const Packing::Panel panel =
        packing_.PanelOf(vectors, pool_.Add(side.first, Times(side.vectors, first)), scope);
    Append(scope, make_.Counted("p", count, kPlain, [&](IndexId block) {
      const RegisterTile::Below below{panel, pool_.Mul(BlocksOfRows(band, side).length, block),
                                      Const(0), Times(side.vectors, BlocksOfColumns(side).length)};
      return TileBlock(band, side, pool_.Add(first_block, block), first, blocks, below);
    }));
    return scope;
  }

  // The tiles of one block of rows. `below`: that of its topmost tile.
  Scope TileBlock(const Band& band, const Side& side, IndexId row_block, IndexId first,
                  const absl::optional<SumBlocks::Cut>& blocks,
                  absl::optional<RegisterTile::Below> below) {
    const IndexId height = BlocksOfRows(band, side).length,
                  first_row = pool_.Mul(height, row_block);
    // In this form provers see that the tensor of partial sums has room for a block.
    const auto in_block = [&](IndexId tiles, int64_t most, IndexId left) {
      return pool_.Min(pool_.Min(Const(most), tiles), left);
    };
    const IndexId rows = in_block(height, side.row_block, pool_.Sub(band.tiles, first_row));
    const IndexId tiles =
        in_block(BlocksOfColumns(side).length, side.column_block, pool_.Sub(side.tiles, first));
    // At places of a window, tiles read nearly the same columns.
    const bool columns_slide =
        absl::c_any_of(nest_.columns, [&](const Contraction::Operand& operand) {
          return short_.SlideInSums(AccessOf(program_, operand), nest_.sums);
        });
    const auto tiles_of = [&](IndexId s) {
      return make_.Counted("p", rows, kPlain, [&](IndexId p) {
        absl::optional<RegisterTile::Below> own = below;
        if (own) own->in_block = p;
        return make_.Counted("q", tiles, kPlain, [&](IndexId q) {
          const IndexId row = grid_.RowOf(band, pool_.Add(first_row, p));
          const IndexId vector = pool_.Add(side.first, Times(side.vectors, pool_.Add(first, q)));
          Patch patch{{band.height, side.vectors}, row, vector, band.kept, side.is_whole};
          absl::optional<SumBlock> part;
          if (blocks)
            part = sum_blocks_.At(*blocks, s, Times(band.height, p), Times(side.vectors, q));
          const auto tile = [&] { return register_tile_->At(patch, part, own); };
          if (!columns_slide) return tile();
          return short_.StoresLieAlongInSums(*nest_.core) ? TilesBeforeEnds(patch, part)
                                                          : short_.InSums(tile);
        });
      });
    };
    return make_.Counted("s", blocks ? blocks->count : Const(1), kPlain, [&](IndexId s) {
      return columns_slide ? tiles_of(s) : short_.InSums([&] { return tiles_of(s); });
    });
  }

  // Tiles at all iterations of the short loops around them, and then the statements that use their
  // sums: each line of memory is written once, not at each of these iterations, between which it
  // would leave the first cache.
  Scope TilesBeforeEnds(Patch patch, const absl::optional<SumBlock>& part) {
    Shape shape = short_.ExtentsInSums();
    for (const int64_t extent : {patch.extent.rows, patch.extent.vectors, lanes_})
      shape.push_back(Const(extent));
    const TensorId sums = program_.AddTensor({"sums", type_, shape, Storage::kTemp});
    patch.waiting = {sums, short_.PlaceInSums(), Const(0), Const(0)};
    Scope scope = {DeclarationOf(sums)};
    Append(scope, short_.InSums([&] { return register_tile_->At(patch, part); }));
    Append(scope, register_tile_->EndsOfWaiting(
                      patch, part, [&](auto make) { return short_.InSumsUnrolled(make); }));
    return scope;
  }

  // Tiles for the columns beside whole tiles. So few vectors stay in the caches however many rows
  // there are: without blocks, and in loops that hold nothing else, there is more to share out.
  // Blocks are for short loops that share columns.
  Scope NarrowTiles(const Band& band) {
    Scope scope;
    const auto in_all_rows = [&](IndexId first, int64_t vectors, int64_t step, IndexId count) {
      Append(scope, make_.Counted("p", IfNotFlat(band.tiles), kPlain, [&](IndexId p) {
        return InARow({{band.height, vectors}, grid_.RowOf(band, p), first, band.kept, false}, step,
                      count);
      }));
    };
    IndexId done = Times(tile_.vectors, grid_.WholeTiles());  // vectors
    // If tiles have two vectors, there is also a pair whose second vector is not whole; for three
    // vectors, such a tile would be as much code again as the widest one.
    for (int64_t vectors = tile_.vectors == 2 ? 2 : (tile_.vectors + 1) / 2; vectors > 1;
         vectors = (vectors + 1) / 2) {
      const IndexId count = Over(pool_.Sub(grid_.Vectors(), done), vectors);
      if (!short_.HasAnyInSums()) in_all_rows(done, vectors, vectors, count);
      else
        Append(scope, InBlocks(absl::MakeConstSpan(&band, 1),
                               {vectors, done, count, false, kNarrowRowBlock, kNarrowColumnBlock}));
      done = pool_.Add(done, Times(vectors, count));
    }
    // Single vectors run from the last one backwards, in a form that shows that none is negative,
    // or before the first vector that copies beside panels hold.
    const IndexId all = grid_.Vectors();
    const IndexId beside =
        packing_.UsesPanels() ? pool_.Sub(all, Times(tile_.vectors, grid_.WholeTiles())) : all;
    in_all_rows(pool_.Sub(all, Const(1)), 1, -1, pool_.Min(beside, pool_.Sub(all, done)));
    return scope;
  }

  // `count` tiles, beginning with `first`, with `step` vectors from each to the next.
  Scope InARow(const Patch& first, int64_t step, IndexId count) {
    return make_.Counted("q", count, kPlain, [&](IndexId q) {
      Patch patch = first;
      patch.vector = pool_.Add(first.vector, Times(step, q));
      return short_.AroundSums(
          [&] { return short_.InSums([&] { return register_tile_->At(patch); }); });
    });
  }

  // The rows left over below whole tiles, in a tile like these of which some rows are not kept:
  // smaller tiles for each number of rows would be much code. A tile of a known number of rows is
  // of that height.
  Scope LastRows() {
    if (packing_.UsesPanels()) return FlatRows();
    // With a quotient instead of a remainder, provers see which rows these are.
    IndexId first = Times(tile_.rows, Over(rows_, tile_.rows));
    const IndexId left = NESTOR_MUTANT("last_rows_skipped") ? Const(0) : pool_.Sub(rows_, first);
    const IndexId are_left = pool_.Min(left, Const(1));
    if (pool_.IsConst(are_left, 0)) return {};
    if (NESTOR_MUTANT("last_rows_one_early"))
      first = pool_.Max(pool_.Sub(first, Const(1)), Const(0));
    const IndexId wide = Over(grid_.Vectors(), tile_.vectors), done = Times(tile_.vectors, wide);
    // The loops run over columns alone, so that there is something to share out.
    const auto if_left = [&](IndexId count) { return OnlyIf(pool_, are_left, count); };
    const absl::optional<int64_t> known = pool_.ConstValue(left);
    const int64_t height = known.value_or(tile_.rows);
    const absl::optional<IndexId> kept = known ? absl::nullopt : absl::make_optional(left);
    Scope scope = InARow({{height, tile_.vectors}, first, Const(0), kept, /*is_whole=*/false},
                         tile_.vectors, if_left(wide));
    Append(scope, InARow({{height, 1}, first, done, kept, false}, 1,
                         if_left(pool_.Sub(grid_.Vectors(), done))));
    return scope;
  }

  // Whether, 0 or 1, there are few enough rows to read the columns in place: one tile, or some, if
  // there are more columns than the caches hold.
  IndexId AreFlat() {
    if (!packing_.UsesPanels() || grid_.SharesOutRows()) return Const(0);
    const int64_t most_rows = kFlatTiles * tile_.rows;
    const auto known = pool_.ConstValue(rows_);
    if (known && (*known <= tile_.rows || *known > most_rows)) return Const(*known <= tile_.rows);
    const IndexId elements = pool_.Mul(packing_.LengthOfHull(0), columns_);
    const IndexId many_columns = pool_.Min(Const(1), Over(elements, options_.many_elements));
    const IndexId most = pool_.Add(Const(tile_.rows), Times(most_rows - tile_.rows, many_columns));
    return pool_.Min(Const(1), pool_.Div(pool_.Add(most, Const(1)), pool_.Add(rows_, Const(1))));
  }

  // Rows that share no panel: all, if they are few, or those left over below whole tiles. A
  // few steps of the sum run over many columns, which are read in place, along memory; then
  // the next steps.
  Scope FlatRows() {
    const int64_t most = kFlatBlocks * options_.column_block,
                  length = std::min(kFlatSteps, options_.sum_block);
    const IndexId wide = grid_.WholeTiles(), done = Times(tile_.vectors, wide);
    const TileGrid::Blocks blocks = grid_.InBlocks(wide, most, LeastBlocks());
    const IndexId in_block = blocks.length, tiles = OverUp(rows_, tile_.rows);
    const IndexId first =
        NESTOR_MUTANT("last_rows_skipped") ? tiles : IfNotFlat(Over(rows_, tile_.rows));
    // In this form provers see that there is a row.
    const IndexId has_rows = pool_.Min(Const(1), rows_),
                  has_tiles = pool_.Min(Const(1), pool_.Sub(tiles, first));
    const auto if_any = [&](IndexId count) {
      return OnlyIf(pool_, has_rows, OnlyIf(pool_, has_tiles, count));
    };
    const IndexId end = pool_.Min(tiles, pool_.Add(first, Const(kFlatTiles)));
    const auto rows_left = [&](IndexId p) { return pool_.Sub(rows_, Times(tile_.rows, p)); };
    Scope scope = make_.Counted("q", if_any(blocks.count), kPlain, [&](IndexId q) {
      const IndexId before = pool_.Mul(in_block, q);
      const Shape shape = {Const(kFlatTiles * tile_.rows), Const(most * tile_.vectors),
                           Const(lanes_)};
      const SumBlocks::Cut sums = sum_blocks_.BlocksOf(Const(length), shape);
      Scope block = {DeclarationOf(sums.partial)};
      Append(block, make_.Counted("s", sums.count, kPlain, [&](IndexId s) {
        return make_.Between("p", first, end, kPlain, [&](IndexId p) {
          const IndexId count =
              pool_.Min(pool_.Min(Const(most), in_block), pool_.Sub(wide, before));
          return make_.Counted("q", count, kPlain, [&](IndexId t) {
            const IndexId vector = Times(tile_.vectors, pool_.Add(before, t));
            const IndexId row = Times(tile_.rows, pool_.Sub(p, first));
            return register_tile_->At({{tile_.rows, tile_.vectors},
                                       Times(tile_.rows, p),
                                       vector,
                                       rows_left(p),
                                       /*is_whole=*/true,
                                       Packing::Columns::kInOperands},
                                      sum_blocks_.At(sums, s, row, Times(tile_.vectors, t)));
          });
        });
      }));
      return block;
    });
    Append(
        scope, make_.Counted("q", if_any(pool_.Sub(grid_.Vectors(), done)), kPlain, [&](IndexId q) {
          return make_.Between("p", first, end, kPlain, [&](IndexId p) {
            return register_tile_->At(
                {{tile_.rows, 1}, Times(tile_.rows, p), pool_.Add(done, q), rows_left(p), false});
          });
        }));
    return scope;
  }
  IndexId IfNotFlat(IndexId count) { return OnlyIf(pool_, pool_.Sub(Const(1), flat_), count); }

  Program& program_;
  Ranges& ranges_;
  const ContractionTileOptions& options_;
  LoopMaker make_;
  Contraction nest_;
  const Loop& whole_;
  const DType type_;
  const int64_t lanes_;
  Packing packing_;
  absl::optional<RegisterTile> register_tile_;
  TileGrid grid_;
  const Extent& tile_ = grid_.tile();
  const IndexId rows_ = grid_.rows(), columns_ = grid_.columns();  // how many
  ShortLoops short_;
  SumBlocks sum_blocks_;
  IndexId flat_;  // see AreFlat
};

}  // namespace

absl::optional<Scope> TiledNest(Program& program, Ranges& ranges,
                                const ContractionTileOptions& options, const Contraction& nest,
                                const Loop& whole) {
  Tiling tiling(program, ranges, options, nest, whole);
  if (!tiling.IsWorth()) return absl::nullopt;
  if (absl::optional<Scope> few = tiling.FewRows()) return few;
  return tiling.Run();
}

}  // namespace nestor::loop
