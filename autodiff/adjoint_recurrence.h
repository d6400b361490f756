// The adjoint of one recurrence, while its steps are visited in reverse.
#ifndef NESTOR_AUTODIFF_ADJOINT_RECURRENCE_H_
#define NESTOR_AUTODIFF_ADJOINT_RECURRENCE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "autodiff/algebra.h"
#include "autodiff/pull_back.h"
#include "uops/graph.h"
#include "uops/recurrence.h"

namespace nestor {

// A summand of the adjoint of a node.
struct Contribution {
  NodeId to, adjoint;
  uint8_t mask;  // AdjointMasks
};

// First each read of a carry that takes part is announced (Expect), then the adjoints of these
// reads, as they become known, are handed back; at the end come the equations.
class AdjointRecurrence {
 public:
  // Computes the values of the steps once more, outside of the recurrence. REQUIRES: all outlive
  // this; `forward` is a Recurrence of `graph`, which `algebra` builds nodes of.
  AdjointRecurrence(Graph& graph, Algebra& algebra, const Recurrence& forward);

  // In topological order, without the carries.
  const std::vector<NodeId>& steps() const { return steps_.nodes; }
  // Whether it is a step or a carry.
  bool Holds(NodeId x) const { return values_.contains(x); }
  // The value of a step or carry, seen from outside; of another node, the node itself.
  NodeId ValueOf(NodeId x) const;
  // The same for what an index expression loads.
  IndexId ValueOf(IndexId e) const;
  // The axes along which a step and a node that it reads are stepped.
  StepAxes AxesOf(NodeId step, NodeId x) const;

  // The carry that the step reads at an earlier step; invalid if it does not.
  NodeId CarryReadBy(NodeId step) const;
  // REQUIRES: `step` reads a carry. What all such reads of the carry at this lag give to the
  // adjoint of the node that it stands for; nullopt where another read gave it.
  absl::optional<Contribution> Expect(NodeId step);
  bool Expects(NodeId step) const { return reads_.contains(step); }
  // Adds the adjoint of a read that is expected, 0 where the read's conditions do not hold.
  void HandBack(NodeId step, NodeId adjoint);
  // The equations of the adjoints that were handed back.
  std::vector<Equation> Equations();

 private:
  // The sum that all reads of one carry at one lag hand back: their adjoints, at their own steps,
  // in the places of the carry. Its elements reach the carry's body one lag earlier.
  struct HandedBack {
    NodeId from;  // the carry
    IndexId lag;
    Equation equation;
  };

  void FindValues();
  bool HoldsMulz() const;

  Graph& graph_;
  IndexPool& pool_;
  Algebra& algebra_;
  const Recurrence& forward_;
  const Steps steps_;
  absl::flat_hash_map<NodeId, NodeId> values_;  // of steps and carries, seen from outside
  std::vector<HandedBack> handed_;
  absl::flat_hash_map<NodeId, size_t> reads_;  // to which of these each adds
};

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_ADJOINT_RECURRENCE_H_
