// The range of numbers in which an integer of a program lies.
#ifndef NESTOR_JIT_SCHEDULE_INTEGER_RANGE_H_
#define NESTOR_JIT_SCHEDULE_INTEGER_RANGE_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "loop_ir/interval.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"
#include "uops/dtype.h"

namespace nestor::loop {

// REQUIRES: an integer type but u64.
Interval RangeOf(DType type);

// The range of elements of at most 16 bits, of constants, and of indices that are the same
// throughout and proven to be narrow, as a $param with a range; of their sums and differences, and
// casts of these. nullopt: not known, or the arithmetic may wrap. REQUIRES: `ranges` is at the
// place of the value.
absl::optional<Interval> RangeOf(Program& program, Ranges& ranges, ValueId id);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_INTEGER_RANGE_H_
