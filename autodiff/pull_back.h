// The adjoint of a read: its elements' contributions to the adjoint of the tensor that is read.
#ifndef NESTOR_AUTODIFF_PULL_BACK_H_
#define NESTOR_AUTODIFF_PULL_BACK_H_

#include "autodiff/algebra.h"
#include "uops/graph.h"

namespace nestor {

// The axes along which a read and the tensor that it reads are stepped alike (recurrence.h); -1:
// there are none.
struct StepAxes {
  int read = -1, x = -1;
};

// The adjoint of x, which has the shape `x_shape`, where g is the adjoint of x[place], a read
// without conditions. In a recurrence it is stepped along the same axis of x.
NodeId PullBack(Graph& graph, Algebra& algebra, NodeId g, const IndexList& place,
                const Shape& x_shape, const StepAxes& step);

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_PULL_BACK_H_
