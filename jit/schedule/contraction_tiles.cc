// A nest becomes: what packs its operands, behind the loops that each depends on; whole
// tiles in blocks; narrower tiles beside them; below all a tile of which some rows are not
// kept.
#include "jit/schedule/contraction_tiles.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_packing.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/work.h"
#include "jit/target/lanes.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"
#include "uops/scalar_op.h"

namespace nestor::jit {
namespace {

using loop::Access;
using loop::Item;
using loop::Loop;
using loop::LoopAttributes;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::Storage;
using loop::TensorId;
using loop::ValueId;

// If the number of rows is known, and tiles are made for it, so many are enough.
constexpr int64_t kLeastKnownRows = 2;

// Scalar operations on a sum for which the registers beside a tile are enough.
constexpr int kMostOnRegisters = 12;

// Steps of sums that are written out: more make long code, and no quicker.
constexpr int64_t kMostUnrolled = 12;

// One contraction on its way to tiles.
class Tiling {
 public:
  Tiling(Program& program, loop::Ranges& ranges, const ContractionTileOptions& options, const Contraction& nest,
         const Loop& whole)
      : program_(program),
        pool_(program.pool),
        ranges_(ranges),
        options_(options),
        make_(program),
        nest_(nest),
        whole_(whole),
        type_(program[nest.accumulator].type),
        lanes_(jit::LanesOf(type_, options.isa)),
        packing_(program, ranges, nest_, lanes_) {
    for (const Item& item : *nest_.core) {
      const auto* statement = item.As<Statement>();
      if (statement != nullptr) operations_after_sum_ += OperationsOf(program_, statement->value);
    }
  }

  // Not for few rows of columns that lie well.
  bool IsWorth() { return packing_.IsInRange() && (!ColumnsLieWell() || !HasFewIterations(*nest_.row)); }

  Scope Run() {
    rows_ = ranges_.LengthOf(*nest_.row);
    columns_ = ranges_.LengthOf(*nest_.column);
    packing_.Measure();
    JamBatch();
    ChooseTile();
    Scope scope = FewRows();
    packing_.Decide();
    Append(scope, Level(0));
    return scope;
  }

 private:
  struct Extent {
    int64_t rows, vectors;
  };
  // Where a tile lies: from a row and a vector of columns on.
  struct Patch {
    Extent extent;
    IndexId row, vector;
    absl::optional<IndexId> rows_left = absl::nullopt;  // rows that are kept, where that may be fewer
    bool is_whole = true;                               // not the last vector, which may have fewer lanes
  };
  // Which part of the sums a tile takes: all where there is no block.
  struct SumBlock {
    IndexId number, count;
    TensorId partial;        // of the blocks before
    IndexId row, vector;     // of the tile in `partial`
  };

  using AtPlace = absl::FunctionRef<Scope(IndexId r, IndexId v, IndexId l)>;

  IndexId Const(int64_t value) { return pool_.Const(value); }
  IndexId Times(int64_t factor, IndexId e) { return pool_.Mul(Const(factor), e); }
  IndexId Over(IndexId e, int64_t divisor) { return pool_.Div(e, Const(divisor)); }
  IndexId Rest(IndexId e, int64_t divisor) { return pool_.Mod(e, Const(divisor)); }
  // `count`, but 0 where the rows are few.
  IndexId IfMany(IndexId count) { return many_ ? OnlyIf(pool_, *many_, count) : count; }
  IndexId OverUp(IndexId e, int64_t divisor) { return Over(pool_.Add(e, Const(divisor - 1)), divisor); }

  // ---- What is decided first

  // As many rows as there are, or an even share of them, and as many vectors as then fit.
  void ChooseTile() {
    const bool wide = options_.isa == Isa::kAvx512;
    const int registers = wide ? 32 : 16;
    tile_ = wide ? Extent{8, 3} : Extent{6, 2};
    const int64_t most_vectors = 2 * tile_.vectors;
    while (RegistersOf(tile_) > registers && tile_.rows > 1) --tile_.rows;
    if (const auto known = pool_.ConstValue(rows_); known && *known > 0) {
      const int64_t tiles = (*known + tile_.rows - 1) / tile_.rows;
      tile_.rows = (*known + tiles - 1) / tiles;
      while (tile_.vectors < most_vectors && RegistersOf({tile_.rows, tile_.vectors + 1}) <= registers) ++tile_.vectors;
    }
    if (options_.rows > 0) tile_.rows = options_.rows;
    if (options_.vectors > 0) tile_.vectors = options_.vectors;
  }

