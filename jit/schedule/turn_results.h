// Results of a contraction whose rows windows slide along, or fill few lanes, are summed across
// these rows, and transposed afterwards; results that lie apart are summed side by side.
#ifndef NESTOR_JIT_SCHEDULE_TURN_RESULTS_H_
#define NESTOR_JIT_SCHEDULE_TURN_RESULTS_H_

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for n in [0, B) { for o in [0, O) { for i in [0, N) {
//     acc s: f32 = sum  for r in [0, 3) { s += w[o, r] * x[n, i + r - 1 | 0.0] }  y[n, o, i] = max(s, b[o])
//   } } }
//     ->
//   for n in [0, B) {
//     temp turned: f32[N, O]
//     for i in [0, N) { for o in [0, O) {
//       acc s: f32 = sum  for r in [0, 3) { s += w[o, r] * x[n, i + r - 1 | 0.0] }  turned[i, o] = s
//     } }
//     for o in [0, O) { for i in [0, N) { y[n, o, i] = max(turned[i, o], b[o]) } }
//   }
//
// for nests that ContractionOf finds, with windows of known size; where rows of known length leave
// many lanes of their last vector idle; or where a temporary is contiguous along the sum, not along
// columns, while kernels lie side by side or are bound (`bound`, by input; empty: none is), so that
// they are packed once: else there is as much to pack either way. Lanes along the row of an image
// are partly idle beside whole vectors, and load each element once for each place in a window. The
// number of kernels, O, is free, and most often fills whole vectors; `w` is packed for them, once
// for all images, and single elements of `x` are broadcast to all lanes. The schedule does so by
// itself (contraction_tiles.h) where results lie side by side along o. Where the numbers are known,
// the nest is changed only if that fills more lanes.
//
// Where windows slide along the innermost batch loop, too, and kernels are the same at each of its
// iterations, strips of it share the transposed results (and then views, padded_views.h, and the
// columns of a block, contraction_tiles.h):
//
//   for h in [0, H) { .. }  ->  for p in [0, 2*ceil(H/16)) { temp turned: f32[T, N, O]       T: H / (2*ceil(H/16)) rounded up
//                                 for h in [T*p, min(H, T*p + T)) { for i { for o { .. } } }
//                                 for o { for h in [T*p, min(H, T*p + T)) { for i { .. } } } }
//
// Where every second element is a result, as in the gradient of a convolution with a stride, and an
// operand's rows lie one after the other, results are gathered, as nothing else keeps rows apart:
//
//   for o in [0, O) { for i in [0, H) { for j in [0, W) {
//     acc s: f32 = sum  for c { s += w[c, o] * t[c, i, j] }  y[o, 2*i, 2*j] = s
//   } } }
//     ->
//   temp gathered: f32[O, H, W]
//   for o, i, j { acc s: f32 = sum  for c { s += w[c, o] * t[c, i, j] }  gathered[o, i, j] = s }
//   for o, i, j { y[o, 2*i, 2*j] = gathered[o, i, j] }
//
// Short rows are then columns of one product (MergeRowsOfTemporaries), if `t` is a temporary.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> TurnResults(Program& program, jit::Isa isa,
                                 const std::vector<bool>& bound = {});

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TURN_RESULTS_H_
