// Sums that are kept in memory while they grow, back in registers.
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
// where an element begins at what the reduction begins with, and nothing but the reduction touches
// its tensor until it is done. Fusion leaves such sums where they stood in a walk with others,
// which are apart from them by now. Not for arguments of extremes, nor for types that a scalar of
// the reduction is wider than.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> PromoteSums(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PROMOTE_SUMS_H_
