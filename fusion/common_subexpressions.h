// Common subexpressions: a value that a scope computes twice is computed once.
#ifndef NESTOR_FUSION_COMMON_SUBEXPRESSIONS_H_
#define NESTOR_FUSION_COMMON_SUBEXPRESSIONS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Where statements of one scope apply the same op to the same values more than once, and nothing
// that they read changes in between, the first keeps the value in a temporary that the others read:
//
//   y[i] = exp(x[i])   z[i] = exp(x[i]) + y[i]
//
// becomes  temp s: f32   s = exp(x[i])   y[i] = s   z[i] = s + s.  A value that was stored is known
// at its place, so it is not read back.
//
// Statements that may be dropped take no part: their value may only be evaluated
// where they are not.
//
// Returns whether it changed anything; if not, the program is untouched. No result
// changes in any bit. A second run changes nothing. REQUIRES: Verify accepts the
// program; and so it does afterwards.
absl::StatusOr<bool> EliminateCommonSubexpressions(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COMMON_SUBEXPRESSIONS_H_
