// Which values to keep from the forward pass and which to compute again is the central choice of
// reverse mode (Griewank and Walther, ch. 12). Here the choice is simple enough to be made
// greedily: no reduction may be recomputed that was not recomputed anyway.
//
// The less is given, the more is computed: live nodes stay live. So an attempt walks on only from
// the nodes that it drops, over nodes that are not live yet; if it succeeds, the nodes it reaches
// stay live, so each node becomes live only once. An attempt ends at the first obstacle; the nodes
// between it and the dropped node always lead there, and are marked hopeless.
#include "autodiff/recomputation.h"

namespace nestor {

Recomputation::Recomputation(const Graph& graph, int forward_size, absl::Span<const NodeId> results,
                             absl::Span<const NodeId> given)
    : graph_(graph), forward_size_(forward_size), live_(Reachable(graph, results, given)),
      given_(graph.size(), false), hopeless_(graph.size(), false), user_(graph.size()) {
  for (NodeId id : given) given_[id.value] = true;
}

std::vector<std::string> Recomputation::Missing() const {
  std::vector<std::string> missing;
  for (int i = 0; i < forward_size_; ++i) {
    const Input* input = graph_.As<Input>(NodeId{i});
    if (live_[i] && !given_[i] && input != nullptr) missing.push_back(input->name);
  }
  return missing;
}

bool Recomputation::Costs(NodeId id) const {
  if (hopeless_[id.value]) return true;
  if (id.value >= forward_size_) return false;
  return graph_.As<Input>(id) != nullptr || graph_.As<Reduce>(id) != nullptr ||
         graph_.As<Scatter>(id) != nullptr || graph_.As<Recurrence>(id) != nullptr;
}

// Tries to recompute `nodes` instead of being given them. Whatever this needs becomes live in turn,
// until the walk meets an obstacle, a node that must not be computed again; then all is undone.
bool Recomputation::Drop(absl::Span<const NodeId> nodes) {
  Attempt attempt;
  for (NodeId id : nodes) given_[id.value] = false;
  for (NodeId id : nodes) {
    user_[id.value] = NodeId();
    if (live_[id.value]) Compute(id, attempt);
  }
  while (!attempt.pending.empty() && !attempt.obstacle.valid()) {
    const NodeId id = attempt.pending.back();
    attempt.pending.pop_back();
    VisitOperands(graph_, id, [&](NodeId x) {
      if (live_[x.value]) return;
      live_[x.value] = true;
      user_[x.value] = id;
      attempt.reached.push_back(x);
      if (!given_[x.value]) Compute(x, attempt);
    });
  }
  if (!attempt.obstacle.valid()) return true;
  Undo(attempt, nodes);
  return false;
}

void Recomputation::Compute(NodeId id, Attempt& attempt) {
  if (Costs(id)) attempt.obstacle = id;
  else attempt.pending.push_back(id);
}

void Recomputation::Undo(const Attempt& attempt, absl::Span<const NodeId> nodes) {
  // If there are several nodes, each may be given while another is dropped: then nothing is final.
  for (NodeId id = attempt.obstacle; nodes.size() == 1 && id.valid(); id = user_[id.value])
    hopeless_[id.value] = true;
  for (NodeId id : attempt.reached) live_[id.value] = false;
  for (NodeId id : nodes) given_[id.value] = true;
}

}  // namespace nestor
