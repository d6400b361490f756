// Loops whose index is divided by a small number become one loop for each rest.
#ifndef NESTOR_JIT_SCHEDULE_SPLIT_RESIDUES_H_
#define NESTOR_JIT_SCHEDULE_SPLIT_RESIDUES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::jit {

//   for i in [0, N) { for j in [0, M) {
//     acc s: f32 = sum
//     for r in [0, (j + 1)/2 - j/2 + 1) { s += w[i, j%2 - 2*r + 1] * x[j/2 + r] }
//     y[i, j] = s
//   } }
//     ->
//   for i in [0, N) { for j in [0, (M + 1)/2) { ..  for r in [0, 1) { s += w[i, -2*r + 1] * x[j + r] }  y[i, 2*j] = s } }
//   for i in [0, N) { for j in [0, M/2) { ..  for r in [0, 2) { s += w[i, -2*r + 2] * x[j + r] }  y[i, 2*j + 1] = s } }
//
// where the bounds of a sum of products move with such a quotient: the gradient of a
// convolution with a stride. The loops of the nest carry no dependence, the divisor is a
// number below 9, and the loop begins at 0. Each sum keeps its steps and their order, so
// every bit stays.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> SplitResidues(loop::Program& program);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_SPLIT_RESIDUES_H_
