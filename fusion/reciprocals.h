// Reciprocals: a division by a value that a loop does not change becomes a product.
#ifndef NESTOR_FUSION_RECIPROCALS_H_
#define NESTOR_FUSION_RECIPROCALS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// x / s becomes x * recip(s) where s is invariant in the innermost loop around and x is not:
// hoisting then computes recip(s) once a loop, and a product is several times faster than a
// division. Applies to f32 and f64; in a 16-bit float, a reciprocal rounded to the type would lose
// too much. Does not apply to a quotient that reaches a discrete step, such as a floor or a
// comparison (loop_ir/discrete_steps.h): there the last bit decides.
//
// *Reorders rounding*: a result may differ by one more rounding (docs/semantics.md, section 5).
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> UseReciprocals(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_RECIPROCALS_H_