  // Accumulators, a vector of each column operand, a broadcast of each row operand and a
  // product at once.
  int64_t RegistersOf(Extent tile) const {
    return tile.rows * tile.vectors + tile.vectors * static_cast<int64_t>(nest_.columns.size()) + 1 +
           static_cast<int64_t>(nest_.rows.size());
  }

  // Rows of an image that are no longer than a vector lie beside each other.
  void JamBatch() {
    const auto known = pool_.ConstValue(columns_);
    if (!known || *known > lanes_ || nest_.batch.empty() || !packing_.ColumnsAreInPlace()) return;
    const Loop& last = *nest_.batch.back();
    const bool moves = absl::c_any_of(nest_.sums, [&](const Loop* sum) {
      return HoldsVar(pool_, sum->begin, last.var) || HoldsVar(pool_, sum->end, last.var);
    });
    const auto depends = [&](const auto& operand) { return DependsOn(program_, AccessOf(program_, operand), last); };
    if (moves || absl::c_any_of(nest_.rows, depends)) return;
    nest_.jammed = &last;
    nest_.batch.pop_back();
    for (Contraction::Operand& operand : nest_.columns) {
      operand.batch_loops = std::min(operand.batch_loops, static_cast<int>(nest_.batch.size()));
    }
  }

  // Whether that is proven, for all sizes.
  bool HasFewIterations(const Loop& loop) {
    const IndexId length = ranges_.LengthOf(loop);
    const int64_t least = pool_.ConstValue(length) ? kLeastKnownRows : kLeastRows;
    return ranges_.Less(length, Const(least));
  }

  // The nest as it was, where it has few rows and reads its columns well; the tiles take
  // what is left. Of rows whose number moves with a loop around, others share the copies.
  // Where the rows of the copy are not proven to be few (their number may have no value, as
  // N / M where M is 0), it would be tiled as the nest is, and its copy again: then tiles take
  // all rows.
  Scope FewRows() {
    if (!ColumnsLieWell() || pool_.HasVar(rows_)) return {};
    const auto known = pool_.ConstValue(rows_);
    if (known && *known >= kLeastKnownRows) return {};
    const IndexId few = pool_.Min(Const(1), pool_.Max(Const(0), pool_.Sub(Const(kLeastRows), rows_)));
    Loop copy = whole_;
    Loop* row = &copy;
    while (row->var != nest_.row->var) row = row->body[0].As<Loop>();
    row->end = pool_.Add(row->begin, pool_.Min(rows_, Times(kLeastRows - 1, few)));
    if (!HasFewIterations(*row)) return {};
    many_ = pool_.Sub(Const(1), few);
    absl::optional<Loop> fresh = fusion::FreshCopy(program_, ranges_, copy);
    return fresh ? ScopeOf(*std::move(fresh)) : Scope();
  }

  bool ColumnsLieWell() {
    return std::all_of(nest_.columns.begin(), nest_.columns.end(), [&](const Contraction::Operand& operand) {
      const Access access = AccessOf(program_, operand);
      return !access.masked && (IsAlong(program_, access, *nest_.column) || IsAlong(program_, access, *nest_.sums.back()));
    });
  }

  // Of columns; the last vector may have fewer lanes, of a jammed nest each.
  IndexId Vectors() {
    return nest_.jammed != nullptr ? ranges_.LengthOf(*nest_.jammed) : OverUp(columns_, lanes_);
  }
  // Tiles of the widest kind, all of whose vectors are whole. Of three vectors, one tile less
  // where one vector would be left: two pairs are quicker.
  IndexId WholeTiles() {
    const IndexId tiles = Over(nest_.jammed != nullptr ? Vectors() : Over(columns_, lanes_), tile_.vectors);
    if (tile_.vectors != 3) return tiles;
    const IndexId one_left = Rest(Rest(Vectors(), 3), 2);
    return pool_.Sub(tiles, pool_.Min(tiles, one_left));
  }
  // In vector number `vector`, which may be the last.
  IndexId ColumnsFrom(IndexId vector) {
    if (nest_.jammed != nullptr) return columns_;
    return pool_.Min(Const(lanes_), pool_.Sub(columns_, Times(lanes_, vector)));
  }

