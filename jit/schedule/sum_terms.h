// Gives sums over an index that rows and columns share loops of their own, with one statement.
#ifndef NESTOR_JIT_SCHEDULE_SUM_TERMS_H_
#define NESTOR_JIT_SCHEDULE_SUM_TERMS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for k in [0, K) {                               for k in [0, K) { s += (x[i, k] - w[k, j])*(x[i, k] - w[k, j]) }
//     temp h: f32  h = x[i, k] - w[k, j]     ->     for k_2 in [0, K) { r += x[i, k_2]*v[k_2, j] }
//     s += h*h
//     r += x[i, k]*v[k, j]
//   }
//
// where one of the sums has factors that move with one loop around it and factors that move with
// another, so that it may become a contraction (contraction.h). A tensor that a loop declares moves
// with it: a normalized row, say, of which two layers are computed. Fusion computes each value once,
// and walks once what two sums read; doing both twice costs less than a sum without register tiles.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> SeparateSums(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SUM_TERMS_H_
