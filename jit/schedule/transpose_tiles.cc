// A transpose reads along one axis and writes along the other, so that one of the two jumps. In a
// square tile of registers both are contiguous: rows are loaded along the source, the square is
// transposed by shuffles, and rows are stored along the target. (Code generation knows the
// shuffles: t[l, r] in a vector loop over l.)
//
// A nest is cut in three: whole tiles, the columns that are left over beside them, and the rows
// below. In a tile, each load that walks the wrong way is replaced by a load from a register tile
// that was filled along the rows of the original load.
//
// Beyond the tile, caches and TLBs decide: squares cover whole cache lines in both directions, and
// blocks of squares touch few pages.
#include "jit/schedule/transpose_tiles.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

constexpr size_t kMostTiles = 2;
// The most elements from one that is read to the next: the code has a fast way for
// every second one.
constexpr int64_t kMostStep = 2;
// Squares along each side of a block: enough for whole stretches of memory, few enough for their
// pages to stay in the processor's TLB.
constexpr int64_t kBlock = 16;

// The most iterations of a loop between two that run through squares together: they write rows that
// lie one after the other.
constexpr int64_t kMostBetween = 8;

// `along` walks the rows of the tensors that are written, `across` those of `loads`.
struct Nest {
  const Loop* along;
  const Loop* across;
  std::vector<ValueId> loads;
};

class TransposeTiles {
 public:
  TransposeTiles(Program& program, jit::Isa isa)
      : program_(program), pool_(program.pool), isa_(isa), ranges_(program) {}

  bool Run() {
    return ReplaceLoops(program_, ranges_, [&](Loop& loop) { return Tiled(loop); });
  }

 private:
  // Tries the innermost loop, then the outermost one, as the one along the rows that are written.
  absl::optional<Scope> Tiled(const Loop& outer) {
    const absl::optional<LoopsAround> loops = PerfectNest(outer);
    if (!loops) return absl::nullopt;
    const Loop& inner = *loops->back();
    for (const Nest& nest : {Nest{&inner, &outer, {}}, Nest{&outer, &inner, {}}}) {
      const auto found = WithLoads(nest, inner);
      if (!found || !IsLong(outer, inner) || !IsLong(inner, inner)) continue;
      // This is checked last, as it takes longest.
      return RunInLanes(*loops) && AreIndependent(program_, outer, inner)
                 ? absl::make_optional(Cut(*loops, *found))
                 : absl::nullopt;
    }
    return absl::nullopt;
  }

  // Whether the outermost and the innermost of the loops run in lanes.
  bool RunInLanes(const LoopsAround& loops) {
    for (size_t i = 0; i + 1 < loops.size(); ++i) ranges_.Enter(*loops[i]);
    const bool inner = RunsInLanes(program_, ranges_, *loops.back());
    for (size_t i = 0; i + 1 < loops.size(); ++i) ranges_.Leave();
    return inner && RunsInLanes(program_, ranges_, *loops.front());
  }

  // Two loops or more, outermost first, none of whose bounds moves with another.
  absl::optional<LoopsAround> PerfectNest(const Loop& outermost) const {
    LoopsAround loops;
    for (const Loop* loop : BandOf(outermost)) {
      const auto moves = [&](const Loop* around) {
        return BoundsMoveWith(pool_, *loop, around->var);
      };
      if (loop->step != 1 || loop->attributes.vector || absl::c_any_of(loops, moves))
        return absl::nullopt;
      loops.push_back(loop);
    }
    return loops.size() > 1 ? absl::make_optional(loops) : absl::nullopt;
  }

  // The tiles of a square along a loop: as many as vectors fill a cache line, so that squares have
  // whole lines along both sides. Fewer where a loop of known length would have whole tiles left,
  // as one over the columns of a packed vector.
  int64_t TilesAlong(const Loop& loop, const Loop& inner) const {
    int64_t tiles = jit::kCacheLineBytes / jit::VectorBytes(isa_);
    const int64_t lanes = jit::LanesOf(program_, inner, isa_);
    const auto length = pool_.ConstValue(pool_.Sub(loop.end, loop.begin));
    while (length && tiles > 1 && *length % (tiles * lanes) >= lanes) --tiles;
    return tiles;
  }
  int64_t Width(const Loop& loop, const Loop& inner) const {
    return TilesAlong(loop, inner) * jit::LanesOf(program_, inner, isa_);
  }

  // Whether squares may fit: they do not in the loops left over beside squares.
  bool IsLong(const Loop& loop, const Loop& inner) {
    const IndexId length = pool_.Sub(loop.end, loop.begin);
    return ranges_.Defined(length) && !ranges_.Less(length, pool_.Const(Width(loop, inner)));
  }