  using OverSteps = absl::FunctionRef<Scope(const std::vector<IndexId>& sums)>;

  // Loops over the sums; of the first over steps [begin, end), if they are given. Those of a
  // window are written out.
  Scope OverSums(IndexId begin, IndexId end, bool compact, OverSteps body, std::vector<IndexId> known = {}) {
    const size_t i = known.size();
    if (i == nest_.sums.size()) return body(known);
    const Loop& sum = *nest_.sums[i];
    const bool is_part = i == 0 && end.value >= 0;
    const IndexId from = is_part ? begin : pool_.Sub(sum.begin, nest_.hulls[i].begin);
    const IndexId to = is_part ? end : pool_.Sub(sum.end, nest_.hulls[i].begin);
    return make_.Between(program_.vars[sum.var], from, to, !is_part && IsWrittenOut(i, compact) ? kUnrolled : kPlain, [&](IndexId k) {
      std::vector<IndexId> with = known;
      with.push_back(k);
      return OverSums(begin, end, compact, body, std::move(with));
    });
  }

  // Whether the sum and those inside it have so few steps that they are written out: a window
  // of known size, of which `compact` code has the innermost.
  bool IsWrittenOut(size_t sum, bool compact) {
    if (compact && sum + 1 < nest_.sums.size()) return false;
    int64_t steps = 1;
    for (size_t i = sum; i < nest_.sums.size(); ++i) {
      const auto length = KnownLength(program_, *nest_.sums[i]);
      if (!length || *length > kMostUnrolled) return false;
      steps *= std::max<int64_t>(*length, 0);
    }
    return steps <= kMostUnrolled;
  }

  // ---- The loops around tiles

  // Of the batch loops from number `depth` on: what is packed there, and then the rest.
  Scope Level(size_t depth) {
    Scope scope = packing_.CopiesBehind(depth, many_);
    if (depth == nest_.batch.size()) {
      for (const Band& band : Bands()) Append(scope, WholeRows(band));
      Append(scope, LastRows());
      return scope;
    }
    Loop batch = *nest_.batch[depth];
    batch.body = Level(depth + 1);
    Append(scope, ScopeOf(std::move(batch)));
    return scope;
  }

  // Tiles of `height` rows, all of which are kept, from row `first` on.
  struct Band {
    int64_t height;
    IndexId first, tiles;
  };

  // Of an image, along which windows slide, there are few rows, and a tile of which not all rows are
  // kept is a large part of the work: where tiles have m rows more than there are, each of m tiles
  // has one less, if there are so many.
  std::vector<Band> Bands() {
    if (!SharesOutRows()) return {{tile_.rows, Const(0), Over(rows_, tile_.rows)}};
    const IndexId tiles = OverUp(rows_, tile_.rows), missing = pool_.Sub(Times(tile_.rows, tiles), rows_);
    const IndexId lower = pool_.Min(Over(rows_, tile_.rows - 1), OnlyIf(pool_, AreShared(), missing));
    const IndexId whole = pool_.Sub(tiles, pool_.Max(lower, pool_.Min(missing, Const(1))));
    return {{tile_.rows, Const(0), pool_.Min(Over(rows_, tile_.rows), whole)},
            {tile_.rows - 1, pool_.Sub(rows_, Times(tile_.rows - 1, lower)), lower}};
  }
  bool SharesOutRows() const {
    const auto slides = [&](IndexId e) {
      return HoldsVar(pool_, e, nest_.row->var) &&
             absl::c_any_of(nest_.sums, [&](const Loop* sum) { return HoldsVar(pool_, e, sum->var); });
    };
    return !nest_.is_ragged && tile_.rows > 2 && !pool_.ConstValue(rows_) &&
           absl::c_any_of(nest_.rows, [&](const Contraction::Operand& operand) {
             return absl::c_any_of(AccessOf(program_, operand).place, slides);
           });
  }
  // 1 where no tile is left of which not all rows are kept, else 0.
  IndexId AreShared() {
    const IndexId tiles = OverUp(rows_, tile_.rows), missing = pool_.Sub(Times(tile_.rows, tiles), rows_);
    return pool_.Min(Const(1), pool_.Max(Const(0), pool_.Sub(pool_.Add(tiles, Const(1)), missing)));
  }

