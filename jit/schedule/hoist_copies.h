// A temporary that a loop fills in each iteration, with the same elements each time, is filled
// before the loop.
#ifndef NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_
#define NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for p in [0, P) {                         temp t: f32[K]
//     temp t: f32[K]                          for k in .. { t[k] = w[3*k] }   # none where P is 0
//     for k in .. { t[k] = w[3*k] }     ->    for p in [0, P) {
//     for k in .. { y[p, k] = t[k] }            for k in .. { y[p, k] = t[k] }
//   }                                         }
//
// for temporaries that only these loops write, before anything else touches them: packed operands
// of contractions, above all. Computations before a loop that runs no iteration must not fail:
// places are proven to be in range without it. Copies move out of as many loops as possible. One
// that moves with an inner loop of at most 16 iterations alone gets an axis for it, unless the
// outer loop is known to have at most one iteration:
//
//   for p in [0, P) {                         temp t: f32[4, K]
//     for i in [0, 4) {                       for i in .. { for k in .. { t[i, k] = w[i, 3*k] } }
//       temp t: f32[K]                        for p in [0, P) {
//       for k in .. { t[k] = w[i, 3*k] }  ->    for i in [0, 4) {
//       for k in .. { y[p, i, k] = t[k] }         for k in .. { y[p, i, k] = t[i, k] }
//     }                                         }
//   }                                         }
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> HoistCopies(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_
