// Operands of contractions whose elements may lie outside of a tensor, or that windows slide over,
// are copied first, including the elements outside.
#ifndef NESTOR_JIT_SCHEDULE_PADDED_VIEWS_H_
#define NESTOR_JIT_SCHEDULE_PADDED_VIEWS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for n in [0, B) { for o in [0, O) { for i in [0, N) {
//     acc s: f32 = sum  for r in [0, R) { s += w[o, r] * x[n, i + r - 1 | 0.0] }  y[n, o, i] = s
//   } } }
//     ->
//   for n in [0, B) {
//     temp view: f32[N + R + 16]       # whole vectors can be read to the last place
//     for t in [0, 1) { view[t] = 0 }  for t in [1, N + 1) { view[t] = x[n, t - 1] }  ..
//     for o, i { acc s: f32 = sum  for r in [0, R) { s += w[o, r] * view[i + r] }  y[n, o, i] = s }
//   }
//
// for each operand of a nest that ContractionOf finds that is masked, that leaves its tensor at
// steps that the sums' hulls have and the sums do not, or that windows slide over column by column
// (to be read in place: a packed copy would hold each element several times); and for masked
// windows of a nest that WindowsOf finds, which then runs in lanes, but not windows of known size
// that lanes can read in place, each with a mask (IsMaskedInLanes). Places must be linear in the
// indices of its rows or columns and of the sums, and conditions must not contain these indices.
// Where windows overlap along the innermost batch loop, too, strips of it share a view, longer
// strips where there are few kernels; where it is known to be short, or is a strip itself, all of
// it shares one, and so on for the loop around it. Nests of one loop, as of a strip, that read the
// same elements share a view as large as the largest. That the copy is small is an assumption of
// the program (AssumeFewElements). Each element is masked once, not once for each place of a
// window, and the inside of the copy, cut from its borders by SplitLoops, not at all. In the copy,
// rows lie one after the other; but side by side for columns that are read at each place of a
// window around, and whose results lie across. Rows of channels, which lie along the sum, do not
// begin at large powers of two, so that those of a tile fit the first cache together.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> MaterializePaddedViews(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PADDED_VIEWS_H_