  // for blocks of rows { for blocks of columns { for blocks of sums { tiles } } }, and by
  // themselves, so that these two loops hold nothing else, narrower tiles.
  Scope WholeRows(const Band& band) {
    const auto over_rows = [&](absl::FunctionRef<Scope(IndexId first, IndexId count)> body) {
      return make_.Counted("p", IfMany(OverUp(band.tiles, options_.row_block)), kPlain, [&](IndexId block) {
        const IndexId first = Times(options_.row_block, block);
        return body(first, pool_.Min(Const(options_.row_block), pool_.Sub(band.tiles, first)));
      });
    };
    Scope scope = over_rows([&](IndexId first, IndexId count) { return ColumnBlocks(band, first, count); });
    Append(scope, over_rows([&](IndexId first, IndexId count) {
      return make_.Counted("p", count, kPlain, [&](IndexId p) {
        return NarrowTiles(band.height, RowOf(band, pool_.Add(first, p)));
      });
    }));
    return scope;
  }
  IndexId RowOf(const Band& band, IndexId tile) { return pool_.Add(band.first, Times(band.height, tile)); }

  Scope ColumnBlocks(const Band& band, IndexId first_tile, IndexId count_of_tiles) {
    const IndexId tiles = WholeTiles();
    const IndexId steps = packing_.LengthOfHull(0);
    const int64_t length = nest_.sums.size() == 1 ? options_.sum_block : std::max<int64_t>(options_.sum_block / 12, 1);
    const auto known = pool_.ConstValue(steps);
    const bool moves = pool_.HasVar(nest_.sums[0]->begin) || pool_.HasVar(nest_.sums[0]->end);
    const bool blocked = !moves && (!known || *known > length);
    TensorId partial;
    if (blocked) {
      partial = program_.AddTensor({"partial", type_,
                                    {Const(options_.row_block * tile_.rows), Const(options_.column_block * tile_.vectors), Const(lanes_)},
                                    Storage::kTemp});
    }
    return make_.Counted("q", OverUp(tiles, options_.column_block), kPlain, [&](IndexId block) {
      Scope scope;
      if (blocked) scope.push_back(fusion::DeclarationOf(partial));
      const IndexId first = Times(options_.column_block, block);
      const IndexId count = pool_.Min(Const(options_.column_block), pool_.Sub(tiles, first));
      const IndexId sum_blocks = blocked ? pool_.Max(Const(1), OverUp(steps, length)) : Const(1);
      Append(scope, make_.Counted("s", sum_blocks, kPlain, [&](IndexId s) {
        return make_.Counted("p", count_of_tiles, kPlain, [&](IndexId p) {
          return make_.Counted("q", count, kPlain, [&](IndexId q) {
            SumBlock part{s, sum_blocks, partial, Times(band.height, p), Times(tile_.vectors, q)};
            const IndexId vector = Times(tile_.vectors, pool_.Add(first, q));
            const Patch patch{{band.height, tile_.vectors}, RowOf(band, pool_.Add(first_tile, p)), vector};
            if (!blocked) return Tile(patch);
            const IndexId begin = NESTOR_MUTANT("sum_blocks_overlap") ? pool_.Max(pool_.Sub(Times(length, s), Const(1)), Const(0))
                                                                      : Times(length, s);
            return Tile(patch, begin, pool_.Min(steps, pool_.Add(begin, Const(length))), &part);
          });
        });
      }));
      return scope;
    });
  }

  // Columns beside whole tiles, for `rows` rows from `row` on.
  Scope NarrowTiles(int64_t rows, IndexId row) {
    Scope scope;
    IndexId done = Times(tile_.vectors, WholeTiles());  // vectors
    // A pair whose second vector is not whole is beside whole pairs, too; of three vectors that
    // would be as much code again as the widest tile.
    for (int64_t vectors = tile_.vectors == 2 ? 2 : (tile_.vectors + 1) / 2; vectors > 1; vectors = (vectors + 1) / 2) {
      const IndexId count = Over(pool_.Sub(Vectors(), done), vectors);
      Append(scope, InARow({{rows, vectors}, row, done}, vectors, count));
      done = pool_.Add(done, Times(vectors, count));
    }
    // From the last one backwards, and said so that it is evident that none is negative.
    const IndexId left = pool_.Min(Vectors(), pool_.Sub(Vectors(), done));
    Append(scope, InARow({{rows, 1}, row, pool_.Sub(Vectors(), Const(1))}, -1, left));
    return scope;
  }

