// Loops whose steps run one after the other, since each step reads what earlier ones wrote.
#ifndef NESTOR_JIT_SCHEDULE_STEPS_H_
#define NESTOR_JIT_SCHEDULE_STEPS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Where the steps run along memory and the rows inside of them do not, the loop over rows moves
// outside: each row is walked from end to end, and all rows in parallel.
//
//   for t in [1, C) {                          for n in [0, N) {
//     for n in [0, N) {                          for t in [1, C) {
//       y[n, t] = y[n, t - 1] + x[n, t]   ->       y[n, t] = y[n, t - 1] + x[n, t]
//     }                                          }
//   }                                          }
//
// No iteration of n reads what another wrote, so no result changes in any bit.
absl::StatusOr<bool> MoveStepsInside(Program& program);

// A value that one step writes and the next one reads stays in a register.
//
//                                              temp last: f32
//                                              last = y[0 | 0.0 if 1 < C]
//   for t in [1, C) {                          for t in [1, C) {
//     y[t] = y[t - 1] + x[t]            ->       temp now: f32
//   }                                            now = last + x[t]
//                                                y[t] = now
//                                                last = now
//                                              }
absl::StatusOr<bool> KeepLastStep(Program& program);

// Both return whether they changed anything; a second run changes nothing.
// REQUIRES: Verify accepts the program; and so it does afterwards.

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_STEPS_H_
