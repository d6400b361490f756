// The usual softmax subtracts the maximum only so that exp does not overflow; differentiating
// through that maximum would cost a pass and give 0. This proves that a result is the same function
// of x whatever m is, by an abstract interpretation with three shapes of dependence.
//
// For one reduction m, every later value is classified by how it depends on m at the same place:
// not at all, as f + k*m, as f * exp(k*m), or otherwise. Sums, products, quotients, exp and log
// carry the classes; where the powers cancel, the dependence is gone. Each class also says which
// axes of the value are m's, since a sum of exp(k*m) over an axis of m itself is no multiple of one
// exp(k*m).
//
//   x - m: f - m    e = exp(x - m): f exp(-m)    s = sum(e): f exp(-m)    e / s: independent
#include "autodiff/invariance.h"

#include <algorithm>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

enum class Kind { kNone, kAdditive, kMultiplicative, kOther };

struct Dependence {
  Kind kind = Kind::kNone;
  int power = 0;
  std::vector<int> axes;  // axis j of m runs along axis axes[j]
};

const Dependence kNone;
const Dependence kOther{Kind::kOther, 0, {}};

Dependence Of(Kind kind, int power, std::vector<int> axes) {
  if (power == 0) return {};
  return {kind, power, std::move(axes)};
}

// By node: the nodes that it is an operand of.
std::vector<std::vector<NodeId>> UsersOf(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.size());
  for (int i = 0; i < graph.size(); ++i) {
    VisitOperands(graph, NodeId{i}, [&](NodeId x) { users[x.value].push_back(NodeId{i}); });
  }
  return users;
}

class Classifier {
 public:
  // Classifies the nodes of `live`, which lead to the results, that depend on m; stops at a node
  // that depends on it otherwise, as then does everything that is computed from that node.
  Classifier(const Graph& graph, const std::vector<std::vector<NodeId>>& users,
             const std::vector<bool>& live, NodeId m)
      : graph_(graph), users_(users), live_(live) {
    std::vector<int> axes(graph.rank(m));
    for (size_t j = 0; j < axes.size(); ++j) axes[j] = static_cast<int>(j);
    classes_[m] = {Kind::kAdditive, 1, std::move(axes)};
    AddUsers(m);
    while (!reached_.empty() && !dependent_) {
      const NodeId id = *reached_.begin();  // all of its operands are classified
      reached_.erase(reached_.begin());
      Dependence dependence = Classify(id);
      if (dependence.kind == Kind::kNone) continue;
      dependent_ = dependence.kind == Kind::kOther;
      classes_[id] = std::move(dependence);
      AddUsers(id);
    }
  }

  bool Independent(const std::vector<bool>& is_result) const {
    const auto depends = [&](const auto& known) { return is_result[known.first.value]; };
    return !dependent_ && std::none_of(classes_.begin(), classes_.end(), depends);
  }

 private:
  const Dependence& At(NodeId id) const {
    const auto known = classes_.find(id);
    return known == classes_.end() ? kNone : known->second;
  }

  void AddUsers(NodeId id) {
    for (NodeId user : users_[id.value]) {
      if (live_[user.value]) reached_.insert(user);
    }
  }

  // The class of `id` by those of its operands, which are found before it: what uses nothing that
  // depends on m does not depend on it.
  Dependence Classify(NodeId id) const {
    bool none = true;
    VisitOperands(graph_, id, [&](NodeId x) { none &= !classes_.contains(x); });
    if (none) return {};
    if (const Map* map = graph_.As<Map>(id)) return ClassifyMap(*map);
    if (const Reindex* reindex = graph_.As<Reindex>(id)) return ClassifyReindex(id, *reindex);
    if (const Reduce* reduce = graph_.As<Reduce>(id)) return ClassifyReduce(*reduce);
    return kOther;
  }

  // The axes that both sides share, or false where they differ.
  static bool SameAxes(const Dependence& a, const Dependence& b) {
    return a.kind == Kind::kNone || b.kind == Kind::kNone || a.axes == b.axes;
  }

  Dependence Combine(const Dependence& a, const Dependence& b, Kind kind, int sign) const {
    const bool fits =
        (a.kind == kind || a.kind == Kind::kNone) && (b.kind == kind || b.kind == Kind::kNone);
    if (!fits || !SameAxes(a, b)) return kOther;
    return Of(kind, a.power + sign * b.power, a.kind == Kind::kNone ? b.axes : a.axes);
  }

