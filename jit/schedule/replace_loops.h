// The walk shared by passes that replace nests by others, and what they ask about a nest.
#ifndef NESTOR_JIT_SCHEDULE_REPLACE_LOOPS_H_
#define NESTOR_JIT_SCHEDULE_REPLACE_LOOPS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// Calls `replace` for each loop of which nothing is scheduled (attributes.h), outer ones first,
// with `ranges` at its place. The scope that it returns replaces the loop and is not visited;
// nullopt: the loops inside are next. Returns whether any loop was replaced.
bool ReplaceLoops(Program& program, Ranges& ranges,
                  absl::FunctionRef<absl::optional<Scope>(Loop& loop)> replace);

// Whether no loop is around it.
bool IsOutermost(const Program& program, const Loop& loop);

// Whether the index is computed from an element of the tensor.
bool LoadsFrom(const IndexPool& pool, IndexId e, TensorId tensor);

// Whether a bound of the loop moves with the index of some loop.
bool BoundsMove(const IndexPool& pool, const Loop& loop);
// Whether one of them moves with that index.
bool BoundsMoveWith(const IndexPool& pool, const Loop& loop, int32_t var);

// Whether none of the loops of a perfect nest, from `outermost` to `innermost`, carries a
// dependence.
bool AreIndependent(const Program& program, const Loop& outermost, const Loop& innermost);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_REPLACE_LOOPS_H_
