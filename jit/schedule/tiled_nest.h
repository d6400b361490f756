// A contraction in register tiles.
#ifndef NESTOR_JIT_SCHEDULE_TILED_NEST_H_
#define NESTOR_JIT_SCHEDULE_TILED_NEST_H_

#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_tiles.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// The scope that replaces the nest, which is all of `whole`; in the version for sizes with few rows,
// the nest as it was, with as few. nullopt where tiles do not pay: for rows that are known to be
// few, with columns that lie well. REQUIRES: `ranges` is at the place of the nest.
absl::optional<Scope> TiledNest(Program& program, Ranges& ranges,
                                const ContractionTileOptions& options, const Contraction& nest,
                                const Loop& whole);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TILED_NEST_H_
