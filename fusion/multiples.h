// Products of an index by so large a number that the product does not overflow but parts of it,
// written out, may.
#ifndef NESTOR_FUSION_MULTIPLES_H_
#define NESTOR_FUSION_MULTIPLES_H_

#include <cstdint>

#include "loop_ir/program.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

// Whether `item` multiplies the loop index `var` by such a number, and `by`, which is to take its
// place, is neither an index nor a constant. c*t, proven not to overflow, is legal where c*N - c*u
// - c, the same with t = N - u - 1 written out, may overflow, and c*(t + 3) for a t + 3 beyond the
// range. Such factors are rare; passes leave such an index as it is.
bool MovesLargeProduct(const Program& program, const Item& item, int32_t var, IndexId by);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_MULTIPLES_H_