  // `count` tiles, the first of which is given, `step` vectors from each to the next.
  Scope InARow(const Patch& first, int64_t step, IndexId count) {
    return make_.Counted("q", count, kPlain, [&](IndexId q) {
      Patch patch = first;
      patch.vector = pool_.Add(first.vector, Times(step, q));
      patch.is_whole = false;
      return Tile(patch);
    });
  }

  // What is left over below whole tiles, in a tile like them of which some rows are not
  // kept: smaller ones for each number of rows would be much code.
  Scope LastRows() {
    const IndexId left = NESTOR_MUTANT("last_rows_skipped") ? Const(0) : Rest(rows_, tile_.rows);
    const IndexId tiles = pool_.Min(left, Const(1));
    const IndexId count = SharesOutRows() ? OnlyIf(pool_, pool_.Sub(Const(1), AreShared()), tiles) : tiles;
    return make_.Counted("p", IfMany(count), kPlain, [&](IndexId) {
      const IndexId first = NESTOR_MUTANT("last_rows_one_early") ? pool_.Max(pool_.Sub(pool_.Sub(rows_, left), Const(1)), Const(0)) : pool_.Sub(rows_, left);
      const IndexId wide = Over(Vectors(), tile_.vectors), done = Times(tile_.vectors, wide);
      Scope scope = InARow({{tile_.rows, tile_.vectors}, first, Const(0), left}, tile_.vectors, wide);
      Append(scope, InARow({{tile_.rows, 1}, first, done, left}, 1, pool_.Sub(Vectors(), done)));
      return scope;
    });
  }

  // ---- A tile

  // Of the sums [begin, end), if they are given.
  Scope Tile(const Patch& patch, IndexId begin = {}, IndexId end = {}, const SumBlock* part = nullptr) {
    const Extent extent = patch.extent;
    const TensorId tile = program_.AddTensor({"tile", type_, {Const(extent.rows), Const(extent.vectors), Const(lanes_)},
                                              Storage::kTemp, ReduceOp::kSum, true});
    Scope scope;
    scope.push_back(fusion::DeclarationOf(tile));
    Append(scope, Begin(tile, extent, part));
    const auto step = [&](const std::vector<IndexId>& sums, IndexId r, IndexId v, IndexId l) {
      return Step(tile, {r, v, l}, {RowToRead(patch, r), pool_.Add(patch.vector, v), l, sums});
    };
    const bool compact = !patch.is_whole;
    if (nest_.is_ragged) {
      Append(scope, RaggedSums(patch, step));
    } else {
      Append(scope, OverSums(begin, end, compact, [&](const std::vector<IndexId>& sums) {
        return OverRows(patch, [&](IndexId r, IndexId v, IndexId l) { return step(sums, r, v, l); });
      }));
    }
    const auto finish = [&] { return Ends(tile, patch); };
    if (part == nullptr) {
      Append(scope, finish());
      return scope;
    }
    const IndexId more = pool_.Min(Const(1), pool_.Sub(pool_.Sub(part->count, Const(1)), part->number));
    Append(scope, If(more, [&] {
      return OverTile(extent, [&](IndexId r, IndexId v, IndexId l) {
        return Assignment(part->partial, PartialPlace(*part, r, v, l), program_.AddLoad({tile, {r, v, l}}));
      });
    }));
    const IndexId is_last = pool_.Sub(Const(1), more);
    Append(scope, If(NESTOR_MUTANT("epilogue_after_first_block") ? pool_.Sub(Const(1), pool_.Min(Const(1), part->number)) : is_last, finish));
    return scope;
  }

  using StepAt = absl::FunctionRef<Scope(const std::vector<IndexId>& sums, IndexId r, IndexId v, IndexId l)>;

  // Steps of all rows of the tile, and those of some, row by row, before them and behind.
  Scope RaggedSums(const Patch& patch, StepAt step) {
    const IndexId last = RowToRead(patch, Const(patch.extent.rows - 1));
    const Hull common = CommonBounds(program_, nest_, patch.row, last);
    Scope before = RaggedEnds(patch, common, true, step);
    Append(before, RaggedSteps(common, [&](const std::vector<IndexId>& sums) {
      return OverRows(patch, [&](IndexId r, IndexId v, IndexId l) { return step(sums, r, v, l); });
    }));
    Append(before, RaggedEnds(patch, common, false, step));
    return before;
  }

