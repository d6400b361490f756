// Choices in sums of products become choices in one factor.
#ifndef NESTOR_JIT_SCHEDULE_GATED_SUMS_H_
#define NESTOR_JIT_SCHEDULE_GATED_SUMS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// In sums of products of which a condition takes some, as attention does with a mask:
//
//   for i { for j { acc s: f32 = sum
//     for k { s += where(m[i, k], x[i, k] * w[k, j], 0.0) }
//     y[i, j] = s } }
//     ->
//   temp gated: f32[I, K]
//   for i { for k { gated[i, k] = where(m[i, k], x[i, k], 0.0) } }
//   for i { for j { acc s: f32 = sum
//     for k { s += gated[i, k] * w[k, j] }
//     y[i, j] = s } }
//   .. where some y is NaN, and some w is inf or NaN, all is computed once more as it was ..
//
// if the condition and one factor do not move with a loop, here over j, with which the other factor
// does, and the other factor is the same in the iterations of a further loop: the choice is then
// made once for each of many products, which are left for multiply-adds. The memory for `gated` is
// small if the nest is inside of a loop over rows. Gradients have the same as
// mulz(where(m[i, k], w[k, j], 0.0), x[i, k]), which is where(m[i, k], mulz(w[k, j], x[i, k]), 0).
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> GateFactors(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_GATED_SUMS_H_
