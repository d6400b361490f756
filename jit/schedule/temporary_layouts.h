// The axis of a temporary along which products are summed becomes the last one.
#ifndef NESTOR_JIT_SCHEDULE_TEMPORARY_LAYOUTS_H_
#define NESTOR_JIT_SCHEDULE_TEMPORARY_LAYOUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   temp t: f32[K, H, W]                                      temp t: f32[H, W, K]
//   for k { for i in [0, H) { for j in [0, W) {               for k { for i in [0, H) { for j in [0, W) {
//     acc s: f32 = sum  for c { s += w[k, c]*x[c, i, j] }       acc s: f32 = sum  for c { s += w[k, c]*x[c, i, j] }
//     t[k, i, j] = max(s, 0)                            ->      t[i, j, k] = max(s, 0)
//   } } }                                                     } } }
//   for o { for i in [0, H) { for j in [0, W) {               for o { for i in [0, H) { for j in [0, W) {
//     acc s: f32 = sum  for k { s += v[o, k]*t[k, i, j] }       acc s: f32 = sum  for k { s += v[o, k]*t[i, j, k] }
//     y[o, i, j] = s                                            y[o, i, j] = s
//   } } }                                                     } } }
//
// where w and v are bound (`bound`, by input; empty: none is), so that they are packed once: lanes
// then run along k and o, which are long, whatever the number of points in an image is; points are
// rows of tiles, each contiguous. Contractions (contraction.h) say which axis comes last: in a
// temporary that they read beside a bound input, the one along which they sum; in one that they
// store or read at the end, the one that moves with the bound input alone. Other statements want
// the same axis last in all that they touch at the same index.
//
// A temporary keeps its layout if only one contraction touches it, if two want different axes last,
// if it has few elements along the axis, which would leave lanes empty, or if other windows slide
// over it, as in pooling, which run in lanes along rows. Arguments keep their shapes. Loops stay
// where they are; MergeRowsOfTemporaries then merges those over points.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and
// so it does afterwards.
absl::StatusOr<bool> LayOutTemporaries(Program& program, jit::Isa isa,
                                       const std::vector<bool>& bound);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TEMPORARY_LAYOUTS_H_