  Scope RaggedEnds(const Patch& patch, const Hull& common, bool before, StepAt step) {
    const IndexId moving = before ? nest_.sums[0]->begin : nest_.sums[0]->end;
    if (!HoldsVar(pool_, moving, nest_.row->var)) return {};
    Scope scope;
    for (int64_t r = 0; r < patch.extent.rows; ++r) {
      const Hull own = BoundsAt(program_, nest_, RowToRead(patch, Const(r)));
      const Hull part = before ? Hull{own.begin, pool_.Min(common.begin, own.end)} : Hull{pool_.Max(common.begin, common.end), own.end};
      Append(scope, RaggedSteps(part, [&](const std::vector<IndexId>& sums) {
        return OverRow(Const(r), patch.extent.vectors,
                       [&](IndexId, IndexId v, IndexId l) { return step(sums, Const(r), v, l); });
      }));
    }
    return scope;
  }

  Scope RaggedSteps(const Hull& bounds, OverSteps body) {
    const auto from_hull = [&](IndexId e) { return pool_.Sub(e, nest_.hulls[0].begin); };
    return make_.Between(program_.vars[nest_.sums[0]->var], from_hull(bounds.begin), from_hull(bounds.end), kPlain,
                         [&](IndexId k) { return body({k}); });
  }

  // Once where `condition`, 0 or 1, is 1.
  Scope If(IndexId condition, absl::FunctionRef<Scope()> body) {
    return make_.Counted("z", condition, kPlain, [&](IndexId) { return body(); });
  }

  IndexList PartialPlace(const SumBlock& part, IndexId r, IndexId v, IndexId l) {
    return {pool_.Add(part.row, r), pool_.Add(part.vector, v), l};
  }

  // At the identity, or what the blocks of the sum before have come to.
  Scope Begin(TensorId tile, Extent extent, const SumBlock* part) {
    const auto identity = [&] {
      return OverTile(extent, [&](IndexId r, IndexId v, IndexId l) {
        return Assignment(tile, {r, v, l}, program_.AddConstant(Identity(*nest_.step->op, type_)));
      });
    };
    if (part == nullptr) return identity();
    const IndexId continues = NESTOR_MUTANT("sum_block_starts_anew") ? Const(0) : pool_.Min(Const(1), part->number);
    Scope scope = If(pool_.Sub(Const(1), continues), identity);
    Append(scope, If(continues, [&] {
      return OverTile(extent, [&](IndexId r, IndexId v, IndexId l) {
        return Assignment(tile, {r, v, l}, program_.AddLoad({part->partial, PartialPlace(*part, r, v, l)}));
      });
    }));
    return scope;
  }

  // Rows that are not kept read what the last one does.
  IndexId RowToRead(const Patch& patch, IndexId r) {
    const IndexId row = pool_.Add(patch.row, r);
    return patch.rows_left ? pool_.Min(row, pool_.Sub(rows_, Const(1))) : row;
  }

  IndexId LanesOf(const Patch& patch, IndexId vector) {
    if (NESTOR_MUTANT("last_vector_whole")) return Const(lanes_);
    return patch.is_whole && nest_.jammed == nullptr ? Const(lanes_) : ColumnsFrom(vector);
  }

  Scope IfKept(const Patch& patch, IndexId r, absl::FunctionRef<Scope()> body) {
    if (!patch.rows_left) return body();
    return If(pool_.Min(Const(1), pool_.Max(Const(0), pool_.Sub(*patch.rows_left, r))), body);
  }

  Scope OverTile(Extent extent, AtPlace at) {
    return make_.Counted("r", Const(extent.rows), kUnrolled, [&](IndexId r) { return OverRow(r, extent.vectors, at); });
  }
  Scope OverRow(IndexId r, int64_t vectors, AtPlace at) {
    return make_.Counted("v", Const(vectors), kUnrolled, [&](IndexId v) {
      return make_.Counted("l", Const(lanes_), kVector, [&](IndexId l) { return at(r, v, l); });
    });
  }

  // Each row by itself where rows may not be kept: then a minimum says which row is read,
  // with a number for r one of sizes alone, which is no work in the loop.
  Scope OverRows(const Patch& patch, AtPlace at) {
    if (!patch.rows_left) return OverTile(patch.extent, at);
    Scope scope;
    for (int64_t r = 0; r < patch.extent.rows; ++r) Append(scope, OverRow(Const(r), patch.extent.vectors, at));
    return scope;
  }

