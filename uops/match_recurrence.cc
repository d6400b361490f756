// Whether two cyclic systems are equal is a question of bisimulation: they are, unless a difference
// is found from some pair of nodes that must be equal. So a pair that is being compared counts as
// equal (Hopcroft and Karp's test of automata, 1971, without its merging of classes).
//
// Two nodes match where their ops, types, shapes and operands match, so one walk visits both
// systems at once. Equations refer to each other through carries, and the walk follows a carry to
// its body; it ends nevertheless, because it compares each pair of nodes once.
#include "uops/match_recurrence.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"

namespace nestor {
namespace {

class Matching {
 public:
  Matching(const Graph& graph, absl::Span<const NodeId> carries, absl::Span<const NodeId> bodies,
           const Recurrence& other)
      : graph_(graph), pool_(graph.pool()), carries_(carries), bodies_(bodies), other_(other) {}

  // The node of `other` for each node of the first system, whose first equation is number j there;
  // nullopt where they differ.
  absl::optional<absl::flat_hash_map<NodeId, NodeId>> From(size_t j) {
    Pair(bodies_[0], other_.bodies[j]);
    while (!open_.empty() && same_) {
      const auto [ours, theirs] = open_.back();
      open_.pop_back();
      Compare(ours, theirs);
    }
    if (!same_) return absl::nullopt;
    return std::move(images_);
  }

 private:
  // Nodes outside of both systems must be the same node.
  void Pair(NodeId ours, NodeId theirs) {
    if (ours == theirs) return;
    const auto [image, is_new] = images_.try_emplace(ours, theirs);
    const auto source = sources_.try_emplace(theirs, ours).first;
    same_ = same_ && image->second == theirs && source->second == ours;
    if (is_new) open_.emplace_back(ours, theirs);
  }

  void Compare(NodeId ours, NodeId theirs) {
    const Node &a = graph_[ours], &b = graph_[theirs];
    same_ = same_ && a.type == b.type && a.shape == b.shape && a.op.index() == b.op.index();
    if (same_) absl::visit([&](const auto& op) { CompareOps(op, ours, theirs); }, a.op);
  }

  template <class Op>
  const Op& Theirs(const Op&, NodeId theirs) const {
    return *graph_.As<Op>(theirs);
  }

  void CompareOps(const Index& a, NodeId, NodeId theirs) {
    ComparePlaces({a.expr}, {Theirs(a, theirs).expr});
  }
  void CompareOps(const Reindex& a, NodeId, NodeId theirs) {
    const Reindex& b = Theirs(a, theirs);
    Pair(a.x, b.x);
    Pair(a.fill, b.fill);
    ComparePlaces(a.place, b.place);
    ComparePlaces(a.conditions, b.conditions);
  }
  void CompareOps(const Map& a, NodeId, NodeId theirs) {
    const Map& b = Theirs(a, theirs);
    same_ = same_ && a.op == b.op && a.tag == b.tag && a.args.size() == b.args.size();
    for (size_t i = 0; same_ && i < a.args.size(); ++i) Pair(a.args[i], b.args[i]);
  }
  void CompareOps(const Reduce& a, NodeId, NodeId theirs) {
    const Reduce& b = Theirs(a, theirs);
    same_ = same_ && a.op == b.op && a.count == b.count;
    Pair(a.x, b.x);
  }
  void CompareOps(const Scatter& a, NodeId, NodeId theirs) {
    const Scatter& b = Theirs(a, theirs);
    same_ = same_ && a.op == b.op;
    Pair(a.x, b.x);
    ComparePlaces(a.place, b.place);
  }
  // Each must be a carry of its own system; then their bodies must match, too.
  void CompareOps(const Carry& a, NodeId ours, NodeId theirs) {
    const Carry& b = Theirs(a, theirs);
    const auto k = absl::c_find(carries_, ours) - carries_.begin();
    const auto other = absl::c_find(other_.carries, theirs) - other_.carries.begin();
    const bool are_own = k < static_cast<int64_t>(carries_.size()) &&
                         other < static_cast<int64_t>(other_.carries.size());
    same_ = same_ && are_own && a.axis == b.axis && a.backward == b.backward;
    if (same_) Pair(bodies_[k], other_.bodies[other]);
  }
  // Equal ones would be one node.
  template <class Leaf>
  void CompareOps(const Leaf&, NodeId, NodeId) {
    same_ = false;
  }

  void ComparePlaces(const IndexList& a, const IndexList& b) {
    same_ = same_ && a.size() == b.size();
    for (size_t i = 0; same_ && i < a.size(); ++i) CompareIndices(a[i], b[i]);
  }

  // Equal index expressions are one in a pool, except where they load from tensors that are only to
  // be shown equal: those become a pair to compare.
  void CompareIndices(IndexId a, IndexId b) {
    if (a == b) return;  // the loaded tensor is outside of both
    const IndexNode &x = pool_[a], &y = pool_[b];
    same_ = same_ && x.kind == y.kind && x.args.size() == y.args.size();
    if (x.kind == IndexKind::kLoad)
      Pair(NodeId{static_cast<int32_t>(x.value)}, NodeId{static_cast<int32_t>(y.value)});
    else same_ = same_ && x.value == y.value;
    for (size_t i = 0; same_ && i < x.args.size(); ++i) CompareIndices(x.args[i], y.args[i]);
  }

  const Graph& graph_;
  const IndexPool& pool_;
  const absl::Span<const NodeId> carries_, bodies_;
  const Recurrence& other_;
  absl::flat_hash_map<NodeId, NodeId> images_, sources_;  // one to one
  std::vector<std::pair<NodeId, NodeId>> open_;           // pairs that are to be compared
  bool same_ = true;
};

}  // namespace

absl::optional<absl::flat_hash_map<NodeId, NodeId>> MatchRecurrence(
    const Graph& graph, absl::Span<const NodeId> carries, absl::Span<const NodeId> bodies,
    const Recurrence& other, size_t j) {
  return Matching(graph, carries, bodies, other).From(j);
}

}  // namespace nestor
