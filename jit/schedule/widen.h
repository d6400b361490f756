// Finds where a loop may run more iterations than a program asks for.
#ifndef NESTOR_JIT_SCHEDULE_WIDEN_H_
#define NESTOR_JIT_SCHEDULE_WIDEN_H_

#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// The minimum and maximum of the expression for the index `var` from `first` to `last`; nullopt
// where the expression is not known to be monotonic in it.
struct Extremes {
  IndexId least, greatest;
};
absl::optional<Extremes> ExtremesOver(Program& program, IndexId e, int32_t var, IndexId first,
                                      IndexId last);

// Whether the places of all accesses in the loop are in range, or masked, whatever is around it:
// all of its iterations could run there, whether the program asks for them or not.
bool IsInRange(Program& program, Ranges& ranges, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_WIDEN_H_
