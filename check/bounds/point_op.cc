// From the results down, each node is rebuilt over the points in place of its own axes: a
// place stands for its index along each axis. A gather of what is computed becomes the
// computation at the gathered place; where that may lie outside, a choice keeps the fill.
#include "check/bounds/point_op.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/variant.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

class PointMaker {
 public:
  // Adds to the graph of `op`, which holds the nodes that are asked for.
  explicit PointMaker(Op& op) : op_(op), graph_(op.graph) {}

  // The index of each point along some axis. Its values are in range, so arithmetic on them
  // does what it does on the index that they stand for.
  IndexId AddPointIndex(absl::string_view name, const Shape& list) {
    const NodeId input = graph_.AddInput(name, DType::kI64, list);
    points_.push_back(input);
    return pool().Load(input.value, {pool().Var(0)});
  }
  NodeId LastPointIndex() const { return points_.back(); }

  const absl::Status& status() const { return status_; }

  // What `node` is at `place`, which has an index for each axis of it, over the axes of `shape`.
  NodeId At(NodeId node, const Shape& shape, const IndexList& place) {
    const Key key{node, shape, place};
    const auto known = made_.find(key);
    if (known != made_.end()) return known->second;
    const Node copy = graph_[node];  // the graph grows
    const NodeId made = absl::visit([&](const auto& op) { return Make(op, node, copy, shape, place); }, copy.op);
    made_.emplace(key, made);
    return made;
  }

 private:
  using Key = std::tuple<NodeId, Shape, IndexList>;

  IndexPool& pool() { return graph_.pool(); }
  IndexList Moved(const IndexList& list, const IndexList& place) {
    IndexList moved;
    for (IndexId e : list) moved.push_back(SubstituteVars(pool(), e, place));
    return moved;
  }

  NodeId Make(const Input&, NodeId id, const Node&, const Shape& shape, const IndexList& place) {
    return graph_.AddReindex(id, shape, place);
  }
  NodeId Make(const Param&, NodeId id, const Node&, const Shape& shape, const IndexList&) {
    return graph_.AddSplat(id, shape);
  }
  NodeId Make(const Constant&, NodeId id, const Node&, const Shape& shape, const IndexList&) {
    return graph_.AddSplat(id, shape);
  }
  NodeId Make(const Index& index, NodeId, const Node&, const Shape& shape, const IndexList& place) {
    return ValueOf(SubstituteVars(pool(), index.expr, place), shape);
  }
  // As a whole.
  NodeId Make(const Scatter&, NodeId id, const Node&, const Shape& shape, const IndexList& place) {
    return graph_.AddReindex(id, shape, place);
  }
  NodeId Make(const Map& map, NodeId, const Node& node, const Shape& shape, const IndexList& place) {
    if (map.tag != 0) return At(map.args[0], shape, place);
    NodeList args;
    for (NodeId arg : map.args) args.push_back(At(arg, shape, place));
    return graph_.AddMap(map.op, args, node.type);
  }
  NodeId Make(const Reduce& reduce, NodeId, const Node&, const Shape& shape, const IndexList& place) {
    Shape inner = shape;
    IndexList inner_place = place;
    std::vector<int> axes;
    const Shape operand = graph_.shape(reduce.x);
    for (size_t axis = operand.size() - static_cast<size_t>(reduce.count); axis < operand.size(); ++axis) {
      axes.push_back(static_cast<int>(inner.size()));
      inner_place.push_back(pool().Var(static_cast<int64_t>(inner.size())));
      inner.push_back(operand[axis]);
    }
    return graph_.AddReduce(reduce.op, At(reduce.x, inner, inner_place), axes);
  }
  NodeId Make(const Reindex& reindex, NodeId, const Node& node, const Shape& shape, const IndexList& place) {
    const IndexList moved = Moved(reindex.place, place), conditions = Moved(reindex.conditions, place);
    if (graph_.As<Input>(reindex.x) != nullptr || graph_.As<Scatter>(reindex.x) != nullptr) {
      return graph_.AddReindex(reindex.x, shape, moved, reindex.fill, conditions);
    }
    const NodeId inside = Inside(reindex, node.shape, moved, conditions, shape);
    const NodeId value = At(reindex.x, shape, moved);
    if (!inside.valid()) return value;
    return graph_.AddMap(ScalarOp::kSelect, {inside, value, graph_.AddSplat(reindex.fill, shape)});
  }

