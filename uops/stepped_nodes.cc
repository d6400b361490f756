// Which nodes are steps follows from the Recurrence nodes: each names its whole system, and one view
// of a system is as good as another.
#include "uops/recurrence.h"

#include <utility>

namespace nestor {

SteppedNodes::SteppedNodes(const Graph& graph, const std::vector<bool>& live) {
  for (int i = 0; i < graph.size(); ++i) {
    const Recurrence* recurrence = live[i] ? graph.As<Recurrence>(NodeId{i}) : nullptr;
    if (recurrence == nullptr || !systems_.try_emplace(recurrence->carries[0]).second) continue;
    Steps steps = StepsOf(graph, *recurrence);
    axes_.insert(steps.axes.begin(), steps.axes.end());
    systems_[recurrence->carries[0]] = std::move(steps.nodes);
  }
}

int SteppedNodes::AxisOf(NodeId node) const {
  const auto it = axes_.find(node);
  return it == axes_.end() ? -1 : it->second;
}

}  // namespace nestor
