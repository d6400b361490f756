// The entry of tiling: finds contractions (contraction.h), and replaces each by nests of register
// tiles (tiled_nest.h), in the one way that is fast at the sizes of the program's version:
//
//   nest  ->  tiled nest
//             tiled nest with rows and columns exchanged, where both operands lie along the sum,
//               and packing the one that would be in place costs less
//             dot tiles, where the sum is long and columns are few        # TileFewColumns only
//             the nest as it was, where rows are few
#include "jit/schedule/contraction_tiles.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "fusion/split_loops.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_orientation.h"
#include "jit/schedule/dot_tiles.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/operand_part.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/stored_whole.h"
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

// Replaces each contraction that is more than a tile by what `tiling` makes of it.
using TilingOf = absl::FunctionRef<absl::optional<Scope>(Ranges& ranges, const Contraction& nest,
                                                         const Loop& whole)>;
absl::StatusOr<bool> TileNests(Program& program, jit::Isa isa, TilingOf tiling) {
  Ranges ranges(program);
  // Tiles are no nests that this would find.
  const absl::flat_hash_set<TensorId> stored_whole = StoredWhole(program);
  const size_t tests = program.version.size();
  bool tiles = false, has_masks = false;
  const auto tiled = [&](Loop& loop) -> absl::optional<Scope> {
    const absl::optional<Contraction> nest = ContractionOf(program, loop, stored_whole);
    if (!nest || IsTiny(program, *nest, isa)) return absl::nullopt;
    const bool is_masked = HasComputedMasks(program, *nest);
    absl::optional<Scope> scope = tiling(ranges, *nest, loop);
    has_masks = has_masks || (scope && is_masked);
    return scope;
  };
  // A nest of few rows that is left as it was may be a contraction with another loop as its rows.
  // This ends: each such nest has one more loop that is proven to have few iterations.
  while (ReplaceLoops(program, ranges, tiled)) tiles = true;
  if (has_masks) NESTOR_RETURN_IF_ERROR(SplitLoops(program).status());
  return tiles || program.version.size() > tests;
}

}  // namespace

// A nest that is turned around runs with rows and columns exchanged.
absl::StatusOr<bool> TileContractions(Program& program, const ContractionTileOptions& options) {
  const auto tiling = [&](Ranges& ranges, const Contraction& nest,
                          const Loop& whole) -> absl::optional<Scope> {
    const int64_t lanes = jit::LanesOf(program[nest.accumulator].type, options.isa);
    const absl::optional<Contraction> other =
        TurnedAround(program, ranges, nest, lanes, options.bound);
    const auto is_quicker = [&] {
      return IsQuickerTurnedAround(program, ranges, nest, lanes, options.many_elements);
    };
    if (other && IsVersionFor(program, is_quicker(), options.version)) {
      absl::optional<Scope> turned = TiledNest(program, ranges, options, *other, whole);
      if (turned) return turned;
    }
    return TiledNest(program, ranges, options, nest, whole);
  };
  return TileNests(program, options.isa, tiling);
}

absl::StatusOr<bool> TileFewColumns(Program& program, const ContractionTileOptions& options) {
  const auto tiling = [&](Ranges& ranges, const Contraction& nest,
                          const Loop&) -> absl::optional<Scope> {
    const absl::optional<Contraction> few =
        WithFewColumns(program, ranges, nest, options.isa, options.bound);
    if (!few ||
        !IsVersionFor(program, IsLongSum(program, ranges, *few, options.isa), options.version)) {
      return absl::nullopt;
    }
    return DotTiles(program, ranges, *few, options.isa);
  };
  return TileNests(program, options.isa, tiling);
}

}  // namespace nestor::loop
