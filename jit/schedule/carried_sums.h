// Moves sums that one iteration of a nest hands on to the next out of nests that could
// run in parallel.
#ifndef NESTOR_JIT_SCHEDULE_CARRIED_SUMS_H_
#define NESTOR_JIT_SCHEDULE_CARRIED_SUMS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for i in [0, B) {                               for i in [0, B) {
//     for j in [0, N) {                               for j in [0, N) {
//       acc s: f32 = sum                                acc s: f32 = sum
//       for k in [0, K) { s += x[i, k]*w[k, j] }  ->    for k in [0, K) { s += x[i, k]*w[k, j] }
//       y[i, j] = s                                     y[i, j] = s
//       g[j] += y[i, j]                               } }
//   } }                                             for i_2 in [0, B) { for j_2 in [0, N) { g[j_2] += y[i_2, j_2] } }
//
// Fusion lets a sum join an existing walk, as the gradient by a bias joins the product that makes
// its operand. Where nothing else makes iterations depend on each other, and they do more for each
// element than sum it, these sums move after the nest. They read only elements that are in memory:
// their operand is an input, or was stored.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. Every sum keeps its order. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> MoveCarriedSums(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_CARRIED_SUMS_H_
