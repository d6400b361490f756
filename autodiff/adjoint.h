// Reverse accumulation over a micro-op graph.
#ifndef NESTOR_AUTODIFF_ADJOINT_H_
#define NESTOR_AUTODIFF_ADJOINT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "uops/op.h"

namespace nestor {

struct Seed {
  NodeId result;   // of the forward program
  NodeId adjoint;  // of the same type and shape
};

// Adds to op.graph the adjoints of the nodes `wrt` (all older than the seeds' adjoints, floats)
// and returns them; an adjoint to which nothing flows is invalid. Errors name the node that has
// no gradient.
absl::StatusOr<std::vector<NodeId>> Adjoints(Op& op, absl::Span<const Seed> seeds,
                                             absl::Span<const NodeId> wrt);

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_ADJOINT_H_
