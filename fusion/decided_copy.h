// A copy of a loop's body for a part of its range.
#ifndef NESTOR_FUSION_DECIDED_COPY_H_
#define NESTOR_FUSION_DECIDED_COPY_H_

#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// The condition that a bool value made of comparisons of index values, && || and ! amounts to;
// nullopt for any other value, and for gathered indices.
absl::optional<IndexId> ConditionOf(Program& program, ValueId value);

// Whether the statement adds its op's identity to an accumulator, which started there.
bool ChangesNothing(const Program& program, const Statement& statement);

// The loop `loop` without what `ranges`, which has entered it, decides: a load out of range
// becomes its fill, a load in range is unmasked, a choice becomes one of its arms; dropped
// stores, accumulations that change nothing, and what they leave empty are removed. nullopt if
// nothing is left.
//
// With `fresh`, all loop indices and tensors that it declares are new ones.
absl::optional<Loop> DecidedCopy(Program& program, Ranges& ranges, const Loop& loop, bool fresh);
// The same, with loop indices and tensors of its own, for a loop that `ranges` has not entered yet.
absl::optional<Loop> FreshCopy(Program& program, Ranges& ranges, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_DECIDED_COPY_H_
