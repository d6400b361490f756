// Loops whose index is divided by a small number are unrolled by it.
#ifndef NESTOR_JIT_SCHEDULE_UNROLL_DIVIDED_H_
#define NESTOR_JIT_SCHEDULE_UNROLL_DIVIDED_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for i in [0, N) { y[i] = x[i/2, i%2] }
//     ->
//   for i in [0, N/2) { y[2*i] = x[i, 0]  y[2*i + 1] = x[i, 1] }
//   for i in [2*(N/2), N) { y[i] = x[i/2, i%2] }
//
// where the divisor is a number below 9, the loop begins at a multiple of it and holds only
// statements that assign, with little work: it can then run in lanes. The order of iterations stays.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> UnrollDivided(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_UNROLL_DIVIDED_H_
