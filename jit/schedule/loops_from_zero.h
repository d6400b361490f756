// Loops over a part that moves count from the begin of the part.
#ifndef NESTOR_JIT_SCHEDULE_LOOPS_FROM_ZERO_H_
#define NESTOR_JIT_SCHEDULE_LOOPS_FROM_ZERO_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for q in [0, G) { .. for k in [q*M, min(K, q*M + M)) { s += x[k] } .. }
//     ->
//   for q in [0, G) { .. for k in [0, min(K - q*M, M)) { s += x[q*M + k] } .. }
//
// where the loop has a hull (contraction.h) only then: the steps of a group in the gradient of a
// grouped convolution, say, which are then the sum of a contraction, and whose operands can be
// copied.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> CountFromZero(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_LOOPS_FROM_ZERO_H_
