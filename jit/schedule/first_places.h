// The place of the largest element as two reductions that have lanes.
#ifndef NESTOR_JIT_SCHEDULE_FIRST_PLACES_H_
#define NESTOR_JIT_SCHEDULE_FIRST_PLACES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Makes an argmax (or argmin) the maximum, and then the least position at which it stands:
//
//   acc best: f32 = argmax
//   for j { best argmax= (x[i, j], index(j)) }
//     ->
//   temp best: i64
//   acc extreme: f32 = max
//   for j { extreme max= x[i, j] }
//   acc first: i64 = min
//   for j { first min= where(x[i, j] == extreme || x[i, j] != x[i, j], index(j), i64(2^63 - 1)) }
//   best = where(first == i64(2^63 - 1), i64(-1), first)
//
// A pair of a value and its position makes each step wait for the one before it; a maximum and a
// minimum are in lanes, and shared out to threads. An element that cannot be computed again with
// the same bits at little cost is stored, in a temporary with an element for each step of the
// loops. The argmax stays where that has no extents known before the loops around it, or these walk
// along memory, so that each of their lanes can have an argmax of its own.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> FindFirstPlaces(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_FIRST_PLACES_H_
