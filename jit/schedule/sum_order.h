// Sums over windows move around the others.
#ifndef NESTOR_JIT_SCHEDULE_SUM_ORDER_H_
#define NESTOR_JIT_SCHEDULE_SUM_ORDER_H_

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for c in [0, C) { for r in [0, R) { s += w[o, c, r] * x[c, i + r] } }     # i in [0, N - R + 1)
//     ->
//   for r in [0, R) { for c in [0, C) { s += w[o, c, r] * x[c, i + r] } }
//
// in each nest that ContractionOf finds, so that the innermost loop is a long one. And where a sum
// of few steps is around one whose bounds move with a batch loop, due to padding (trimmed_sums.h),
// the two change places, so that the few steps can be written out:
//
//   for r in [0, 3) { for q in [max(0, 1 - h), min(Q, H + 1 - h)) { .. } }
//     ->
//   for q in [max(0, 1 - h), min(Q, H + 1 - h)) { for r in [0, 3) { .. } }
//
// In small tiles (where padding is not left out: zero_factor.h), such a sum comes even before long
// ones: the innermost long loop then steps over one row of a window, which is written out.
//
// The order of the sums changes, and with it their rounding.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> SumWindowsFirst(Program& program, jit::Isa isa);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SUM_ORDER_H_
