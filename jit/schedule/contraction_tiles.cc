// A nest becomes: what packs its operands, behind the loops that each depends on; whole
// tiles in blocks; whole rows of smaller tiles beside them; tiles of fewer rows below all.
#include "jit/schedule/contraction_tiles.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/codegen/lanes.h"
#include "jit/codegen/operations.h"
#include "jit/schedule/contraction.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
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

constexpr LoopAttributes kPlain = {}, kUnrolled = {false, false, true}, kVector = {false, true, false};
// Fewer rows than that are not worth a packed copy of columns that lie well where they are.
constexpr int64_t kLeastRows = 4;
constexpr int64_t kMany = int64_t{1} << 49;  // more than any extent

// Loops and their index, made together.
class LoopMaker {
 public:
  explicit LoopMaker(Program& program) : program_(program), pool_(program.pool) {}

  using Body = absl::FunctionRef<Scope(IndexId index)>;
  // Nothing where the loop never runs; the body at 0 where `end` is 1.
  Scope Counted(absl::string_view name, IndexId end, LoopAttributes attributes, Body body) {
    return Between(name, pool_.Const(0), end, attributes, body);
  }
  Scope Between(absl::string_view name, IndexId begin, IndexId end, LoopAttributes attributes, Body body) {
    if (const auto count = pool_.ConstValue(pool_.Sub(end, begin)); count && *count <= 0) return {};
    Loop loop{program_.AddVar(name), begin, end, 1, attributes, {}};
    loop.body = body(pool_.Var(loop.var));
    Scope scope;
    if (!loop.body.empty()) scope.push_back({std::move(loop)});
    return scope;
  }

 private:
  Program& program_;
  IndexPool& pool_;
};

