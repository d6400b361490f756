// Decides which operand of a contraction fills the lanes, where either may.
#ifndef NESTOR_JIT_SCHEDULE_CONTRACTION_ORIENTATION_H_
#define NESTOR_JIT_SCHEDULE_CONTRACTION_ORIENTATION_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// Whether the tensor is an input that is frozen (`bound`, by input; empty: none is), so that what
// is computed from it alone is computed once.
bool IsBound(const Program& program, const std::vector<bool>& bound, TensorId tensor);

// The nest with rows and columns exchanged.
Contraction Exchanged(Contraction nest);

// Whether there are known to be two columns or more, but so few that they leave lanes empty.
bool HasFewColumns(const Program& program, const Contraction& nest, int64_t lanes);

// The nest with rows and columns exchanged, where all operands lie along the sum and none is bound:
// then one of them has to be copied for its elements to lie along lanes; or where columns are few,
// and elements of rows lie along the rows. nullopt for other nests. REQUIRES: `ranges` is at the
// place of the nest.
absl::optional<Contraction> TurnedAround(Program& program, Ranges& ranges, const Contraction& nest,
                                         int64_t lanes, const std::vector<bool>& bound);

// 1 at sizes where the nest is faster when turned around, else 0. `many_elements`: those of columns
// that are more than the caches hold.
IndexId IsQuickerTurnedAround(Program& program, Ranges& ranges, const Contraction& nest,
                              int64_t lanes, int64_t many_elements);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_CONTRACTION_ORIENTATION_H_
