// Scalar ops on inner sets.
#ifndef NESTOR_CHECK_BOUNDS_INNER_ROWS_H_
#define NESTOR_CHECK_BOUNDS_INNER_ROWS_H_

#include "absl/types/span.h"
#include "check/bounds/inner_set.h"
#include "uops/scalar_op.h"

namespace nestor {

// The set of values that the row gives on members of `args`, a subset of the enclosure that
// interp/reference_rows.h gives on their enclosures. `operand` and `target` are the types of
// operands and result, as in FunctionOf (uops/scalar_body.h). An f64's set is the value that the
// row gives. REQUIRES: the row takes `operand`; args are its operands' sets, of one shape.
InnerSet InnerRow(Doubles& f64, ScalarOp op, DType operand, DType target,
                  absl::Span<const InnerSet> args);

// The set for a div that an op holds and that no discrete step sees: the quotients, and the
// products with the rounded reciprocals.
FloatSet InnerQuotient(Doubles& f64, DType type, const FloatSet& a, const FloatSet& b);

// The set for a transcendental row, on the accumulator's type of `type`.
FloatSet InnerTranscendental(Doubles& f64, ScalarOp op, DType type,
                             absl::Span<const FloatSet> args);

// The set for a select by `condition` between two operands of `type`.
InnerSet InnerChoice(Doubles& f64, DType type, const TruthSet& condition, const InnerSet& a,
                     const InnerSet& b);

// The conjunction of two bools, one of which may be missing.
NodeId KnownBoth(Doubles& f64, NodeId a, NodeId b);

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_INNER_ROWS_H_
