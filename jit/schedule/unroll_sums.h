// Short reductions of known length are written out.
#ifndef NESTOR_JIT_SCHEDULE_UNROLL_SUMS_H_
#define NESTOR_JIT_SCHEDULE_UNROLL_SUMS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for i in [0, N) { acc s: f32 = sum  for r in [0, 3) { s += w[r] * x[i + r] }  y[i] = s }
//     ->
//   for i in [0, N) { temp s: f32  s = 0.0 + w[0] * x[i] + w[1] * x[i + 1] + w[2] * x[i + 2]  y[i] = s }
//
// where a reduction has 25 steps at most, in one or several loops, and each step is little work:
// then the loop around runs in lanes, without a loop of three steps inside. The order of the steps
// stays, and so does every bit. Of a sum of at most 121 steps over a window with masked loads, the
// innermost loop is written out:
//
//   for r in [0, 7) { for q in [0, 7) { s += w[r, q] * x[h + r - 3, i + q - 3 | 0.0] } }
//     ->
//   for r in [0, 7) { s += w[r, 0] * x[h + r - 3, i - 3 | 0.0]  s += w[r, 1] * ..  .. }
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> UnrollSums(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_UNROLL_SUMS_H_
