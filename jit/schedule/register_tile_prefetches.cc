// Software prefetching (Mowry, Lam and Gupta, "Design and evaluation of a compiler algorithm for
// prefetching", 1992) where hardware does not follow: along rows of a panel that are far apart,
// steps of a window, and short pieces of rows. A prefetch takes a load slot, so only tiles that are
// large enough have them, and the lines of a block are shared out so that each is fetched about
// once: tiles below each other take turns (`turn`). A prefetch may lie beyond the tensor; it reads
// nothing then, and places need no proof.
#include "jit/schedule/register_tile_prefetches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "jit/schedule/access_moves.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"

namespace nestor::loop {

namespace {

// The fewest vectors of a tile in whose steps one more load takes no extra time. Steps of 6x2 tiles
// take six cycles: products of large matrices would take 1.05 of the time.
constexpr int64_t kLeastToFetch = 16;

// In loops of fewer steps, starting the loop would take a large part of the time.
constexpr int64_t kLeastSteps = 16;

// Whether the loads of a step leave time for one more.
bool IsLargeEnoughToFetch(TileGrid::Extent extent) {
  return extent.rows * extent.vectors >= kLeastToFetch;
}

}  // namespace

// Fetches columns of the next block of the sum. Hardware seldom predicts steps of windows, and
// memory, where copies of many columns are as well, is slower than the tiles that read them first.
// At each step a tile fetches one vector; tiles below each other take turns.
void RegisterTilePrefetches::NextBlock(Scope& sums, const TilePatch& patch,
                                       const TileSumBlock& part, size_t first_without_loop) {
  if (!IsLargeEnoughToFetch(patch.extent)) return;
  absl::optional<SumLoops> loops = LoopsOf(sums, first_without_loop);
  if (!loops) return;
  IndexId turn = pool_.Div(part.row, Const(patch.extent.rows));
  for (const IndexId around : part.around) turn = pool_.Add(turn, around);
  const IndexId vector = pool_.Add(patch.vector, pool_.Mod(turn, Const(patch.extent.vectors)));
  for (std::vector<IndexId>& step : loops->steps) {
    step[0] = pool_.Add(step[0], part.length);
    for (Access& access : packing_.ReadOfColumns({patch.row, vector, Const(0), step})) {
      AddPrefetch(*loops->innermost, std::move(access), Prefetch::Cache::kSecond);
    }
  }
}

// Fetches rows of the tile below, where they lie along the sum: they are so far apart, and each so
// short, that hardware does not predict them. The steps are divided into as many pieces as there
// are rows, and in each piece the tile fetches one row, advancing by that many elements at a step:
// places stay linear.
void RegisterTilePrefetches::NextRows(Scope& sums, const TilePatch& patch,
                                      const absl::optional<TileSumBlock>& part) {
  Loop* loop = nest_.sums.size() == 1 && sums.size() == 1 ? sums[0].As<Loop>() : nullptr;
  if (loop == nullptr || patch.rows_left || !IsLargeEnoughToFetch(patch.extent)) return;
  std::vector<const Contraction::Operand*> fetched;
  const IndexId below = pool_.Add(patch.row, Const(patch.extent.rows)), step = pool_.Var(loop->var);
  const auto at = [&](const Contraction::Operand& operand, IndexId row, IndexId k) {
    return packing_.ReadOf(operand, {row, Const(0), Const(0), {k}});
  };
  for (const Contraction::Operand& operand : nest_.rows) {
    if (IsAlong(program_, at(operand, below, step), *loop)) fetched.push_back(&operand);
  }
  if (fetched.empty()) return;
  const IndexId rows = Const(patch.extent.rows),
                steps = part ? part->length : packing_.LengthOfHull(0);
  const IndexId in_piece = pool_.Max(Const(kLeastSteps), OverUp(steps, rows));
  Loop piece = std::move(*loop);
  const IndexId begin = piece.begin;
  sums = make_.Counted("r", rows, kPlain, [&](IndexId row) {
    piece.begin = pool_.Add(begin, pool_.Mul(in_piece, row));
    piece.end = pool_.Min(piece.end, pool_.Add(piece.begin, in_piece));
    const IndexId k = pool_.Add(begin, pool_.Mul(rows, pool_.Sub(step, piece.begin)));
    for (const Contraction::Operand* operand : fetched) {
      AddPrefetch(piece, at(*operand, pool_.Add(below, row), k), Prefetch::Cache::kSecond);
    }
    return ScopeOf(std::move(piece));
  });
}

// nullopt if all steps are written out.
absl::optional<RegisterTilePrefetches::SumLoops> RegisterTilePrefetches::LoopsOf(
    Scope& sums, size_t first_without_loop) {
  SumLoops loops{nullptr, {{}}};
  Scope* scope = &sums;
  for (size_t depth = 0; depth < first_without_loop; ++depth) {
    Loop* loop = OnlyLoopIn(*scope);
    if (loop == nullptr) return absl::nullopt;
    if (!loop->attributes.unroll) loops.innermost = loop;
    loops.steps = StepsOf(*loop, loops.steps);
    scope = &loop->body;
  }
  for (size_t depth = first_without_loop; depth < nest_.sums.size(); ++depth) {
    Loop steps{nest_.sums[depth]->var, Const(0), packing_.LengthOfHull(depth), 1, kUnrolled, {}};
    loops.steps = StepsOf(steps, loops.steps);
  }
  return loops.innermost != nullptr ? absl::make_optional(loops) : absl::nullopt;
}

// `around`, each with the steps of the loop, which is written out, or with its index.
std::vector<std::vector<IndexId>> RegisterTilePrefetches::StepsOf(
    const Loop& loop, const std::vector<std::vector<IndexId>>& around) {
  const bool unrolls = loop.attributes.unroll;
  const int64_t count = unrolls ? *KnownLength(program_, loop) : 1;
  std::vector<std::vector<IndexId>> steps;
  for (const std::vector<IndexId>& outer : around) {
    for (int64_t i = 0; i < count; ++i) {
      steps.push_back(outer);
      steps.back().push_back(unrolls ? pool_.Add(loop.begin, Const(i)) : pool_.Var(loop.var));
    }
  }
  return steps;
}

// The topmost tile of the next block would wait for its columns: rows of memory are too far apart
// for hardware to predict. At each step a tile fetches one of the vectors of the tile at its place
// in the next block, of the sum or else of columns; tiles below each other take turns. Returns
// whether it does.
bool RegisterTilePrefetches::NextPanel(Loop& sum, const TilePatch& patch,
                                       const absl::optional<TileSumBlock>& part,
                                       const TileBelow& below) {
  if (sum.attributes.unroll || !IsLargeEnoughToFetch(patch.extent)) return false;
  const IndexId vectors = Const(patch.extent.vectors);
  const IndexId turn = pool_.Mod(pool_.Add(below.in_block, pool_.Sub(vectors, Const(1))), vectors);
  IndexId vector = pool_.Add(patch.vector, turn), step = pool_.Var(sum.var);
  if (part) {
    const IndexId more = part->HasMore(pool_);
    // From the last block of the sum back to the first: in this form no factors of a product move.
    const IndexId back = pool_.Mul(part->length, pool_.Sub(Const(1), part->count));
    vector = pool_.Add(vector, pool_.Mul(pool_.Sub(Const(1), more), below.block_vectors));
    step = pool_.Add(step, pool_.Add(back, pool_.Mul(more, pool_.Sub(part->length, back))));
  } else {
    vector = pool_.Add(vector, below.block_vectors);
  }
  for (Access& access : packing_.ReadForPanel({patch.row, vector, Const(0), {step}})) {
    AddPrefetch(sum, std::move(access), Prefetch::Cache::kSecond);
  }
  return true;
}

// 1 for as many tiles of a block, below its topmost one, as it takes to fetch each line once, else
// 0: each step fetches from a page of its own, and looking up pages takes time. Nothing is fetched
// for a next block of the sum that is in the panel already.
IndexId RegisterTilePrefetches::FetchesNextPanel(TileGrid::Extent extent,
                                                 const absl::optional<TileSumBlock>& part,
                                                 const TileBelow& below) {
  const auto is_from = [&](int64_t tile) {
    return pool_.Min(Const(1), pool_.Div(below.in_block, Const(tile)));
  };
  const IndexId has_turn = pool_.Sub(is_from(1), is_from(extent.vectors + 1));
  if (!part) return has_turn;
  const IndexId has_panel = pool_.Min(Const(1), below.before);
  return pool_.Min(has_turn, pool_.Sub(Const(1), pool_.Min(part->HasMore(pool_), has_panel)));
}

}  // namespace nestor::loop