void Append(Scope& scope, Scope more) {
  scope.insert(scope.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

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
        hulls_(HullsOf(program, nest)),
        type_(program[nest.accumulator].type),
        lanes_(VectorBytes(options.isa) / LaneBytes(LaneOf(type_))) {}

  // Not for few rows of columns that lie well.
  bool IsWorth() {
    if (!ReadsWithinHulls()) return false;
    return !ColumnsLieWell() || !ranges_.Less(ranges_.LengthOf(*nest_.row), Const(kLeastRows));
  }

  Scope Run() {
    ChooseTile();
    rows_ = ranges_.LengthOf(*nest_.row);
    columns_ = ranges_.LengthOf(*nest_.column);
    Scope scope = FewRows();
    for (const Contraction::Operand& operand : nest_.columns) AddPacked(operand, true);
    for (const Contraction::Operand& operand : nest_.rows) {
      if (!IsRow(operand)) AddPacked(operand, false);
    }
    Append(scope, Level(0));
    return scope;
  }

 private:
  struct Packed {
    Contraction::Operand operand;
    bool in_columns;
    TensorId tensor;
  };
  // A place in the tile that statements are made for, and the steps of the sums.
  struct Place {
    IndexId row, vector, lane;
    std::vector<IndexId> sums;
  };
  struct Extent {
    int64_t rows, vectors;
  };
  // Which part of the sums a tile takes: all where there is no block.
  struct SumBlock {
    IndexId number, count;
    TensorId partial;        // of the blocks before
    IndexId row, vector;     // of the tile in `partial`
  };
  static std::vector<Hull> HullsOf(const Program& program, const Contraction& nest) {
    std::vector<Hull> hulls;
    for (const Loop* sum : nest.sums) hulls.push_back(*HullOf(program, *sum));
    return hulls;
  }
  // Of a sum, whatever the batch loops make of its bounds.
  IndexId LengthOfHull(size_t sum) {
    const Loop& loop = *nest_.sums[sum];
    if (loop.begin == hulls_[sum].begin && loop.end == hulls_[sum].end) return ranges_.LengthOf(loop);
    const IndexId length = pool_.Sub(hulls_[sum].end, hulls_[sum].begin);
    return ranges_.NonNegative(length) ? length : pool_.Max(length, Const(0));
  }

  using AtPlace = absl::FunctionRef<Scope(IndexId r, IndexId v, IndexId l)>;

  IndexId Const(int64_t value) { return pool_.Const(value); }
  IndexId Times(int64_t factor, IndexId e) { return pool_.Mul(Const(factor), e); }
  IndexId Over(IndexId e, int64_t divisor) { return pool_.Div(e, Const(divisor)); }
  IndexId Rest(IndexId e, int64_t divisor) { return pool_.Mod(e, Const(divisor)); }
  // `count`, but 0 where the rows are few.
  IndexId IfMany(IndexId count) { return many_.value < 0 ? count : pool_.Min(count, Times(kMany, many_)); }
  IndexId OverUp(IndexId e, int64_t divisor) { return Over(pool_.Add(e, Const(divisor - 1)), divisor); }

  // ---- What is decided first

  // Accumulators, a vector of each column operand, a broadcast and a product at once.
  void ChooseTile() {
    const int registers = options_.isa == Isa::kAvx512 ? 32 : 16;
    tile_ = options_.isa == Isa::kAvx512 ? Extent{8, 3} : Extent{6, 2};
    const auto needed = [&] {
      return tile_.rows * tile_.vectors + tile_.vectors * static_cast<int64_t>(nest_.columns.size()) + 2 +
             static_cast<int64_t>(nest_.rows.size()) - 1;
    };
    while (needed() > registers && tile_.rows > 1) --tile_.rows;
    if (options_.rows > 0) tile_ = {options_.rows, options_.vectors};
  }

  // The nest as it was, where it has few rows and reads its columns well; the tiles take
  // what is left.
  Scope FewRows() {
    if (!ColumnsLieWell()) return {};
    const auto known = pool_.ConstValue(rows_);
    if (known && *known >= kLeastRows) return {};
    const IndexId few = pool_.Min(Const(1), pool_.Max(Const(0), pool_.Sub(Const(kLeastRows), rows_)));
    many_ = pool_.Sub(Const(1), few);
    Loop copy = whole_;
    Loop* row = &copy;
    while (row->var != nest_.row->var) row = row->body[0].As<Loop>();
    row->end = pool_.Add(row->begin, pool_.Min(rows_, Times(kLeastRows - 1, few)));
    ranges_.Enter(copy);
    absl::optional<Loop> fresh = fusion::DecidedCopy(program_, ranges_, copy, /*fresh=*/true);
    ranges_.Leave();
    Scope scope;
    if (fresh) scope.push_back({*std::move(fresh)});
    return scope;
  }

  bool ColumnsLieWell() {
    return std::all_of(nest_.columns.begin(), nest_.columns.end(), [&](const Contraction::Operand& operand) {
      const Access access = AccessOf(operand);
      return !access.masked && (IsAlong(program_, access, *nest_.column) || IsAlong(program_, access, *nest_.sums.back()));
    });
  }

  Access AccessOf(const Contraction::Operand& operand) const {
    return absl::get<loop::LoadValue>(program_[operand.load].node).access;
  }

  // Whether the operand is read where it is: what is summed of a row lies together.
  bool IsRow(const Contraction::Operand& operand) {
    const Access access = AccessOf(operand);
    if (access.masked) return false;
    bool in_sums = false;
    for (IndexId e : access.place) {
      in_sums = in_sums || std::any_of(nest_.sums.begin(), nest_.sums.end(),
                                       [&](const Loop* sum) { return HoldsVar(pool_, e, sum->var); });
      if (in_sums && HoldsVar(pool_, e, nest_.row->var)) return false;
    }
    return true;
  }

  // Of columns.
  IndexId WholeVectors() { return Over(columns_, lanes_); }
  IndexId WholeTiles() { return Over(WholeVectors(), tile_.vectors); }
  // In vector number `vector`, which may be the last.
  IndexId ColumnsFrom(IndexId vector) {
    return pool_.Min(Const(lanes_), pool_.Sub(columns_, Times(lanes_, vector)));
  }

  // Whether what is packed may be read for all steps of the hulls, though some of them are not
  // summed, or there is no row at all.
  bool ReadsWithinHulls() {
    std::vector<Loop> loops;
    for (size_t i = 0; i < hulls_.size(); ++i) {
      const Loop& sum = *nest_.sums[i];
      if (sum.begin == hulls_[i].begin && sum.end == hulls_[i].end) continue;
      loops.push_back({sum.var, hulls_[i].begin, hulls_[i].end, 1, {}, {}});
    }
    std::vector<const Loop*> around = nest_.batch;
    around.insert(around.end(), {nest_.row, nest_.column});
    for (const Loop* sum : nest_.sums) {
      const auto moved = std::find_if(loops.begin(), loops.end(), [&](const Loop& loop) { return loop.var == sum->var; });
      around.push_back(moved == loops.end() ? sum : &*moved);
    }
    for (const Loop* loop : around) ranges_.Enter(*loop);
    const auto reads = [&](const Contraction::Operand& operand) {
      const Access access = AccessOf(operand);
      return access.masked || ranges_.InRange(access.place, program_[access.tensor].shape);
    };
    bool good = std::all_of(nest_.columns.begin(), nest_.columns.end(), reads);
    for (const Contraction::Operand& operand : nest_.rows) good = good && (IsRow(operand) || reads(operand));
    for (size_t i = 0; i < around.size(); ++i) ranges_.Leave();
    return good;
  }

  // ---- Packed operands

  // Columns [vectors, k.., lanes], rows [row, k..].
  void AddPacked(const Contraction::Operand& operand, bool in_columns) {
    loop::TensorInfo info;
    info.name = in_columns ? "columns" : "rows";
    info.type = program_[operand.load].type;
    info.shape.push_back(in_columns ? OverUp(columns_, lanes_) : rows_);
    for (size_t i = 0; i < nest_.sums.size(); ++i) info.shape.push_back(LengthOfHull(i));
    if (in_columns) info.shape.push_back(Const(lanes_));
    packed_.push_back({operand, in_columns, program_.AddTensor(std::move(info))});
  }

  Scope Pack(const Packed& packed) {
    Scope scope;
    scope.push_back(fusion::DeclarationOf(packed.tensor));
    Append(scope, packed.in_columns ? PackColumns(packed) : PackRows(packed));
    return scope;
  }

  Scope PackRows(const Packed& packed) {
    return make_.Counted("i", IfMany(rows_), kPlain, [&](IndexId row) {
      return OverHulls([&](const std::vector<IndexId>& sums) {
        IndexList place = {row};
        place.insert(place.end(), sums.begin(), sums.end());
        return Assignment(packed.tensor, place, ValueAt(packed.operand.load, row, Const(0), sums));
      });
    });
  }

  // Whole vectors, then one whose other lanes are zero.
  Scope PackColumns(const Packed& packed) {
    const IndexId whole = ReadsBeyond(packed.operand) ? OverUp(columns_, lanes_) : WholeVectors();
    // Columns that lie across rows are for transpose_tiles to take.
    const bool along = HoldsVar(pool_, AccessOf(packed.operand).place.back(), nest_.column->var);
    const LoopAttributes lanes = along ? kVector : kPlain;
    const auto fill = [&](IndexId vector, IndexId count, absl::FunctionRef<ValueId(IndexId column, const std::vector<IndexId>&)> value) {
      return OverHulls([&](const std::vector<IndexId>& sums) {
        return make_.Counted("l", count, lanes, [&](IndexId lane) {
          IndexList place = {vector};
          place.insert(place.end(), sums.begin(), sums.end());
          place.push_back(lane);
          return Assignment(packed.tensor, place, value(pool_.Add(Times(lanes_, vector), lane), sums));
        });
      });
    };
    const auto loaded = [&](IndexId column, const std::vector<IndexId>& sums) {
      return ValueAt(packed.operand.load, Const(0), column, sums);
    };
    const auto zero = [&](IndexId, const std::vector<IndexId>&) {
      return program_.AddConstant(Scalar::Zero(program_[packed.tensor].type));
    };
    Scope scope = make_.Counted("v", IfMany(whole), kPlain, [&](IndexId v) { return fill(v, Const(lanes_), loaded); });
    const IndexId more = pool_.Sub(OverUp(columns_, lanes_), whole);
    if (pool_.IsConst(more, 0)) return scope;
    Append(scope, make_.Counted("v", IfMany(more), kPlain, [&](IndexId v) {
      const IndexId last = pool_.Add(whole, v);
      Scope both = fill(last, Const(lanes_), zero);
      Append(both, fill(last, ColumnsFrom(last), loaded));
      return both;
    }));
    return scope;
  }

  // Whether all lanes of the last vector can be read, though they are no columns.
  bool ReadsBeyond(const Contraction::Operand& operand) {
    const Access access = AccessOf(operand);
    if (access.masked) return false;
    const IndexId last = pool_.Sub(Times(lanes_, OverUp(columns_, lanes_)), Const(1));
    loop::VarReplacement replace(program_);
    replace.Set(nest_.column->var, pool_.Add(nest_.column->begin, last));
    for (size_t i = 0; i < hulls_.size(); ++i) replace.Set(nest_.sums[i]->var, pool_.Sub(hulls_[i].end, Const(1)));
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const IndexId e = access.place[axis];
      if (!HoldsVar(pool_, e, nest_.column->var)) continue;
      for (const Loop* sum : nest_.sums) {
        const auto step = CoefficientOf(program_, e, sum->var);
        if (!step || !ranges_.NonNegative(*step)) return false;
      }
      if (pool_.HasVar(replace(e)) || !ranges_.Less(replace(e), program_[access.tensor].shape[axis])) return false;
      const auto step = CoefficientOf(program_, e, nest_.column->var);
      if (!step || !ranges_.NonNegative(*step)) return false;
    }
    return true;
  }

  // `value` of the nest at a row, a column and steps of the sums, counted from the first of
  // their hulls.
  ValueId ValueAt(ValueId value, IndexId row, IndexId column, const std::vector<IndexId>& sums) {
    loop::VarReplacement replace(program_);
    replace.Set(nest_.row->var, pool_.Add(nest_.row->begin, row));
    replace.Set(nest_.column->var, pool_.Add(nest_.column->begin, column));
    for (size_t i = 0; i < sums.size(); ++i) {
      replace.Set(nest_.sums[i]->var, pool_.Add(hulls_[i].begin, sums[i]));
    }
    return RewriteIndices(program_, value, [&](IndexId e) { return replace(e); });
  }

  static Scope Assignment(TensorId tensor, IndexList place, ValueId value) {
    Scope scope;
    scope.push_back({Statement{{tensor, std::move(place)}, absl::nullopt, value, {}}});
    return scope;
  }

  using OverSteps = absl::FunctionRef<Scope(const std::vector<IndexId>& sums)>;

  // Loops over the hulls of all sums.
  Scope OverHulls(OverSteps body, std::vector<IndexId> known = {}) {
    const size_t i = known.size();
    if (i == nest_.sums.size()) return body(known);
    return make_.Counted(program_.vars[nest_.sums[i]->var], LengthOfHull(i), kPlain, [&](IndexId k) {
      std::vector<IndexId> with = known;
      with.push_back(k);
      return OverHulls(body, std::move(with));
    });
  }

  // Loops over the sums; of the first over steps [begin, end), if they are given.
  Scope OverSums(IndexId begin, IndexId end, OverSteps body, std::vector<IndexId> known = {}) {
    const size_t i = known.size();
    if (i == nest_.sums.size()) return body(known);
    const Loop& sum = *nest_.sums[i];
    const bool is_part = i == 0 && end.value >= 0;
    const IndexId from = is_part ? begin : pool_.Sub(sum.begin, hulls_[i].begin);
    const IndexId to = is_part ? end : pool_.Sub(sum.end, hulls_[i].begin);
    return make_.Between(program_.vars[sum.var], from, to, kPlain, [&](IndexId k) {
      std::vector<IndexId> with = known;
      with.push_back(k);
      return OverSums(begin, end, body, std::move(with));
    });
  }

  // ---- The loops around tiles

  // Of the batch loops from number `depth` on: what is packed there, and then the rest.
  Scope Level(size_t depth) {
    Scope scope;
    for (const Packed& packed : packed_) {
      if (packed.operand.batch_loops == static_cast<int>(depth)) Append(scope, Pack(packed));
    }
    if (depth == nest_.batch.size()) {
      Append(scope, WholeRows());
      Append(scope, FewerRows());
      return scope;
    }
    Loop batch = *nest_.batch[depth];
    batch.body = Level(depth + 1);
    scope.push_back({std::move(batch)});
    return scope;
  }

  // for blocks of rows { for blocks of columns { for blocks of sums { tiles } } }, and by
  // themselves, so that these two loops hold nothing else, narrower tiles.
  Scope WholeRows() {
    const IndexId tiles = Over(rows_, tile_.rows);
    const auto over_rows = [&](absl::FunctionRef<Scope(IndexId first, IndexId count)> body) {
      return make_.Counted("p", IfMany(OverUp(tiles, options_.row_block)), kPlain, [&](IndexId block) {
        const IndexId first = Times(options_.row_block, block);
        return body(first, pool_.Min(Const(options_.row_block), pool_.Sub(tiles, first)));
      });
    };
    Scope scope = over_rows([&](IndexId first, IndexId count) { return ColumnBlocks(first, count); });
    Append(scope, over_rows([&](IndexId first, IndexId count) {
      return make_.Counted("p", count, kPlain, [&](IndexId p) {
        return NarrowTiles(tile_.rows, Times(tile_.rows, pool_.Add(first, p)));
      });
    }));
    return scope;
  }

  Scope ColumnBlocks(IndexId first_row, IndexId row_count) {
    const IndexId tiles = WholeTiles();
    const IndexId steps = LengthOfHull(0);
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
        return make_.Counted("p", row_count, kPlain, [&](IndexId p) {
          return make_.Counted("q", count, kPlain, [&](IndexId q) {
            SumBlock part{s, sum_blocks, partial, Times(tile_.rows, p), Times(tile_.vectors, q)};
            const IndexId row = Times(tile_.rows, pool_.Add(first_row, p));
            const IndexId vector = Times(tile_.vectors, pool_.Add(first, q));
            if (!blocked) return Tile(tile_, row, vector, Const(lanes_), {}, {}, nullptr);
            const IndexId begin = Times(length, s);
            return Tile(tile_, row, vector, Const(lanes_), begin, pool_.Min(steps, pool_.Add(begin, Const(length))), &part);
          });
        });
      }));
      return scope;
    });
  }

  // Columns beside the widest tiles, for `rows` rows from `row` on.
  Scope NarrowTiles(int64_t rows, IndexId row) {
    Scope scope;
    IndexId done = Times(tile_.vectors, WholeTiles());  // vectors
    IndexId left = Rest(WholeVectors(), tile_.vectors);
    for (int64_t vectors = tile_.vectors - 1; vectors > 1; --vectors) {
      const IndexId count = Over(left, vectors);
      Append(scope, make_.Counted("q", count, kPlain, [&](IndexId q) {
        return Tile({rows, vectors}, row, pool_.Add(done, Times(vectors, q)), Const(lanes_), {}, {}, nullptr);
      }));
      done = pool_.Add(done, Times(vectors, count));
      left = Rest(left, vectors);
    }
    Append(scope, make_.Counted("q", pool_.Sub(OverUp(columns_, lanes_), done), kPlain, [&](IndexId q) {
      const IndexId vector = pool_.Add(done, q);
      return Tile({rows, 1}, row, vector, ColumnsFrom(vector), {}, {}, nullptr);
    }));
    return scope;
  }

  // What is left over below whole tiles: of 7 rows 4, 2 and 1.
  Scope FewerRows() {
    Scope scope;
    IndexId done = Times(tile_.rows, Over(rows_, tile_.rows));
    IndexId left = Rest(rows_, tile_.rows);
    int64_t rows = 1;
    while (2 * rows < tile_.rows) rows *= 2;
    if (tile_.rows == 1) return scope;
    for (; rows > 0; rows /= 2) {
      const IndexId count = Over(left, rows);
      Append(scope, make_.Counted("p", IfMany(count), kPlain, [&](IndexId p) {
        const IndexId row = pool_.Add(done, Times(rows, p));
        Scope one = make_.Counted("q", WholeTiles(), kPlain, [&](IndexId q) {
          return Tile({rows, tile_.vectors}, row, Times(tile_.vectors, q), Const(lanes_), {}, {}, nullptr);
        });
        Append(one, NarrowTiles(rows, row));
        return one;
      }));
      done = pool_.Add(done, Times(rows, count));
      left = Rest(left, rows);
    }
    return scope;
  }

  // ---- A tile

  // From `row` and `vector` on; of the sums [begin, end), if they are given. The last of its
  // vectors has `lanes` columns.
  Scope Tile(Extent extent, IndexId row, IndexId vector, IndexId lanes, IndexId begin, IndexId end, const SumBlock* part) {
    const TensorId tile = program_.AddTensor({"tile", type_, {Const(extent.rows), Const(extent.vectors), Const(lanes_)},
                                              Storage::kTemp, ReduceOp::kSum, true});
    Scope scope;
    scope.push_back(fusion::DeclarationOf(tile));
    Append(scope, Begin(tile, extent, part));
    Append(scope, OverSums(begin, end, [&](const std::vector<IndexId>& sums) {
      return OverTile(extent, Const(lanes_), [&](IndexId r, IndexId v, IndexId l) {
        return Step(tile, {r, v, l}, {pool_.Add(row, r), pool_.Add(vector, v), l, sums});
      });
    }));
    const auto finish = [&] {
      return OverTile(extent, lanes, [&](IndexId r, IndexId v, IndexId l) {
        return Finish(tile, {r, v, l}, pool_.Add(row, r), pool_.Add(Times(lanes_, pool_.Add(vector, v)), l));
      });
    };
    if (part == nullptr) {
      Append(scope, finish());
      return scope;
    }
    const IndexId more = pool_.Min(Const(1), pool_.Sub(pool_.Sub(part->count, Const(1)), part->number));
    Append(scope, If(more, [&] {
      return OverTile(extent, Const(lanes_), [&](IndexId r, IndexId v, IndexId l) {
        return Assignment(part->partial, PartialPlace(*part, r, v, l), program_.AddLoad({tile, {r, v, l}}));
      });
    }));
    Append(scope, If(pool_.Sub(Const(1), more), finish));
    return scope;
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
      return OverTile(extent, Const(lanes_), [&](IndexId r, IndexId v, IndexId l) {
        return Assignment(tile, {r, v, l}, program_.AddConstant(Identity(*nest_.step->op, type_)));
      });
    };
    if (part == nullptr) return identity();
    const IndexId continues = pool_.Min(Const(1), part->number);
    Scope scope = If(pool_.Sub(Const(1), continues), identity);
    Append(scope, If(continues, [&] {
      return OverTile(extent, Const(lanes_), [&](IndexId r, IndexId v, IndexId l) {
        return Assignment(tile, {r, v, l}, program_.AddLoad({part->partial, PartialPlace(*part, r, v, l)}));
      });
    }));
    return scope;
  }

  Scope OverTile(Extent extent, IndexId lanes, AtPlace at) {
    return make_.Counted("r", Const(extent.rows), kUnrolled, [&](IndexId r) {
      return make_.Counted("v", Const(extent.vectors), kUnrolled, [&](IndexId v) {
        return make_.Counted("l", lanes, kVector, [&](IndexId l) { return at(r, v, l); });
      });
    });
  }

  // tile = tile op value, with packed operands.
  Scope Step(TensorId tile, const IndexList& in_tile, const Place& at) {
    const ValueId packed = RewriteValues(program_, nest_.step->value, [&](ValueId id) { return LoadOfPacked(id, at); });
    const ValueId value = ValueAt(packed, at.row, Const(0), at.sums);
    const ValueId old = program_.AddLoad({tile, in_tile});
    return Assignment(tile, in_tile, program_.AddApply(StepOp(*nest_.step->op), {old, value}, type_));
  }

  absl::optional<ValueId> LoadOfPacked(ValueId id, const Place& at) {
    for (const Packed& packed : packed_) {
      if (packed.operand.load != id) continue;
      IndexList place = {packed.in_columns ? at.vector : at.row};
      place.insert(place.end(), at.sums.begin(), at.sums.end());
      if (packed.in_columns) place.push_back(at.lane);
      return program_.AddLoad({packed.tensor, place});
    }
    return absl::nullopt;
  }

  // What the nest does with its sum, at one row and column.
  Scope Finish(TensorId tile, const IndexList& in_tile, IndexId row, IndexId column) {
    Loop ends = *nest_.column;
    ends.body.clear();
    for (const Item& item : *nest_.core) {
      const auto* declaration = item.As<loop::Declaration>();
      if (item.As<Loop>() != nullptr || (declaration != nullptr && declaration->tensor == nest_.accumulator)) continue;
      ends.body.push_back(item);
    }
    const ValueId sum = program_.AddLoad({tile, in_tile});
    VisitStatements(ends.body, [&](Statement& statement) {
      statement.value = RewriteValues(program_, statement.value, [&](ValueId id) -> absl::optional<ValueId> {
        const auto* load = absl::get_if<loop::LoadValue>(&program_[id].node);
        if (load == nullptr || load->access.tensor != nest_.accumulator) return absl::nullopt;
        return sum;
      });
    });
    absl::optional<Loop> copy = fusion::DecidedCopy(program_, ranges_, ends, /*fresh=*/true);
    if (!copy) return {};
    loop::VarReplacement replace(program_);
    replace.Set(nest_.row->var, pool_.Add(nest_.row->begin, row));
    replace.Set(copy->var, pool_.Add(nest_.column->begin, column));
    RewriteIndices(program_, copy->body, [&](IndexId e) { return replace(e); });
    return std::move(copy->body);
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
  const ContractionTileOptions& options_;
  LoopMaker make_;
  const Contraction& nest_;
  const Loop& whole_;
  const std::vector<Hull> hulls_;  // of the sums
  const DType type_;
  const int64_t lanes_;
  Extent tile_{};
  IndexId rows_, columns_;  // how many
  IndexId many_;            // 0 where the rows are few, and the nest runs as it was; else 1
  std::vector<Packed> packed_;
};

class Tiler {
 public:
  Tiler(Program& program, const ContractionTileOptions& options) : program_(program), options_(options), ranges_(program) {}

  bool Run() {
    bool changed = false;
    for (loop::Block& block : program_.blocks) changed |= Visit(block.body);
    return changed;
  }

 private:
  bool Visit(Scope& scope) {
    bool changed = false;
    Scope out;
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr) {
        out.push_back(std::move(item));
        continue;
      }
      absl::optional<Contraction> nest = ContractionOf(program_, ranges_, *loop);
      if (nest) {
        Tiling tiling(program_, ranges_, options_, *nest, *loop);
        if (tiling.IsWorth()) {
          Append(out, tiling.Run());
          changed = true;
          continue;
        }
      }
      ranges_.Enter(*loop);
      changed |= Visit(loop->body);
      ranges_.Leave();
      out.push_back(std::move(item));
    }
    scope = std::move(out);
    return changed;
  }

  Program& program_;
  const ContractionTileOptions options_;
  loop::Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> TileContractions(Program& program, const ContractionTileOptions& options) {
  return Tiler(program, options).Run();
}

}  // namespace nestor::jit
