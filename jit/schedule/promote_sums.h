// Moves sums that are kept in memory while they grow back to registers.
#ifndef NESTOR_JIT_SCHEDULE_PROMOTE_SUMS_H_
#define NESTOR_JIT_SCHEDULE_PROMOTE_SUMS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for i in [0, N) {                                  for i in [0, N) {
//     g[i] = 0.0                                         acc a: f32 = sum
//     for j in [0, M) { y[i, j] = ..  g[i] += .. }  ->   for j in [0, M) { y[i, j] = ..  a += .. }
//   }                                                    g[i] = a
//                                                      }
//
// where an element begins with the reduction's initial value, and only the reduction touches its
// tensor until it is done. Fusion leaves such sums in memory where they shared a walk with others,
// which by now have loops of their own. Not done for arguments of extremes, nor for types that are
// narrower than a scalar of the reduction.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> PromoteSums(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PROMOTE_SUMS_H_
