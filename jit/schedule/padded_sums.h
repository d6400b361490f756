// Sums of products that end at the borders of an operand run on beyond them, where it is 0.
#ifndef NESTOR_JIT_SCHEDULE_PADDED_SUMS_H_
#define NESTOR_JIT_SCHEDULE_PADDED_SUMS_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

//   for i in [0, N) { for j in [0, M) {
//     acc s: f32 = sum
//     for r in [max(R - j - 1, 0), min(R, M - j)) { s += w[i, r] * x[j + r - R + 1] }
//     y[i, j] = s
//   } }
//     ->
//   for i in [0, N) { for j in [0, M) {
//     acc s: f32 = sum
//     for r in [0, R) { s += w[i, r] * x[j + r - R + 1 | 0] needed if R - j - 1 <= r, r < M - j }
//     y[i, j] = s
//   } }
//   acc not_a_number: i64 = max
//   for i in [0, N) { for j in [0, M) { not_a_number max= i64(y[i, j] != y[i, j]) } }
//   acc not_finite: i64 = max
//   for i in [0, N) { for r in [0, R) { drop not_finite if not_a_number[] == 1 max= i64(w[i, r] * 0 != 0) } }
//   for i in [0, N) { for j in [0, M) {
//     acc s: f32 = sum
//     for r in [max(R - j - 1, 0), min(R, M - j)) { drop s if not_finite[] == 1 += w[i, r] * x[j + r - R + 1] }
//     drop y[i, j] if not_finite[] == 1 = s
//   } }
//
// where this makes the nest a contraction with j for its column or row (contraction.h), which it is
// not as long as a sum's bounds move with j: the gradient of a convolution by its data. The added
// steps lie outside of x. They add a product with 0, or a sum of such products, to a sum that
// started at +0, and so is never -0: no bit changes unless w holds inf or NaN. Then some sum is
// NaN, and all are computed once more, as they were. The code tests a condition that is the same
// throughout a loop before the loop. Loops over images, on which w does not depend, stay around all
// this, if no other loop does: inside of a strip there is little to look through. Statements that
// set no factor may stand beside the sums: they run afterwards. `needed if` is there where it pays
// to leave padding out (LeavesOutPadding in zero_factor.h).
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> PadSums(Program& program, jit::Isa isa);

// The nest with sums that run on, where PadSums would make it a contraction by that: for passes
// that run before. Adds values to the program. REQUIRES: `ranges` is at the place of the nest.
absl::optional<Loop> RunningOn(Program& program, Ranges& ranges, const Loop& nest);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PADDED_SUMS_H_
