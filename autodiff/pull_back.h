// The adjoint of a read: what its elements hand back to the tensor that is read.
#ifndef NESTOR_AUTODIFF_PULL_BACK_H_
#define NESTOR_AUTODIFF_PULL_BACK_H_

#include "autodiff/algebra.h"
#include "uops/graph.h"

namespace nestor {

// The axes of a read and of what it reads along which both are stepped alike (recurrence.h);
// -1: there are none.
struct StepAxes {
  int read = -1, x = -1;
};

// The adjoint of x, of the shape `x_shape`, where g is that of x[place], read without conditions.
// In a recurrence it is stepped along the same axis of x.
NodeId PullBack(Graph& graph, Algebra& algebra, NodeId g, const IndexList& place,
                const Shape& x_shape, const StepAxes& step);

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_PULL_BACK_H_