  // tile = tile op value
  Scope Step(TensorId tile, const IndexList& in_tile, const Packing::Place& at) {
    const ValueId old = program_.AddLoad({tile, in_tile});
    const ValueId next = program_.AddApply(StepOp(*nest_.step->op), {old, packing_.ValueAt(at)}, type_);
    return Assignment(tile, in_tile, next);
  }

  // What the nest does with the sums of a tile. Where that takes many registers, it is done from
  // memory, one vector after the other: accumulators would have none left.
  Scope Ends(TensorId tile, const Patch& patch) {
    if (operations_after_sum_ <= kMostOnRegisters) return EndsOf(tile, patch, kUnrolled);
    const Extent extent = patch.extent;
    const TensorId sums = program_.AddTensor({"sums", type_, {Const(extent.rows), Const(extent.vectors), Const(lanes_)}, Storage::kTemp});
    Scope scope = {fusion::DeclarationOf(sums)};
    Append(scope, OverTile(extent, [&](IndexId r, IndexId v, IndexId l) {
      return Assignment(sums, {r, v, l}, program_.AddLoad({tile, {r, v, l}}));
    }));
    Append(scope, EndsOf(sums, patch, kPlain));
    return scope;
  }

  Scope EndsOf(TensorId sums, const Patch& patch, LoopAttributes attributes) {
    return make_.Counted("r", Const(patch.extent.rows), attributes, [&](IndexId r) {
      return IfKept(patch, r, [&] {
        return make_.Counted("v", Const(patch.extent.vectors), attributes, [&](IndexId v) {
          const IndexId vector = pool_.Add(patch.vector, v);
          return make_.Counted("l", LanesOf(patch, vector), kVector, [&](IndexId l) {
            return Finish(sums, {r, v, l}, pool_.Add(patch.row, r), vector);
          });
        });
      });
    });
  }

  // What the nest does with its sum, at one row and column.
  Scope Finish(TensorId tile, const IndexList& in_tile, IndexId row, IndexId vector) {
    Loop ends = *nest_.column;
    ends.body.clear();
    for (const Item& item : *nest_.core) {
      const auto* declaration = item.As<loop::Declaration>();
      if (item.As<Loop>() != nullptr || (declaration != nullptr && declaration->tensor == nest_.accumulator)) continue;
      ends.body.push_back(item);
    }
    const auto in_the_tile = [&](loop::Access& sum) {
      sum.tensor = tile;
      sum.place = in_tile;
    };
    VisitStatements(ends.body, [&](Statement& statement) {
      RewriteLoads(program_, statement, nest_.accumulator, in_the_tile);
    });
    absl::optional<Loop> copy = fusion::DecidedCopy(program_, ranges_, ends, /*fresh=*/true);
    if (!copy) return {};
    loop::VarReplacement replace(program_);
    packing_.Locate(replace, row, vector, in_tile.back());
    replace.Set(copy->var, packing_.ColumnAt(vector, in_tile.back()));
    RewriteIndices(program_, copy->body, [&](IndexId e) { return replace(e); });
    return std::move(copy->body);
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
  const ContractionTileOptions& options_;
  LoopMaker make_;
  Contraction nest_;
  const Loop& whole_;
  const DType type_;
  const int64_t lanes_;
  Packing packing_;
  int operations_after_sum_ = 0;
  Extent tile_{};
  IndexId rows_, columns_;  // how many
  absl::optional<IndexId> many_;  // 0 where the rows are few, and the nest runs as it was; else 1
};

}  // namespace

absl::StatusOr<bool> TileContractions(Program& program, const ContractionTileOptions& options) {
  loop::Ranges ranges(program);
  const auto tiled = [&](Loop& loop) -> absl::optional<Scope> {
    const absl::optional<Contraction> nest = ContractionOf(program, loop);
    if (!nest) return absl::nullopt;
    Tiling tiling(program, ranges, options, *nest, loop);
    if (!tiling.IsWorth()) return absl::nullopt;
    return tiling.Run();
  };
  bool changed = false;
  // A nest of few rows that is left as it was may be a contraction with another loop's rows. This
  // ends: each such copy has one more loop that is proven to have few iterations.
  while (ReplaceLoops(program, ranges, tiled)) changed = true;
  return changed;
}

}  // namespace nestor::jit