  // Whether the gathered place lies in the operand and the conditions hold; invalid where it
  // always does and they do.
  NodeId Inside(const Reindex& reindex, const Shape& own, const IndexList& moved, const IndexList& conditions,
                const Shape& shape) {
    NodeId inside;
    const auto add = [&](IndexId condition) {
      const NodeId value = ConditionOf(condition, shape);
      inside = inside.valid() ? graph_.AddMap(ScalarOp::kAnd, {inside, value}) : value;
    };
    const Shape extents = graph_.shape(reindex.x);
    for (const IndexList& list : {moved, conditions}) {
      for (IndexId e : list) {
        RefuseDivisions(e);
        AddLoadsInside(e, add);
      }
    }
    for (size_t axis = 0; axis < moved.size(); ++axis) {
      const int64_t var = pool().VarValue(reindex.place[axis]);
      if (var >= 0 && own[static_cast<size_t>(var)] == extents[axis]) continue;
      add(pool().Condition(IndexKind::kLe, pool().Const(0), moved[axis]));
      add(pool().Condition(IndexKind::kLt, moved[axis], extents[axis]));
    }
    for (IndexId condition : conditions) add(condition);
    return inside;
  }

  // A place that is gathered from outside of its tensor is no place.
  template <class Add>
  void AddLoadsInside(IndexId e, const Add& add) {
    std::vector<IndexNode> loads;
    VisitIndex(pool(), e, [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kLoad && !IsPointIndex(node)) loads.push_back(node);
    });
    for (const IndexNode& load : loads) {
      const Shape extents = graph_.shape(NodeId{static_cast<int32_t>(load.value)});
      for (size_t axis = 0; axis < extents.size(); ++axis) {
        add(pool().Condition(IndexKind::kLe, pool().Const(0), load.args[axis]));
        add(pool().Condition(IndexKind::kLt, load.args[axis], extents[axis]));
      }
    }
  }

  bool IsPointIndex(const IndexNode& load) const {
    return absl::c_linear_search(points_, NodeId{static_cast<int32_t>(load.value)});
  }

  // ---- Index expressions as values. One that holds a gathered index is computed step by
  // step: as an index it would have to be proven free of overflow for every value of that.

  static ScalarOp OpOf(IndexKind kind) {
    switch (kind) {
      case IndexKind::kAdd: return ScalarOp::kAdd;
      case IndexKind::kMul: return ScalarOp::kMul;
      case IndexKind::kDiv: return ScalarOp::kFloorDiv;
      case IndexKind::kMod: return ScalarOp::kMod;
      case IndexKind::kMin: return ScalarOp::kMin;
      case IndexKind::kMax: return ScalarOp::kMax;
      case IndexKind::kLt: return ScalarOp::kLt;
      case IndexKind::kLe: return ScalarOp::kLe;
      case IndexKind::kEq: return ScalarOp::kEq;
      case IndexKind::kNe: return ScalarOp::kNe;
      case IndexKind::kAnd: return ScalarOp::kAnd;
      case IndexKind::kOr: return ScalarOp::kOr;
      default: NESTOR_CHECK(false, "not an operation"); return ScalarOp::kAdd;
    }
  }

  NodeId ValueOf(IndexId e, const Shape& shape) {
    if (!pool().HasLoad(e)) return graph_.AddIndex(e, shape);
    const IndexNode node = pool()[e];
    if (node.kind == IndexKind::kLoad) {
      const IndexList place(node.args.begin(), node.args.end());
      return graph_.AddCast(graph_.AddReindex(NodeId{static_cast<int32_t>(node.value)}, shape, place), DType::kI64);
    }
    RefuseArithmetic(node);
    return graph_.AddMap(OpOf(node.kind), {ValueOf(node.args[0], shape), ValueOf(node.args[1], shape)});
  }

  NodeId ConditionOf(IndexId e, const Shape& shape) {
    const IndexNode node = pool()[e];
    if (node.kind == IndexKind::kConst) {
      return graph_.AddSplat(graph_.AddConstant(Scalar::Of(DType::kBool, node.value != 0)), shape);
    }
    if (node.kind == IndexKind::kNot) return graph_.AddMap(ScalarOp::kNot, {ConditionOf(node.args[0], shape)});
    const bool joins = node.kind == IndexKind::kAnd || node.kind == IndexKind::kOr;
    const auto operand = [&](IndexId arg) { return joins ? ConditionOf(arg, shape) : ValueOf(arg, shape); };
    return graph_.AddMap(OpOf(node.kind), {operand(node.args[0]), operand(node.args[1])});
  }

  // Where arithmetic on a number that a caller's tensor holds overflows, or divides by zero,
  // the access is out of bounds; a value is not.
  void RefuseArithmetic(const IndexNode& node) {
    for (IndexId arg : node.args) {
      VisitIndex(pool(), arg, [&](IndexId, const IndexNode& inner) {
        if (inner.kind != IndexKind::kLoad || IsPointIndex(inner)) return;
        status_ = absl::UnimplementedError("an index is computed from a gathered number, in what is gathered");
      });
    }
  }

  // A place that divides by zero is out of bounds, too.
  void RefuseDivisions(IndexId e) {
    VisitIndex(pool(), e, [&](IndexId, const IndexNode& node) {
      const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
      if (!divides || NeverZero(node.args[1])) return;
      status_ = absl::UnimplementedError("what may be 0 divides an index of what is gathered");
    });
  }

  bool NeverZero(IndexId e) {
    const IndexNode& node = pool()[e];
    if (node.kind == IndexKind::kConst) return node.value != 0;
    if (node.kind != IndexKind::kSymbol) return false;
    const ParamInfo* const param = op_.FindParam(pool().SymbolName(e));
    return param != nullptr && param->low && param->low->ToInt() > 0;
  }

  Op& op_;
  Graph& graph_;
  std::vector<NodeId> points_;
  absl::Status status_;
  absl::flat_hash_map<Key, NodeId> made_;
};

