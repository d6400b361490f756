// Finds maxima and minima that cancel: values whose gradient is zero because the differentiated
// results do not depend on them. softmax(x) = exp(x - m) / sum(exp(x - m)) is the same for every m,
// so the ties of m = max(x) need no care.
#ifndef NESTOR_AUTODIFF_INVARIANCE_H_
#define NESTOR_AUTODIFF_INVARIANCE_H_

#include <vector>

#include "absl/types/span.h"
#include "uops/graph.h"

namespace nestor {

// The max and min reductions of `graph` on which none of `results` depends, in
// real arithmetic, however their value is chosen.
std::vector<NodeId> CancellingExtrema(const Graph& graph, absl::Span<const NodeId> results);

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_INVARIANCE_H_
