// Splits loops where affine conditions change.
#ifndef NESTOR_FUSION_SPLIT_LOOPS_H_
#define NESTOR_FUSION_SPLIT_LOOPS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Splits loops, outermost first, at the points where comparisons in their bodies (conditions and
// ranges of masked accesses, choices between values by index) become true or false: the borders of
// a pad, the halves of a concatenation; and those where an extreme in the place of a load changes
// from one argument to the other:
//
//   for v in [0, N + 1) { y[v] = x[v - 1 | 0.0] }
//     ->  for v in [0, min(N + 1, 1)) { y[v] = 0.0 }
//         for v in [1, N + 1) { y[v] = x[v - 1] }
//
// and leaves out what is decided in a piece. Where two points may pass each other at small sizes, a
// border of 8 places at most keeps the mask that is not decided there; the inside of a stencil has
// none. A piece that does nothing is removed: so a gate becomes a bound of its loop, and a loop
// nest with a causal mask becomes triangular. A sum of products is cut where all factors have the
// gate. Iterations keep their order, so every bit stays. Returns whether it changed anything; if
// not, the program is as it was.
//
// A loop is split into three pieces at most, before, between and after the points, and a piece in
// which an extreme remains is split into three again. Loops with a step other than 1 stay whole,
// and so do those whose pieces would make a nest grow by too many statements.
//
// REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> SplitLoops(Program& program);

// The same at the borders of windows over which anything but products is summed or compared, or
// products in few steps: where the bounds of the loops over the window, extremes that move with a
// loop around, change from one argument to the other, and where masked loads begin or cease to be
// in range at all places of the window; but not along their last axis, if each iteration of the
// loop goes up by one there, and windows inside have one size: lanes of the loop can be masked.
//
//   for v in [0, N) { acc m: f32 = max  for r in [max(1 - v, 0), min(N + 1 - v, 3)) { m max= x[v + r - 1] }  y[v] = m }
//     ->  for v in [0, min(N, 1)) { ..  for r in [1 - v, ..) { .. } }
//         for v in [1, max(N - 1, 1)) { ..  for r in [0, 3) { .. } }
//         ..
//
// So the inside has windows of known size, and masks that always hold. Borders, of 8 places at
// most, keep the masks that are not decided.
absl::StatusOr<bool> SplitWindows(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_SPLIT_LOOPS_H_
