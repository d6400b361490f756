// The forward half of activity analysis (Griewank and Walther, "Evaluating Derivatives", 2nd ed.,
// 2008): which values vary with the arguments. The other half, whether a value has an influence on
// the results, needs no analysis: the reverse walk reaches no other values.
//
// One pass over the nodes, the oldest first, finds all active ones of a program without
// recurrences. A carry is older than its body, so the pass is repeated until no body makes a
// further carry active.
#include "autodiff/activity.h"

#include <utility>

#include "autodiff/invariance.h"

namespace nestor {
namespace {

class ActivityAnalysis {
 public:
  ActivityAnalysis(const Op& op, int forward_size)
      : op_(op), graph_(op.graph), forward_size_(forward_size), active_(forward_size, false) {}

  // Nodes stand after their operands, so one pass in their order is enough but for carries, whose
  // bodies stand after them: the passes repeat until no carry becomes active. An extremum that the
  // results do not depend on, such as the maximum in a softmax, is no path and stays inactive.
  std::vector<bool> Run(absl::Span<const NodeId> results, absl::Span<const NodeId> wrt) {
    for (NodeId id : wrt) active_[id.value] = true;
    std::vector<bool> frozen(forward_size_, false);
    for (NodeId id : CancellingExtrema(graph_, results)) frozen[id.value] = true;
    do {
      for (int i = 0; i < forward_size_; ++i) {
        if (!frozen[i] && IsFloat(graph_.type(NodeId{i}))) FindActive(NodeId{i});
      }
    } while (ActivateCarries());
    return std::move(active_);
  }

 private:
  void FindActive(NodeId id) {
    const auto add = [&](NodeId x) { active_[id.value] = active_[id.value] || active_[x.value]; };
    const Map* map = graph_.As<Map>(id);
    if (map == nullptr || map->tag == 0) return VisitOperands(graph_, id, add);
    for (NodeId arg : op_.custom_calls[map->tag - 1].args) add(arg);
  }

  // A carry is active if its body is. Returns whether one was found that was not known to be.
  bool ActivateCarries() {
    bool changed = false;
    for (NodeId id : graph_.recurrences()) {
      if (id.value >= forward_size_) continue;
      const Recurrence& n = *graph_.As<Recurrence>(id);
      for (size_t k = 0; k < n.carries.size(); ++k) {
        if (!active_[n.bodies[k].value] || active_[n.carries[k].value]) continue;
        active_[n.carries[k].value] = changed = true;
      }
    }
    return changed;
  }

  const Op& op_;
  const Graph& graph_;
  const int forward_size_;
  std::vector<bool> active_;
};

}  // namespace

std::vector<bool> ActiveNodes(const Op& op, absl::Span<const NodeId> results,
                              absl::Span<const NodeId> wrt, int forward_size) {
  return ActivityAnalysis(op, forward_size).Run(results, wrt);
}

}  // namespace nestor
