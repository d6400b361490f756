// Reductions into rows, and rows of windows, take several rows at a time.
#ifndef NESTOR_JIT_SCHEDULE_UNROLL_AND_JAM_H_
#define NESTOR_JIT_SCHEDULE_UNROLL_AND_JAM_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Each result is loaded and stored once for four values instead of for each:
//
//   for k in [0, K) { for c in [0, C) { a[c] += x[k, c] } }
//     ->
//   for k in [0, K/4) { for c in [0, C) {
//     a[c] = a[c] + x[4*k, c] + x[4*k + 1, c] + x[4*k + 2, c] + x[4*k + 3, c]
//   } }
//   for k in [4*(K/4), K) { for c in [0, C) { a[c] += x[k, c] } }
//
// Rows on one page are read faster one by one: where C may be so small, the first loop ends at
// min(K/4, 2^32 * (C/1024)), which is 0 then, and the second loop takes all rows.
//
// Rows whose results are computed from overlapping windows are taken together as well, so that
// elements that several rows read are loaded once:
//
//   for h in [0, H) { for c in [0, C) { y[h, c] = x[h, c] + x[h + 1, c] + x[h + 2, c] } }
//     ->
//   for h in [0, H/4) { for c in [0, C) {
//     y[4*h, c] = x[4*h, c] + x[4*h + 1, c] + x[4*h + 2, c]
//     y[4*h + 1, c] = x[4*h + 1, c] + x[4*h + 2, c] + x[4*h + 3, c]  ..
//   } }
//   for h in [4*(H/4), H) { .. }
//
// except in loops that threads will share together with the loop around.
//
// Every element is still reduced in the same order, so no result changes in any bit.
// (Unroll-and-jam; Callahan, Carr and Kennedy, "Improving register allocation for
// subscripted variables", 1990.)
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> UnrollAndJam(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_UNROLL_AND_JAM_H_