  // exp and log lead from one kind to the other; a max or min of two values that shift alike shifts
  // like them.
  Dependence ClassifyMap(const Map& map) const {
    const Dependence& a = At(map.args[0]);
    const Dependence& b = map.args.size() > 1 ? At(map.args[1]) : a;
    const bool alike =
        map.args.size() == 2 && a.kind == b.kind && a.power == b.power && a.axes == b.axes;
    switch (map.op) {
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
        if (alike && a.kind == Kind::kMultiplicative) return a;
        return Combine(a, b, Kind::kAdditive, map.op == ScalarOp::kAdd ? 1 : -1);
      case ScalarOp::kMul: return Combine(a, b, Kind::kMultiplicative, 1);
      case ScalarOp::kDiv: return Combine(a, b, Kind::kMultiplicative, -1);
      case ScalarOp::kNeg: return a.kind == Kind::kAdditive ? Of(a.kind, -a.power, a.axes) : a;
      case ScalarOp::kExp:
        return a.kind == Kind::kAdditive ? Of(Kind::kMultiplicative, a.power, a.axes) : kOther;
      case ScalarOp::kLog:
        return a.kind == Kind::kMultiplicative ? Of(Kind::kAdditive, a.power, a.axes) : kOther;
      case ScalarOp::kMax:
      case ScalarOp::kMin: return alike ? a : kOther;
      default: return kOther;
    }
  }

  // A read keeps the class if it only renames axes: the value must still be at m's own place.
  Dependence ClassifyReindex(NodeId id, const Reindex& reindex) const {
    const Dependence& x = At(reindex.x);
    if (x.kind == Kind::kOther) return kOther;
    bool gathers = false;  // from something that depends on m
    VisitOperands(graph_, id, [&](NodeId operand) {
      gathers |= operand != reindex.x && classes_.contains(operand);
    });
    if (gathers || !FillKeeps(id, reindex, x.kind)) return kOther;
    std::vector<int> axes;
    for (int axis : x.axes) {
      const int64_t var = graph_.pool().VarValue(reindex.place[axis]);
      if (var < 0) return kOther;
      axes.push_back(static_cast<int>(var));
    }
    return {x.kind, x.power, std::move(axes)};
  }

  // Whether a fill, if it is ever read, depends on m as the elements do: NaN does
  // in every way, 0 as a multiple.
  bool FillKeeps(NodeId id, const Reindex& reindex, Kind kind) const {
    const Constant* fill = graph_.As<Constant>(reindex.fill);
    if (fill != nullptr &&
        (fill->value.IsNaN() || (kind == Kind::kMultiplicative && fill->value.bits == 0))) {
      return true;
    }
    if (!reindex.conditions.empty()) return false;
    for (size_t j = 0; j < reindex.place.size(); ++j) {
      const int64_t var = graph_.pool().VarValue(reindex.place[j]);
      if (var < 0 || graph_.shape(id)[var] != graph_.shape(reindex.x)[j]) return false;
    }
    return true;
  }

  // max(f + m) = max(f) + m, sum(f exp(m)) = exp(m) sum(f), and the place of a maximum stays where
  // it is; each holds only if m is the same along the reduced axes.
  Dependence ClassifyReduce(const Reduce& reduce) const {
    const Dependence& x = At(reduce.x);
    const int kept = graph_.rank(reduce.x) - reduce.count;
    for (int axis : x.axes) {
      if (axis >= kept) return kOther;
    }
    if (IsArg(reduce.op)) return x.kind == Kind::kOther ? kOther : Dependence();
    if (reduce.op == ReduceOp::kMax || reduce.op == ReduceOp::kMin) return x;
    return reduce.op == ReduceOp::kSum && x.kind == Kind::kMultiplicative ? x : kOther;
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>>& users_;
  const std::vector<bool>& live_;
  absl::flat_hash_map<NodeId, Dependence> classes_;  // of the nodes that depend on m
  // Not classified yet, in the order of the graph.
  std::set<NodeId> reached_;
  bool dependent_ = false;
};

}  // namespace

// Asks for each extremum in turn, with a walk over its users: extrema are few.
std::vector<NodeId> CancellingExtrema(const Graph& graph, absl::Span<const NodeId> results) {
  const std::vector<bool> live = Reachable(graph, results);
  const std::vector<std::vector<NodeId>> users = UsersOf(graph);
  std::vector<bool> is_result(graph.size(), false);
  for (NodeId id : results) is_result[id.value] = true;
  std::vector<NodeId> cancelling;
  for (int i = 0; i < graph.size(); ++i) {
    const Reduce* reduce = graph.As<Reduce>(NodeId{i});
    if (!live[i] || reduce == nullptr) continue;
    if (reduce->op != ReduceOp::kMax && reduce->op != ReduceOp::kMin) continue;
    const Classifier classifier(graph, users, live, NodeId{i});
    if (classifier.Independent(is_result)) cancelling.push_back(NodeId{i});
  }
  return cancelling;
}

}  // namespace nestor
