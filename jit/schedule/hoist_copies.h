// A temporary that a loop fills in each iteration, with the same elements each time, is filled
// before the loop.
#ifndef NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_
#define NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for p in [0, P) {                            temp t: f32[K]
//     temp t: f32[K]                             for k in [0, min(K, ..)) { t[k] = w[3*k] }   # 0 where P is
//     for k in [0, K) { t[k] = w[3*k] }    ->    for p in [0, P) {
//     for k in [0, K) { y[p, k] = t[k] }           for k in [0, K) { y[p, k] = t[k] }
//   }                                            }
//
// for temporaries that only these loops write, before anything else touches them: packed operands
// of contractions, above all. Computations before a loop that runs no iteration must not fail:
// places are proven to be in range without it. Copies move out of as many loops as possible.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> HoistCopies(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_
