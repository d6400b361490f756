// Which parts of the forward program a gradient program recomputes, depending on the values of it
// that are given.
#ifndef NESTOR_AUTODIFF_RECOMPUTATION_H_
#define NESTOR_AUTODIFF_RECOMPUTATION_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "uops/graph.h"

namespace nestor {

class Recomputation {
 public:
  // The nodes below `forward_size` are the forward program's; `results` are computed from the nodes
  // `given`. REQUIRES: `graph` outlives this and does not change.
  Recomputation(const Graph& graph, int forward_size, absl::Span<const NodeId> results,
                absl::Span<const NodeId> given);

  // The forward program's inputs that are needed and not given, by name, in order.
  std::vector<std::string> Missing() const;

  // Whether these nodes need not be given: without them no input is missing, and every reduction of
  // the forward program that is recomputed was recomputed before. If so, they are no longer given.
  // All calls for a program together take time about linear in its size.
  bool Drop(absl::Span<const NodeId> nodes);

 private:
  // One attempt to do without some nodes.
  struct Attempt {
    std::vector<NodeId> reached, pending;
    NodeId obstacle;  // what must not be computed
  };
  // Whether it must not be computed again: an input, a reduction, a scatter or a recurrence.
  bool Costs(NodeId id) const;
  // Marks it as one whose operands are needed, or as the attempt's obstacle.
  void Compute(NodeId id, Attempt& attempt);
  void Undo(const Attempt& attempt, absl::Span<const NodeId> nodes);

  const Graph& graph_;
  const int forward_size_;
  std::vector<bool> live_;  // reached from the results; given nodes end the walk
  std::vector<bool> given_;
  std::vector<bool> hopeless_;  // cannot be computed without an obstacle, ever again
  std::vector<NodeId> user_;    // by node reached in the last attempt: the node it was reached from
};

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_RECOMPUTATION_H_
