// Short sums of narrow integers in i32.
#ifndef NESTOR_JIT_SCHEDULE_NARROW_SUMS_H_
#define NESTOR_JIT_SCHEDULE_NARROW_SUMS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// An i64 accumulator that only adds casts of booleans and of integers whose range is known, in so
// few steps that no sum leaves i32, becomes one of i32: beside f32, lanes of i64 halve the number of
// lanes. No result changes in any bit, as sums of integers are exact. Returns whether it changed
// anything; if not, the program is untouched. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> NarrowSums(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_NARROW_SUMS_H_