  // The nest with the loads that walk across, if all stores walk along.
  absl::optional<Nest> WithLoads(Nest nest, const Loop& inner) {
    const int lanes = jit::LanesOf(program_, inner, isa_);
    for (const Item& item : inner.body) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || statement->op || statement->target.masked) return absl::nullopt;
      if (Walks(statement->target, nest.along->var, nest.across->var) != 1) return absl::nullopt;
      VisitLoads(program_, statement->value, [&](ValueId id, const Access& access) {
        if (access.masked) return;
        const int64_t step = Walks(access, nest.across->var, nest.along->var);
        if (step > 0 && step <= kMostStep) nest.loads.push_back(id);
      });
    }
    const bool fits = std::all_of(nest.loads.begin(), nest.loads.end(), [&](ValueId id) {
      return jit::LanesOf(program_[id].type, isa_) == lanes && program_[id].type != DType::kBool;
    });
    if (nest.loads.empty() || nest.loads.size() > kMostTiles || !fits) return absl::nullopt;
    return nest;
  }

  // By how many elements the access moves with `along`, if it jumps with `across`; 0: it walks
  // in another way.
  int64_t Walks(const Access& access, int32_t along, int32_t across) const {
    if (access.place.empty()) return 0;
    // Axes of one element at the end, as those of a 1x1 window, do not count.
    const Shape& shape = program_[access.tensor].shape;
    size_t axes = access.place.size();
    while (axes > 1 && pool_.IsConst(shape[axes - 1], 1)) --axes;
    bool jumps = false;
    int64_t step = 0;
    for (size_t axis = 0; axis < axes; ++axis) {
      const bool last = axis + 1 == axes;
      const auto a = StrideIn(pool_, access.place[axis], along);
      const auto b = CoefficientOf(pool_, access.place[axis], across);
      if (!a || !b || (*a == 0) == last) return 0;
      if (last) step = *a;
      if (last && !b->IsZero()) return 0;
      jumps |= !b->IsZero();
    }
    return jumps ? std::max<int64_t>(step, 0) : 0;
  }

  // ---- The three parts

  // Whole squares first, which are transposed in registers; plain loops for the edges.
  Scope Cut(const LoopsAround& loops, const Nest& nest) {
    const Loop& inner = *loops.back();
    const bool overlaps = !IsOutermost(program_, *loops.front()) && !ReadsWhatItWrites(inner);
    const Side across = SideOf(*nest.across, inner, overlaps),
               along = SideOf(*nest.along, inner, overlaps);
    Scope parts;
    Append(parts, Squares(loops, nest, across, along));
    // Then columns beside the tiles, and rows below all of these.
    AppendRest(loops, nest, across.covered, along.rest, parts);
    if (NESTOR_MUTANT("transpose_tail_unwritten")) return parts;
    AppendRest(loops, nest, across.rest, BoundsOf(*nest.along), parts);
    return parts;
  }

  using Bounds = std::pair<IndexId, IndexId>;
  static Bounds BoundsOf(const Loop& loop) { return {loop.begin, loop.end}; }

  // The squares along a loop: how many, what they cover, and what is left over. With `last`, the
  // last one begins after that many elements, and may overlap the one before, and `flag` is 1 where
  // there is room for one, else 0.
  struct Side {
    IndexId squares;
    Bounds covered, rest;
    absl::optional<IndexId> last = absl::nullopt, flag = absl::nullopt;
  };

  // Inside of other loops, the last square ends where the loop does, and writes some elements of
  // the one before again; only loops shorter than one square are left over. An outermost loop may
  // run on several threads, which may not write the same elements: there all elements that fill no
  // square are left over.
  Side SideOf(const Loop& loop, const Loop& inner, bool overlaps) {
    const IndexId length = ranges_.LengthOf(loop), width = pool_.Const(Width(loop, inner)),
                  whole = pool_.Div(length, width);
    if (!overlaps || pool_.IsConst(pool_.Mod(length, width), 0)) {
      const IndexId end = pool_.Add(loop.begin, pool_.Mul(whole, width));
      return {whole, {loop.begin, end}, {end, loop.end}};
    }
    const IndexId less = pool_.Sub(width, pool_.Const(1)), flag = pool_.Min(whole, pool_.Const(1));
    // The minimum with `less` makes it evident that this is less than a tile.
    const IndexId left =
        pool_.Min(pool_.Min(length, less), pool_.Mul(less, pool_.Sub(pool_.Const(1), flag)));
    return {pool_.Div(pool_.Add(length, less), width),
            BoundsOf(loop),
            {loop.begin, pool_.Add(loop.begin, left)},
            pool_.Sub(length, width),
            flag};
  }

  bool ReadsWhatItWrites(const Loop& inner) const {
    const Footprint footprint = FootprintOf(program_, inner.body);
    return absl::c_any_of(footprint.reads,
                          [&](TensorId tensor) { return footprint.Changes(tensor); });
  }

  // The nest as it was, within these bounds of its two sides.
  void AppendRest(const LoopsAround& loops, const Nest& nest, Bounds across, Bounds along,
                  Scope& parts) {
    const auto is_empty = [&](const Bounds& bounds) { return bounds.first == bounds.second; };
    if (is_empty(across) || is_empty(along)) return;
    Scope part = loops.back()->body;
    for (size_t i = loops.size(); i-- > 0;) {
      Loop loop{loops[i]->var, loops[i]->begin, loops[i]->end, 1, {}, {}};
      if (loops[i] == nest.across) std::tie(loop.begin, loop.end) = across;
      if (loops[i] == nest.along) std::tie(loop.begin, loop.end) = along;
      part = Around(loop, std::move(part));
    }
    absl::optional<Loop> fresh = FreshCopy(program_, ranges_, *part[0].As<Loop>());
    if (fresh) Append(parts, ScopeOf(*std::move(fresh)));
  }

  // From the inside out: tiles of a square, squares of a block along, the innermost loop between,
  // in strips, squares of the block across, blocks, and the other loops between.
  Scope Squares(const LoopsAround& loops, const Nest& nest, const Side& across, const Side& along) {
    const Loop& inner = *loops.back();
    const int64_t lanes = jit::LanesOf(program_, inner, isa_);
    const int32_t p = program_.AddVar(program_.vars[nest.across->var]);
    const int32_t q = program_.AddVar(program_.vars[nest.along->var]);
    const auto at = [&](const Loop& loop, const Side& side, int32_t square, int64_t tile) {
      IndexId first = pool_.Mul(pool_.Var(square), pool_.Const(Width(loop, inner)));
      if (side.last) first = pool_.Min(first, *side.last);
      return pool_.Add(loop.begin, pool_.Add(first, pool_.Const(tile * lanes)));
    };
    Scope square;
    for (int64_t row = 0; row < TilesAlong(*nest.across, inner); ++row) {
      std::vector<IndexId> columns;
      for (int64_t column = 0; column < TilesAlong(*nest.along, inner); ++column)
        columns.push_back(at(*nest.along, along, q, column));
      Tiles(loops.back()->body, nest, at(*nest.across, across, p, row), columns, lanes, square);
    }
    const int32_t blocks_across = program_.AddVar("p"), blocks_along = program_.AddVar("q");
    Scope scope = Around(InBlock(q, blocks_along, along.squares), std::move(square));
    const absl::Span<const Loop* const> between =
        absl::MakeConstSpan(loops).subspan(1, loops.size() - 2);
    absl::optional<Strips> strips;
    if (!between.empty() && !IsShort(*between.back()))
      strips = StripsOf(program_, ranges_, *between.back(), kMostBetween);
    if (!between.empty())
      scope = AroundAnew(program_, strips ? strips->strip : *between.back(), std::move(scope));
    scope = Around(InBlock(p, blocks_across, across.squares), std::move(scope));
    scope = Around(Blocks(blocks_along, along.squares), std::move(scope));
    scope = Around(Blocks(blocks_across, across.squares), std::move(scope));
    for (const Side* side : {&across, &along}) {
      if (side->flag) scope = LoopMaker(program_).If(*side->flag, [&] { return std::move(scope); });
    }
    if (strips) scope = Around(strips->over, std::move(scope));
    for (size_t i = between.size(); i-- > 1;)
      scope = AroundAnew(program_, *between[i - 1], std::move(scope));
    return scope;
  }

  // Whether the loop is known to be no longer than a strip.
  bool IsShort(const Loop& loop) {
    return ranges_.Less(ranges_.LengthOf(loop), pool_.Const(kMostBetween + 1));
  }

  Loop Blocks(int32_t var, IndexId squares) {
    const IndexId blocks =
        pool_.Div(pool_.Add(squares, pool_.Const(kBlock - 1)), pool_.Const(kBlock));
    return {var, pool_.Const(0), blocks, 1, {}, {}};
  }
  Loop InBlock(int32_t var, int32_t block, IndexId squares) {
    const IndexId first = pool_.Mul(pool_.Var(block), pool_.Const(kBlock));
    return {var, first, pool_.Min(pool_.Add(first, pool_.Const(kBlock)), squares), 1, {}, {}};
  }

  // Tiles beside each other, whose first elements are at the indices `across` and `along`. Their
  // rows are written together: a cache line at a time.
  void Tiles(const Scope& body, const Nest& nest, IndexId across, absl::Span<const IndexId> along,
             int64_t lanes, Scope& scope) {
    const bool several = along.size() > 1;
    std::vector<std::vector<TensorId>> tiles;
    for (IndexId first : along)
      tiles.push_back(FilledTiles(nest, across, first, lanes, several, scope));
    Append(scope, ScopeOf(Rows(lanes, [&](IndexId row, Scope& rows) {
             for (size_t i = 0; i < along.size(); ++i) {
               Append(rows, ScopeOf(Lanes(lanes, [&](IndexId lane, Scope& inside) {
                        inside = body;
                        // Loads of tiles are replaced first, while values have their old numbers.
                        VisitStatements(inside, [&](Statement& statement) {
                          statement.value = RewriteValues(
                              program_, statement.value,
                              [&](ValueId id) -> absl::optional<ValueId> {
                                const auto it = std::find(nest.loads.begin(), nest.loads.end(), id);
                                if (it == nest.loads.end()) return absl::nullopt;
                                const TensorId tile = tiles[i][it - nest.loads.begin()];
                                return program_.AddLoad(
                                    {tile, several ? IndexList{row, lane} : IndexList{lane, row}});
                              });
                        });
                        VarReplacement replace =
                            Replacement(nest, pool_.Add(across, row), pool_.Add(along[i], lane));
                        RewriteIndices(program_, inside, [&](IndexId e) { return replace(e); });
                      })));
             }
           })));
  }

  // By load: a tile with the elements that it reads. `transposed`: with columns as rows, so that a
  // next tile can be filled while only these are still needed.
  std::vector<TensorId> FilledTiles(const Nest& nest, IndexId across, IndexId along, int64_t lanes,
                                    bool transposed, Scope& scope) {
    std::vector<TensorId> tiles;
    for (ValueId load : nest.loads) {
      const DType type = program_[load].type;
      const TensorId tile = Declared("tile", type, lanes, scope);
      FillTile(tile, lanes, scope, [&](IndexId row, IndexId lane) {
        VarReplacement replace = Replacement(nest, pool_.Add(across, lane), pool_.Add(along, row));
        return RewriteIndices(program_, load, [&](IndexId e) { return replace(e); });
      });
      tiles.push_back(transposed ? Declared("columns", type, lanes, scope) : tile);
      if (!transposed) continue;
      FillTile(tiles.back(), lanes, scope, [&](IndexId row, IndexId lane) {
        return program_.AddLoad({tile, {lane, row}});
      });
    }
    return tiles;
  }

  TensorId Declared(absl::string_view name, DType type, int64_t lanes, Scope& scope) {
    const TensorId tile = program_.AddTensor({std::string(name),
                                              type,
                                              {pool_.Const(lanes), pool_.Const(lanes)},
                                              Storage::kTemp,
                                              ReduceOp::kSum,
                                              true});
    scope.push_back(DeclarationOf(tile));
    return tile;
  }

  // tile[row, lane] = value(row, lane), a vector for each row.
  void FillTile(TensorId tile, int64_t lanes, Scope& scope,
                absl::FunctionRef<ValueId(IndexId row, IndexId lane)> value) {
    Append(scope, ScopeOf(Rows(lanes, [&](IndexId row, Scope& rows) {
             Append(rows, ScopeOf(Lanes(lanes, [&](IndexId lane, Scope& inside) {
                      inside = Assignment(tile, {row, lane}, value(row, lane));
                    })));
           })));
  }

  VarReplacement Replacement(const Nest& nest, IndexId across, IndexId along) {
    VarReplacement replace(program_);
    replace.Set(nest.across->var, across);
    replace.Set(nest.along->var, along);
    return replace;
  }

  using Fill = absl::FunctionRef<void(IndexId index, Scope& inside)>;
  Loop Rows(int64_t lanes, Fill fill) { return Counted("r", lanes, kUnrolled, fill); }
  Loop Lanes(int64_t lanes, Fill fill) { return Counted("l", lanes, kVector, fill); }

  Loop Counted(absl::string_view name, int64_t count, LoopAttributes attributes, Fill fill) {
    Loop loop{program_.AddVar(name), pool_.Const(0), pool_.Const(count), 1, attributes, {}};
    fill(pool_.Var(loop.var), loop.body);
    return loop;
  }

  Program& program_;
  IndexPool& pool_;
  const jit::Isa isa_;
  Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> TransposeInTiles(Program& program, jit::Isa isa) {
  return TransposeTiles(program, isa).Run();
}

}  // namespace nestor::loop
