// Sums of products of narrow integers, two steps at once.
#ifndef NESTOR_JIT_SCHEDULE_PAIRED_STEPS_H_
#define NESTOR_JIT_SCHEDULE_PAIRED_STEPS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// In a contraction that sums, in i32, products of two operands whose values fit 16 bits, a word
// with the values of two steps replaces each operand, and the dot product of both words
// replaces two products:
//
//   for k in [0, K) { acc += i32(a[i, k]) * i32(b[k, j]) }
//     ->
//   for k in [0, (K + 1)/2) { acc += dot_halves(word(a[i, 2*k], a[i, 2*k + 1 | 0]), word(..), 0) }
//
// with word(x, y) = (x & 0xffff) | (y << 16). Packed operands, and those copied to a padded view,
// consist of these words. If the number of steps is odd, a half of the last word is 0.
//
// Exact: integers wrap, in whatever order they are summed. Returns whether it changed anything; a
// second run changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> PairSteps(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PAIRED_STEPS_H_
