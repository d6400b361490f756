// Products of an index by so large a number that their parts may overflow where they do not.
#ifndef NESTOR_FUSION_MULTIPLES_H_
#define NESTOR_FUSION_MULTIPLES_H_

#include "uops/index_expr.h"

namespace nestor::fusion {

// Whether `e` holds the loop index `var` in such a product. c*t, proven not to overflow, is legal
// where c*N - c*u - c, the same with t = N - u - 1 written out, may overflow, and c*(t + 3) for a
// t + 3 beyond the range. Nobody multiplies so; passes leave such an index as it is.
bool IsMultipliedByMuch(const IndexPool& pool, IndexId e, int64_t var);

}  // namespace nestor::fusion

#endif  // NESTOR_FUSION_MULTIPLES_H_
