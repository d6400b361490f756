// Recurrences: tensors whose elements at one step of an axis are computed from elements at
// earlier steps of it (SEMANTICS 1).
//
// A recurrence is a system of equations. Inside it, a *carry* represents each tensor that is read
// at an earlier step; the equation says which node that tensor is:
//
//   carry y: f32[N]           y = carry[i - 1] + x[i]
//
// Nodes that depend on a carry have a meaning inside the equations only; outside, such a node is
// represented by a Recurrence of it. A Settler makes these, in a canonical form:
//  - computations that a step need not do are not part of the system: an equation of one system
//    depends on every carry of it, directly or not (the strongly connected components of the
//    equations), and all other nodes that mention a carry are computed from whole tensors, outside;
//  - two systems that are the same except for the names of their carries are one system.
//
// The *steps* of a system are the nodes that depend on a carry and that an equation depends on.
// Each has one axis along which it is stepped; a carry is read there at the index of that axis
// minus a constant (or a $param), or plus it if the system runs backward; every other step is read
// at the index itself.
#ifndef NESTOR_UOPS_RECURRENCE_H_
#define NESTOR_UOPS_RECURRENCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/graph.h"

namespace nestor {

struct Equation {
  NodeId carry;
  NodeId body;  // of the carry's type and shape
};

// The nodes of one system of equations, in topological order, and the axis along which each is
// stepped. The carries are not among them.
struct Steps {
  std::vector<NodeId> nodes;
  absl::flat_hash_map<NodeId, int> axes;
};
// REQUIRES: the system is that of a Recurrence of `graph`.
Steps StepsOf(const Graph& graph, const Recurrence& recurrence);

// The steps of all systems in a graph.
class SteppedNodes {
 public:
  // Of those systems that a Recurrence among the nodes `live` (by number) is of.
  SteppedNodes(const Graph& graph, const std::vector<bool>& live);

  // The steps of one of these systems, in topological order.
  const std::vector<NodeId>& Of(const Recurrence& recurrence) const {
    return systems_.at(recurrence.carries[0]);
  }
  // The axis along which a step is stepped; -1 for other nodes.
  int AxisOf(NodeId node) const;

 private:
  absl::flat_hash_map<NodeId, std::vector<NodeId>> systems_;  // by the first carry
  absl::flat_hash_map<NodeId, int> axes_;
};

// Why these are no equations, or do not define `tensors`: a node that is no carry, a carry with two
// equations or none, another type or shape, a step that does not follow the rule; "" where they
// are. `is_lag`: says whether a number of steps by which a carry is read back is at least 1.
std::string EquationsMisuse(Graph& graph, absl::Span<const Equation> equations,
                            absl::Span<const NodeId> tensors,
                            absl::FunctionRef<bool(IndexId)> is_lag);

// How far before the index of axis `axis` a place on a stepped axis is: place = index - lag where
// it runs forward, index + lag backward. nullopt where the lag is neither a constant nor an
// expression of $params and dimensions, or is a constant below 1.
absl::optional<IndexId> LagOf(IndexPool& pool, IndexId place, int axis, bool backward);

class Settler {
 public:
  // All carries that nodes given to Settle depend on have an equation. REQUIRES: each equation's
  // type and shape are its carry's, its steps follow the rule above; `graph` outlives this.
  Settler(Graph& graph, std::vector<Equation> equations);
  ~Settler();

  // The node for x outside the equations.
  NodeId Settle(NodeId x);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_RECURRENCE_H_
