// Activity analysis: finds the nodes whose adjoints a reverse walk has to compute. A node is active
// if it depends, through floats, on one that the program is differentiated by.
#ifndef NESTOR_AUTODIFF_ACTIVITY_H_
#define NESTOR_AUTODIFF_ACTIVITY_H_

#include <vector>

#include "absl/types/span.h"
#include "uops/op.h"

namespace nestor {

// Says for each node of op.graph below `forward_size` whether it is active. The nodes `wrt` are
// active. Maxima and minima that cancel in `results` (invariance.h) are not, unless they are in
// `wrt`.
// REQUIRES: `results` and `wrt` are below `forward_size`.
std::vector<bool> ActiveNodes(const Op& op, absl::Span<const NodeId> results,
                              absl::Span<const NodeId> wrt, int forward_size);

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_ACTIVITY_H_
