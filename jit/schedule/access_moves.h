// How an access moves with loops: what it depends on, and how its elements lie along them.
#ifndef NESTOR_JIT_SCHEDULE_ACCESS_MOVES_H_
#define NESTOR_JIT_SCHEDULE_ACCESS_MOVES_H_

#include <cstddef>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// Whether the access is another at another step of the loop.
bool DependsOn(const loop::Program& program, const loop::Access& access, const loop::Loop& loop);

// Whether the index is another at another step of some of the loops.
bool MovesWithAny(const IndexPool& pool, IndexId e, absl::Span<const loop::Loop* const> loops);

// The only axis along which the loop moves the place; nullopt: there are several, or none.
absl::optional<size_t> OnlyAxisAlong(const loop::Program& program, const IndexList& place, const loop::Loop& loop);

// Whether the access goes from element to element with the loop: along the last axis that is not known to have one.
bool IsAlong(loop::Program& program, const loop::Access& access, const loop::Loop& loop);

// Whether all that statements of the scope store goes from element to element with the loop; scalars apart.
bool StoresLieAlong(loop::Program& program, const loop::Scope& scope, const loop::Loop& loop);

// Whether the loop moves the last axis, by a number of elements, and no other.
bool MovesLastAlone(loop::Program& program, const loop::Access& access, const loop::Loop& loop);

// Whether a window over which the sums run slides over the access with the loop: both move along an axis.
bool SlidesAlong(const loop::Program& program, const loop::Access& access, const std::vector<const loop::Loop*>& sums,
                 const loop::Loop& loop);

// Whether the rows of an operand lie side by side in a temporary, as those of an image do in its copy: so close to
// each other at all steps that tiles read them there, where an iteration of a batch loop has a part of it.
bool AreRowsOfTemporary(loop::Program& program, const loop::Access& access, const loop::Loop& row);

// Whether a copy of what such loops read has each element once: no condition masks it, and each axis moves with one of
// them at most.
bool IsReadOnce(const loop::Program& program, const loop::Access& access, absl::Span<const loop::Loop* const> loops);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_ACCESS_MOVES_H_
