// Division of sums of atoms by sums of atoms.
#ifndef NESTOR_UOPS_INDEX_ATOM_DIVISION_H_
#define NESTOR_UOPS_INDEX_ATOM_DIVISION_H_

#include <utility>

#include "absl/types/optional.h"
#include "uops/index/atom_sum.h"

namespace nestor {

// Quotient and remainder of the division by leading terms: sum = first * divisor + second, no term
// of `second` being divisible by the divisor's first term; both inexact where either of the two is,
// or the quotient is too long. REQUIRES: the divisor is not zero.
std::pair<AtomSum, AtomSum> DividedBy(const AtomSum& sum, const AtomSum& divisor);
// sum / divisor where that leaves nothing.
absl::optional<AtomSum> ExactQuotient(const AtomSum& sum, const AtomSum& divisor);

}  // namespace nestor

#endif  // NESTOR_UOPS_INDEX_ATOM_DIVISION_H_
