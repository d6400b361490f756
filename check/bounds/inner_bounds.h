// Makes from an op the op that computes inner bounds of its results: for each element two f64,
// low and high. Each value of the result's type in [low, high], -0 being below +0, lies in the
// enclosure that InterpretReference(Lower(op)) gives for the element. Where low > high, or one
// of them is not finite, nothing is known. A bool is 0 or 1; a NaN or an infinity is never known
// to be right.
//
// Why: inclusion is monotone. Each node's set is a subset of its enclosure, and each rule gives a
// subset of the set that the oracle's rule gives on sets that are as large or larger. Ends that a
// rule computes in f64 move inwards by a bound of its roundings. The rules are in inner_rows.h and
// inner_sums.h, the law in inner_set.h. The bounds are Higham's, as the oracle's are
// (docs/bounds.md); sets computed on their ends are Moore's interval analysis.
//
// The op may be compiled in any mode: its roundings are within what the rules allow for.
#ifndef NESTOR_CHECK_BOUNDS_INNER_BOUNDS_H_
#define NESTOR_CHECK_BOUNDS_INNER_BOUNDS_H_

#include "absl/status/statusor.h"
#include "uops/op.h"

namespace nestor {

// The arguments, $params and checks are op's. Its result i has two: 2i is its low ends, 2i + 1
// its high ends. Unimplemented, with the reason, where a result is f64, where the place of a
// scatter loads an integer that was made from a float, and where a step of a recurrence reads
// integers or bools of an earlier one.
absl::StatusOr<Op> InnerBounds(const Op& op);

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_INNER_BOUNDS_H_
