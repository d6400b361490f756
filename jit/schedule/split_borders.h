// The borders of a nest, where its sums have fewer steps, apart from its inside.
#ifndef NESTOR_JIT_SCHEDULE_SPLIT_BORDERS_H_
#define NESTOR_JIT_SCHEDULE_SPLIT_BORDERS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::jit {

//   for i in [0, N) { for j in [0, M) {
//     acc s: f32 = sum
//     for r in [max(R - j - 1, 0), min(R, M - j)) { s += w[i, r] * x[j + r - R + 1] }
//     y[i, j] = s
//   } }
//     ->
//   for i in [0, N) { for j in [0, min(M, R - 1)) { .. } }
//   for i in [0, N) { for j in [max(R - 1, 0), M - R + 1) { ..  for r in [0, R) { .. } .. } }
//   for i in [0, N) { for j in [max(R - 1, M - R + 1, 0), M) { .. } }
//
// where the nest in the middle is a contraction with j for its column or row (contraction.h),
// which it is not as long as a sum's bounds move with j: the gradient of a convolution by its
// data. What is left over is cut along other loops likewise.
// The bounds are maxima and minima of two, one of which moves with j by one. Each sum keeps
// its steps and their order, so every bit stays.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> SplitBorders(loop::Program& program);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_SPLIT_BORDERS_H_
