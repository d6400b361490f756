// How an access moves with loops: what it depends on, and how its elements lie along them.
#ifndef NESTOR_JIT_SCHEDULE_ACCESS_MOVES_H_
#define NESTOR_JIT_SCHEDULE_ACCESS_MOVES_H_

#include <cstddef>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Whether the access differs from step to step of the loop.
bool DependsOn(const Program& program, const Access& access, const Loop& loop);

// Whether the index differs from step to step of any of the loops.
bool MovesWithAny(const IndexPool& pool, IndexId e, absl::Span<const Loop* const> loops);

// The only axis along which the loop moves the place; nullopt if there are several, or none.
absl::optional<size_t> OnlyAxisAlong(const Program& program, const IndexList& place,
                                     const Loop& loop);

// Whether each step of the loop moves the access to the next element along the last axis that is
// not known to have a single element.
bool IsAlong(const Program& program, const Access& access, const Loop& loop);

// Whether all stores of statements of the scope move from element to element with the loop, except
// those to scalars.
bool StoresLieAlong(const Program& program, const Scope& scope, const Loop& loop);

// Whether the loop moves the last axis, by a number of elements, and no other.
bool MovesLastAlone(const Program& program, const Access& access, const Loop& loop);

// Whether a window over which the sums run slides over the access with the loop: both move
// along an axis.
bool SlidesAlong(const Program& program, const Access& access, const std::vector<const Loop*>& sums,
                 const Loop& loop);

// Whether the rows of an operand lie side by side in a temporary, as those of an image do in its
// copy. They are so close to each other at all steps that tiles read them there, where an iteration
// of a batch loop has a part of it.
bool AreRowsOfTemporary(const Program& program, const Access& access, const Loop& row);

// Whether a copy of what these loops read has each element once: no condition masks it, and each
// axis moves with at most one of them.
bool IsReadOnce(const Program& program, const Access& access, absl::Span<const Loop* const> loops);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_ACCESS_MOVES_H_
