// Values that have the same bits in every program that computes them.
#ifndef NESTOR_AUTODIFF_REPEATABLE_H_
#define NESTOR_AUTODIFF_REPEATABLE_H_

#include <vector>

#include "uops/graph.h"

namespace nestor {

// Not thread-safe.
class RepeatableValues {
 public:
  // `graph` outlives this and may only grow.
  explicit RepeatableValues(const Graph& graph) : graph_(graph) {}

  // Whether two programs that compute the node from the same inputs give it the same bits, in
  // `fast` mode, too: on no way from an input to it is a float rounded twice (scalar_rounding.h).
  bool Contains(NodeId id);

 private:
  // Of the node itself, apart from its operands.
  int RoundingsOf(NodeId id) const;

  const Graph& graph_;
  std::vector<int> roundings_;  // the most on a way to each node, at most kManyRoundings
};

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_REPEATABLE_H_