std::string FreshArgument(const Op& op, absl::string_view name) {
  return FreshName(name, [&](absl::string_view taken) {
    return op.FindArgument(taken) != nullptr || op.FindResult(taken) != nullptr;
  });
}

}  // namespace

absl::StatusOr<PointOp> MakePointOp(const Op& op) {
  PointOp points;
  points.op = op;
  Graph& graph = points.op.graph;
  PointMaker maker(points.op);
  for (size_t r = 0; r < op.results.size(); ++r) {
    const Result& result = op.results[r];
    points.count_names.push_back(absl::StrCat("points_of_", result.name));
    points.index_names.emplace_back();
    if (op.graph.shape(result.node).empty()) continue;
    const Shape list = {graph.pool().Symbol(points.count_names.back())};
    IndexList place;
    for (size_t axis = 0; axis < op.graph.shape(result.node).size(); ++axis) {
      const std::string name = FreshArgument(points.op, absl::StrCat("axis_", axis, "_of_", result.name));
      place.push_back(maker.AddPointIndex(name, list));
      points.op.args.push_back({name, DType::kI64, list, false, maker.LastPointIndex()});
      points.index_names.back().push_back(name);
    }
    points.op.results[r].node = maker.At(result.node, list, place);
  }
  NESTOR_RETURN_IF_ERROR(maker.status());
  points.op.gradient = nullptr;
  return points;
}

PointInputs AddPoints(const PointOp& points, const RunInputs& inputs, absl::Span<const Dims> shapes,
                      absl::Span<const std::vector<int64_t>> elements) {
  PointInputs added{inputs, {}};
  std::vector<std::pair<std::string, size_t>> places;
  for (size_t r = 0; r < shapes.size(); ++r) {
    if (shapes[r].empty()) continue;
    const auto count = static_cast<int64_t>(elements[r].size());
    added.inputs.dims[points.count_names[r]] = count;
    int64_t below = 1;  // elements from one index of the axis to the next
    for (size_t axis = shapes[r].size(); axis-- > 0; below *= shapes[r][axis]) {
      added.indices.push_back(Tensor::Create(DType::kI64, {count}).value());
      int64_t* const index = added.indices.back().values<int64_t>().data();
      for (size_t p = 0; p < elements[r].size(); ++p) index[p] = elements[r][p] / below % shapes[r][axis];
      places.emplace_back(points.index_names[r][axis], added.indices.size() - 1);
    }
  }
  for (const auto& [name, number] : places) added.inputs.tensors[name] = added.indices[number].view();
  return added;
}

}  // namespace nestor
