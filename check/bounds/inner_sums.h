// Reductions and scatters of inner sets.
#ifndef NESTOR_CHECK_BOUNDS_INNER_SUMS_H_
#define NESTOR_CHECK_BOUNDS_INNER_SUMS_H_

#include "absl/functional/function_ref.h"
#include "check/bounds/inner_set.h"
#include "uops/graph.h"

namespace nestor {

// Accumulates a node: a reduction over some axes, or a scatter to some places. Each term is
// accumulated into only one element.
using Accumulate = absl::FunctionRef<NodeId(ReduceOp op, NodeId x)>;

// The set of values that accumulating members of `x` in any order gives: a subset of the oracle's
// set (interp/reference_sum.h). `type` is x's type, a float type; op is sum, prod, max or min.
FloatSet InnerAccumulation(Doubles& f64, ReduceOp op, DType type, const FloatSet& x,
                           Accumulate accumulate);

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_INNER_SUMS_H_
