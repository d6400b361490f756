// Adjacent axes that a program walks only together become one.
#ifndef NESTOR_FUSION_MERGE_AXES_H_
#define NESTOR_FUSION_MERGE_AXES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Where every access to a tensor walks two adjacent axes whole, one inside the other and by
// indices of their own, it and its loops have one axis instead:
//
//   program p(x: f32[N, C]) -> (y: f32[N, C]) { for i in [0, N) { for j in [0, C) { y[i, j] = exp(x[i, j]) } } }
//     ->
//   program p(x: f32[N*C]) -> (y: f32[N*C]) { for i in [0, N*C) { y[i] = exp(x[i]) } }
//
// and so on, until no two are left. The order of iterations stays, so no result changes in any bit.
// A loop over short rows, above all those of an image, becomes a long one: it fills vectors and
// tiles except for one tail, and splits evenly over threads.
//
// Arguments change their shapes, and denote the same memory where they are compact: this is no pass
// of a pipeline, but makes another program for calls with compact arguments. Equalities, checks and
// domains stay as they were. Returns whether it changed anything; if not, the program is untouched.
// REQUIRES: Verify accepts the program, no access is marked `checked` and nothing is prefetched;
// Verify accepts it afterwards.
bool MergeAxes(Program& program);

// The same for axes of temporaries that the loops around a sum of products walk so, where one
// factor of the products is shared by all their iterations; other accesses, which are proven in
// range along both axes, then compute their places:
//
//   temp t: f32[C, H, W]                                       temp t: f32[C, H*W]
//   for c { for i in [0, H) { for j in [0, W) {                for c { for i in [0, H*W) {
//     acc s: f32 = sum  for k { s += w[c, k]*u[k, i, j] }  ->    acc s: f32 = sum  for k { s += w[c, k]*u[k, i] }
//     t[c, i, j] = s                                             t[c, i] = s
//   } } }                                                      } }
//   for c { for j { z[c, j] = t[c, 2*i, j + 1] } }              for c { for j { z[c, j] = t[c, W*2*i + j + 1] } }
//
// So the short rows of an image become columns of one matrix product; with t[H, W, C], its points
// become rows of one. Arguments keep their shapes. Returns whether it changed anything; if not, the
// program is untouched. A second run changes nothing.
absl::StatusOr<bool> MergeRowsOfTemporaries(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_MERGE_AXES_H_
