// The entry of tiling: finds contractions (contraction.h), and replaces each by nests of register
// tiles (tiled_nest.h). The nest is kept or tiled in one orientation or the other depending on the
// sizes of a call, by bounds that are empty where another nest runs:
//
//   nest  ->  tiled nest, runs if not turned
//             tiled nest with rows and columns exchanged, runs if turned
//             dot tiles, run if the sum is long and columns few        # TileFewColumns only
//             the nest as it was, runs if rows are few
//
// Where both operands lie along the sum, the sizes of a call decide which of them is packed, and so
// which loop fills the lanes: then there are two nests in tiles. Exactly one of the nests has
// iterations at any sizes: the flags `runs` that they get exclude each other and cover all sizes.
#include "jit/schedule/contraction_tiles.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/split_loops.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_orientation.h"
#include "jit/schedule/dot_tiles.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/operand_part.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/tiled_nest.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/ranges.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// The most rows, and steps of the sum, of a product that is less than a tile.
constexpr int64_t kTinyRows = 8, kTinySteps = 16;

// Whether the product is known to be less than a tile: a copy of its columns would be read once.
// Where columns do not lie side by side, it has no lanes then, so it must be small.
bool IsTiny(const Program& program, const Contraction& nest, jit::Isa isa) {
  const int64_t lanes = jit::LanesOf(program[nest.accumulator].type, isa);
  const auto at_most = [&](const Loop& loop, int64_t most) {
    const auto length = KnownLength(program, loop);
    return length && *length <= most;
  };
  const bool lie_along = absl::c_all_of(nest.columns, [&](const Contraction::Operand& operand) {
    return IsAlong(program, AccessOf(program, operand), *nest.column);
  });
  return at_most(*nest.row, kTinyRows) &&
         at_most(*nest.column, lie_along ? lanes - 1 : lanes / 4) &&
         absl::c_all_of(nest.sums, [&](const Loop* sum) { return at_most(*sum, kTinySteps); });
}

// Whether copies are computed from masked elements: most of their elements need no mask.
bool HasComputedMasks(const Program& program, const Contraction& nest) {
  const auto is_masked = [&](const Contraction::Operand& operand) {
    return ComputesOfMasked(program, operand.read);
  };
  return absl::c_any_of(nest.rows, is_masked) || absl::c_any_of(nest.columns, is_masked);
}

// `sums_in_lanes`: takes only nests with few columns.
absl::StatusOr<bool> TileNests(Program& program, const ContractionTileOptions& options,
                               bool sums_in_lanes) {
  Ranges ranges(program);
  IndexPool& pool = program.pool;
  bool has_masks = false;
  const auto tiling_of = [&](const Contraction& nest, const Loop& loop, IndexId runs,
                             bool may_be_few) {
    return TiledNest(program, ranges, options, nest, loop, runs, may_be_few);
  };
  // `runs`: whether the nest runs, 0 or 1.
  const auto tiled_by_columns = [&](const Contraction& nest, const Loop& loop,
                                    IndexId runs) -> absl::optional<Scope> {
    const int64_t lanes = jit::LanesOf(program[nest.accumulator].type, options.isa);
    const absl::optional<Contraction> other =
        TurnedAround(program, ranges, nest, lanes, options.bound);
    const IndexId is_turned =
        other ? IsQuickerTurnedAround(program, ranges, nest, lanes) : pool.Const(0);
    // Rows that are more than twice as many as columns are not few.
    absl::optional<Scope> turned =
        other ? tiling_of(*other, loop, OnlyIf(pool, runs, is_turned), false) : Scope();
    if (!turned) return tiling_of(nest, loop, runs, true);
    absl::optional<Scope> scope =
        tiling_of(nest, loop, OnlyIf(pool, runs, pool.Sub(pool.Const(1), is_turned)), true);
    if (scope) Append(*scope, *std::move(turned));
    return scope;
  };
  const auto tiled = [&](Loop& loop) -> absl::optional<Scope> {
    const absl::optional<Contraction> nest = ContractionOf(program, loop);
    if (!nest || IsTiny(program, *nest, options.isa)) return absl::nullopt;
    absl::optional<Contraction> few;
    if (sums_in_lanes) few = WithFewColumns(program, ranges, *nest, options.isa, options.bound);
    const IndexId in_lanes = few ? IsLongSum(program, ranges, *few, options.isa) : pool.Const(0);
    if (sums_in_lanes && pool.IsConst(in_lanes, 0)) return absl::nullopt;
    has_masks = has_masks || HasComputedMasks(program, *nest);
    absl::optional<Scope> scope = tiled_by_columns(*nest, loop, pool.Sub(pool.Const(1), in_lanes));
    if (scope && few) Append(*scope, DotTiles(program, ranges, *few, options.isa, in_lanes));
    return scope;
  };
  bool changed = false;
  // A nest of few rows that is left as it was may be a contraction with another loop as its rows.
  // This ends: each such copy has one more loop that is proven to have few iterations.
  while (ReplaceLoops(program, ranges, tiled)) changed = true;
  if (changed && has_masks) NESTOR_RETURN_IF_ERROR(SplitLoops(program).status());
  return changed;
}

}  // namespace

absl::StatusOr<bool> TileContractions(Program& program, const ContractionTileOptions& options) {
  return TileNests(program, options, /*sums_in_lanes=*/false);
}
absl::StatusOr<bool> TileFewColumns(Program& program, const ContractionTileOptions& options) {
  return TileNests(program, options, /*sums_in_lanes=*/true);
}

}  // namespace nestor::loop
