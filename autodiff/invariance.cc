// For one reduction m, every later value is classified by how it depends on m at
// the same place: not at all, as f + k*m, as f * exp(k*m), or otherwise. Sums,
// products, quotients, exp and log carry the classes; where the powers cancel, the
// dependence is gone. Which axes of a value are m's is carried along, since
// a sum of exp(k*m) over an axis of m itself is no multiple of one exp(k*m).
#include "autodiff/invariance.h"

#include <algorithm>

#include "uops/invariant.h"

namespace nestor {
namespace {

enum class Kind { kNone, kAdditive, kMultiplicative, kOther };

struct Dependence {
  Kind kind = Kind::kNone;
  int power = 0;
  std::vector<int> axes;  // axis j of m runs along axis axes[j]
};

const Dependence kOther{Kind::kOther, 0, {}};

Dependence Of(Kind kind, int power, std::vector<int> axes) {
  if (power == 0) return {};
  return {kind, power, std::move(axes)};
}

class Classifier {
 public:
  Classifier(const Graph& graph, NodeId m) : graph_(graph), classes_(graph.size()) {
    std::vector<int> axes(graph.rank(m));
    for (size_t j = 0; j < axes.size(); ++j) axes[j] = static_cast<int>(j);
    classes_[m.value] = {Kind::kAdditive, 1, std::move(axes)};
    for (int i = m.value + 1; i < graph.size(); ++i) classes_[i] = Classify(NodeId{i});
  }

  bool Independent(NodeId id) const { return classes_[id.value].kind == Kind::kNone; }

 private:
  const Dependence& At(NodeId id) const { return classes_[id.value]; }

  Dependence Classify(NodeId id) const {
    bool none = true;
    VisitOperands(graph_, id, [&](NodeId x) { none &= Independent(x); });
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
    const bool fits = (a.kind == kind || a.kind == Kind::kNone) && (b.kind == kind || b.kind == Kind::kNone);
    if (!fits || !SameAxes(a, b)) return kOther;
    return Of(kind, a.power + sign * b.power, a.kind == Kind::kNone ? b.axes : a.axes);
  }

  Dependence ClassifyMap(const Map& map) const {
    const Dependence& a = At(map.args[0]);
    const Dependence& b = map.args.size() > 1 ? At(map.args[1]) : a;
    const bool alike = map.args.size() == 2 && a.kind == b.kind && a.power == b.power && a.axes == b.axes;
    switch (map.op) {
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
        if (alike && a.kind == Kind::kMultiplicative) return a;
        return Combine(a, b, Kind::kAdditive, map.op == ScalarOp::kAdd ? 1 : -1);
      case ScalarOp::kMul: return Combine(a, b, Kind::kMultiplicative, 1);
      case ScalarOp::kDiv: return Combine(a, b, Kind::kMultiplicative, -1);
      case ScalarOp::kNeg:
        return a.kind == Kind::kAdditive ? Of(a.kind, -a.power, a.axes) : a;
      case ScalarOp::kExp:
        return a.kind == Kind::kAdditive ? Of(Kind::kMultiplicative, a.power, a.axes) : kOther;
      case ScalarOp::kLog:
        return a.kind == Kind::kMultiplicative ? Of(Kind::kAdditive, a.power, a.axes) : kOther;
      case ScalarOp::kMax:
      case ScalarOp::kMin: return alike ? a : kOther;
      default: return kOther;
    }
  }

  Dependence ClassifyReindex(NodeId id, const Reindex& reindex) const {
    const Dependence& x = At(reindex.x);
    if (x.kind == Kind::kOther) return kOther;
    bool gathers = false;  // from something that depends on m
    VisitOperands(graph_, id, [&](NodeId operand) { gathers |= operand != reindex.x && !Independent(operand); });
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
    if (fill != nullptr && (fill->value.IsNaN() || (kind == Kind::kMultiplicative && fill->value.bits == 0))) {
      return true;
    }
    if (!reindex.conditions.empty()) return false;
    for (size_t j = 0; j < reindex.place.size(); ++j) {
      const int64_t var = graph_.pool().VarValue(reindex.place[j]);
      if (var < 0 || graph_.shape(id)[var] != graph_.shape(reindex.x)[j]) return false;
    }
    return true;
  }

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
  std::vector<Dependence> classes_;
};

}  // namespace

std::vector<NodeId> CancellingExtrema(const Graph& graph, absl::Span<const NodeId> results) {
  const std::vector<bool> live = Reachable(graph, results);
  std::vector<NodeId> cancelling;
  for (int i = 0; i < graph.size(); ++i) {
    const Reduce* reduce = graph.As<Reduce>(NodeId{i});
    if (!live[i] || reduce == nullptr) continue;
    if (reduce->op != ReduceOp::kMax && reduce->op != ReduceOp::kMin) continue;
    const Classifier classifier(graph, NodeId{i});
    const bool independent =
        std::all_of(results.begin(), results.end(), [&](NodeId r) { return classifier.Independent(r); });
    if (independent) cancelling.push_back(NodeId{i});
  }
  return cancelling;
}

}  // namespace nestor
