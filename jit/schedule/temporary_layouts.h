// The axis of a temporary along which products are summed goes last.
#ifndef NESTOR_JIT_SCHEDULE_TEMPORARY_LAYOUTS_H_
#define NESTOR_JIT_SCHEDULE_TEMPORARY_LAYOUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "jit/runtime/cpu_features.h"
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
// then go along k and o, of which there are many, whatever the number of points in an image is;
// points are rows of tiles, each of which lies together. Contractions (contraction.h) say which
// axis goes last: of what they read beside a bound input, the one along which they sum, and of what
// they store or read at the end, the one that moves with the bound input alone. Other statements
// want the same of all that they touch at the same index.
//
// What only one contraction touches stays as it is, and so do: a temporary of which two want
// different axes, or with few elements along the axis, which would leave lanes empty; and what
// other windows go over, as in pooling, which run in lanes along rows. Arguments keep their shapes.
// Loops stay where they are; MergeRowsOfTemporaries then makes one of those over points.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and
// so it does afterwards.
absl::StatusOr<bool> LayOutTemporaries(Program& program, jit::Isa isa,
                                       const std::vector<bool>& bound);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TEMPORARY_LAYOUTS_H_
