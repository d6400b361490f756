// Scalar ops on enclosures: the values that a row may give where its operands are sets.
#ifndef NESTOR_INTERP_REFERENCE_ROWS_H_
#define NESTOR_INTERP_REFERENCE_ROWS_H_

#include "absl/types/span.h"
#include "interp/enclosure.h"
#include "uops/scalar_op.h"

namespace nestor {

// Holds every value that the row can give, evaluated with the errors that it
// states (SEMANTICS 3), on members of `args`. `operand` and `target` are the types
// of operands and result, as in FunctionOf (uops/scalar_body.h).
//
// A product's enclosure holds its exact value as well as the rounded one, and sums
// use their operands as they are: so a product that feeds a sum may be contracted
// into an FMA. A row that returns an operand bit for bit, whatever its value, may be left out, so
// its enclosure holds that operand as it is: x * 1, x / 1, x - 0, x + -0, max(x, x), min(x, x), a
// cast to x's own type. Every other row rounds its operands to their type first.
//
// REQUIRES: the row takes `operand`; args.size() is its arity; each has a member.
Enclosure ApplyRow(ScalarOp op, DType operand, DType target, absl::Span<const Enclosure> args);

// The same for an application that a program holds, not a row's body, and that no discrete
// step sees: there, a quotient may also be the product with the rounded reciprocal
// (SEMANTICS 5, `fast`).
Enclosure ApplyInProgram(ScalarOp op, DType operand, DType target,
                         absl::Span<const Enclosure> args);

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_ROWS_H_
