// Equal terms: a sum of n terms that are the same value is a product with n.
#ifndef NESTOR_FUSION_EQUAL_TERMS_H_
#define NESTOR_FUSION_EQUAL_TERMS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Where a loop adds a value that it does not change, once in each iteration,
//
//   for k in [b, e) { t[k] = h   s += h }      becomes
//   for k in [b, e) { t[k] = h }   for z in [0, min(max(e - b, 0), 1)) { s += h * f32(index(e - b)) }
//
// so that nothing is added where the loop runs no iteration. Applies to sums of f32 and f64 (a
// narrower float cannot hold the number of terms), and to max and min, which need no factor.
//
// *Reorders rounding*: a sum may differ as if added in another order (docs/semantics.md,
// section 5).
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> MultiplyEqualTerms(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_EQUAL_TERMS_H_
