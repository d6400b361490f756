// Invariant hoisting: a value that does not change in a loop is computed before it.
#ifndef NESTOR_FUSION_HOIST_H_
#define NESTOR_FUSION_HOIST_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Moves the largest expressions that hold no index of a loop (or of one inside) and
// read nothing that the loop changes into a temporary before it, out of as many
// loops as possible:
//
//   for i in [0, N) { y[i] = x[i] * rsqrt(v + $eps) }
//
// becomes  temp h: f32   h = rsqrt(v + $eps)   for i in [0, N) { y[i] = x[i] * h }.
//
// Only what may be computed even if the loop runs no iteration is moved: loads that are masked or
// whose place is proven in range, index values that are proven to have a value.
//
// Returns whether it changed anything; if not, the program is untouched. No result
// changes in any bit. A second run changes nothing. REQUIRES: Verify accepts the
// program; and so it does afterwards.
absl::StatusOr<bool> HoistInvariants(Program& program);

// The same for comparisons of 64-bit numbers, and casts of them to narrower types, alone: above all
// of indices and $params, out of loops inside others (not of those in a perfect nest but for its
// innermost). Beside f32, they would leave a loop half of its lanes.
absl::StatusOr<bool> HoistFromWide(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_HOIST_H_
