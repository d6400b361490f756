// An op that computes chosen elements only: to judge a sample of a large result, or the few
// elements that the bounds could not decide, without computing the rest. The chosen elements are
// groups, each all combinations of lists of indices along the axes, so that they share what lies
// along an axis.
//
// From the results down, each node is rebuilt over the groups' indices in place of its own axes: an
// index along each axis becomes the one that the lists hold for the point. A gather of a computed
// value becomes the computation at the gathered place; where that may lie outside, a select keeps
// the fill.
//
//   y[i, j] = sum[k](a[i, k] * b[k, j])
//     ->
//   y[g, p, q] = sum[k](a[I[g, p], k] * b[k, J[g, q]])      I, J: new arguments
#include "check/bounds/point_op.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/variant.h"
#include "uops/index/operators.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

class PointMaker {
 public:
  // Adds nodes to the graph of `op`, which holds the nodes that At is called with.
  explicit PointMaker(Op& op) : op_(op), graph_(op.graph) {}

  // The index of each point along an axis of `lists`, groups and their own axes. Its values are in
  // range, so arithmetic on them gives the same as on the index that they replace.
  IndexId AddPointIndex(absl::string_view name, const Shape& lists, int axis) {
    const NodeId input =
        graph_.AddInput(name, DType::kI64, {lists[0], lists[static_cast<size_t>(axis)]});
    points_.push_back(input);
    return pool().Load(input.value, {pool().Var(0), pool().Var(axis)});
  }
  NodeId LastPointIndex() const { return points_.back(); }

  const absl::Status& status() const { return status_; }

  // The value of `node` at `place`, which has an index for each of its axes, over the
  // axes of `shape`.
  NodeId At(NodeId node, const Shape& shape, const IndexList& place) {
    const Key key{node, shape, place};
    const auto known = made_.find(key);
    if (known != made_.end()) return known->second;
    const Node copy = graph_[node];  // the graph grows
    const NodeId made =
        absl::visit([&](const auto& op) { return Make(op, node, copy, shape, place); }, copy.op);
    made_.emplace(key, made);
    return made;
  }

 private:
  // A node at one place is made once, however many operands lead to it: else a chain of y = x + x
  // would double at each step.
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
  // A scatter is computed as a whole.
  NodeId Make(const Scatter&, NodeId id, const Node&, const Shape& shape, const IndexList& place) {
    return graph_.AddReindex(id, shape, place);
  }
  NodeId Make(const Recurrence&, NodeId id, const Node&, const Shape& shape,
              const IndexList& place) {
    return graph_.AddReindex(id, shape, place);
  }
  NodeId Make(const Carry&, NodeId id, const Node&, const Shape&, const IndexList&) {
    NESTOR_CHECK(false, absl::StrCat("node ", id.value, " is a carry outside of its recurrence"));
  }
  NodeId Make(const Map& map, NodeId, const Node& node, const Shape& shape,
              const IndexList& place) {
    if (map.tag != 0) return At(map.args[0], shape, place);
    NodeList args;
    for (NodeId arg : map.args) args.push_back(At(arg, shape, place));
    return graph_.AddMap(map.op, args, node.type);
  }
  // y[p] = sum[k](x[.., k]) at the points p is a sum over k at each point: the reduced axes stand
  // after the axis of points.
  NodeId Make(const Reduce& reduce, NodeId id, const Node&, const Shape& shape,
              const IndexList& place) {
    const std::vector<int64_t> used = VarsOf(place);
    if (used.size() < shape.size()) return Spread(id, used, shape, place);
    Shape inner = shape;
    IndexList inner_place = place;
    std::vector<int> axes;
    const Shape operand = graph_.shape(reduce.x);
    for (size_t axis = operand.size() - static_cast<size_t>(reduce.count); axis < operand.size();
         ++axis) {
      axes.push_back(static_cast<int>(inner.size()));
      inner_place.push_back(pool().Var(static_cast<int64_t>(inner.size())));
      inner.push_back(operand[axis]);
    }
    return graph_.AddReduce(reduce.op, At(reduce.x, inner, inner_place), axes);
  }
  // The axes that a place depends on, ascending.
  std::vector<int64_t> VarsOf(const IndexList& place) {
    std::vector<int64_t> vars;
    for (IndexId e : place) CollectVars(pool(), e, vars);
    absl::c_sort(vars);
    return vars;
  }

  // The value of `node` at a place that depends on the axes `used` alone: computed over these, and
  // broadcast along the others.
  NodeId Spread(NodeId node, const std::vector<int64_t>& used, const Shape& shape,
                const IndexList& place) {
    Shape kept;
    IndexList numbered(shape.size(), pool().Const(0)), spread;
    for (int64_t axis : used) {
      numbered[static_cast<size_t>(axis)] = pool().Var(static_cast<int64_t>(kept.size()));
      spread.push_back(pool().Var(axis));
      kept.push_back(shape[static_cast<size_t>(axis)]);
    }
    return graph_.AddReindex(At(node, kept, Moved(place, numbered)), shape, spread);
  }

  // A read moves the points: y[i] = x[2*i] at the points p reads x at 2*p. Outside, the fill is
  // chosen.
  NodeId Make(const Reindex& reindex, NodeId, const Node& node, const Shape& shape,
              const IndexList& place) {
    const IndexList moved = Moved(reindex.place, place),
                    conditions = Moved(reindex.conditions, place);
    if (IsWhole(reindex.x)) {
      return graph_.AddReindex(reindex.x, shape, moved, reindex.fill, conditions);
    }
    const NodeId inside = Inside(reindex, node.shape, moved, conditions, shape);
    const NodeId value = At(reindex.x, shape, moved);
    if (!inside.valid()) return value;
    return graph_.AddMap(ScalarOp::kSelect, {inside, value, graph_.AddSplat(reindex.fill, shape)});
  }

  // Whether the node is not computed at single places.
  bool IsWhole(NodeId x) const {
    return graph_.As<Input>(x) != nullptr || graph_.As<Scatter>(x) != nullptr ||
           graph_.As<Recurrence>(x) != nullptr;
  }

  // Whether the gathered place lies in the operand and the conditions hold; invalid where it
  // always does and they do.
  NodeId Inside(const Reindex& reindex, const Shape& own, const IndexList& moved,
                const IndexList& conditions, const Shape& shape) {
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

  // A place that is loaded from outside of its tensor is no place.
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

  NodeId ValueOf(IndexId e, const Shape& shape) {
    if (!pool().HasLoad(e)) return graph_.AddIndex(e, shape);
    const IndexNode node = pool()[e];
    if (node.kind == IndexKind::kLoad) {
      RefuseBeyondI64(node);
      const IndexList place(node.args.begin(), node.args.end());
      return graph_.AddCast(
          graph_.AddReindex(NodeId{static_cast<int32_t>(node.value)}, shape, place), DType::kI64);
    }
    RefuseArithmetic(node);
    return graph_.AddMap(*ScalarOpOf(node.kind),
                         {ValueOf(node.args[0], shape), ValueOf(node.args[1], shape)});
  }

  NodeId ConditionOf(IndexId e, const Shape& shape) {
    const IndexNode node = pool()[e];
    if (node.kind == IndexKind::kConst) {
      return graph_.AddSplat(graph_.AddConstant(Scalar::Of(DType::kBool, node.value != 0)), shape);
    }
    if (node.kind == IndexKind::kNot)
      return graph_.AddMap(ScalarOp::kNot, {ConditionOf(node.args[0], shape)});
    const bool joins = node.kind == IndexKind::kAnd || node.kind == IndexKind::kOr;
    const auto operand = [&](IndexId arg) {
      return joins ? ConditionOf(arg, shape) : ValueOf(arg, shape);
    };
    return graph_.AddMap(*ScalarOpOf(node.kind), {operand(node.args[0]), operand(node.args[1])});
  }

  // An index that does not fit i64 is out of bounds; after a cast to i64 it might not be.
  void RefuseBeyondI64(const IndexNode& load) {
    if (WidensToI64(graph_.type(NodeId{static_cast<int32_t>(load.value)}))) return;
    status_ = absl::UnimplementedError("an index is gathered from u64, in what is gathered");
  }

  // Where arithmetic on a number that a caller's tensor holds overflows, or divides by zero,
  // the access is out of bounds; a value is not.
  void RefuseArithmetic(const IndexNode& node) {
    for (IndexId arg : node.args) {
      VisitIndex(pool(), arg, [&](IndexId, const IndexNode& inner) {
        if (inner.kind != IndexKind::kLoad || IsPointIndex(inner)) return;
        status_ = absl::UnimplementedError(
            "an index is computed from a gathered number, in what is gathered");
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

// Each result gets a dimension for its groups, one for each of its axes, and an argument of indices
// along each axis.
absl::StatusOr<PointOp> MakePointOp(const Op& op) {
  PointOp points;
  points.op = op;
  Graph& graph = points.op.graph;
  PointMaker maker(points.op);
  for (size_t r = 0; r < op.results.size(); ++r) {
    const Result& result = op.results[r];
    const int rank = static_cast<int>(op.graph.shape(result.node).size());
    points.dim_names.push_back({absl::StrCat("groups_of_", result.name)});
    points.index_names.emplace_back();
    if (rank == 0) continue;
    for (int axis = 0; axis < rank; ++axis) {
      points.dim_names.back().push_back(absl::StrCat("along_axis_", axis, "_of_", result.name));
    }
    Shape lists;
    for (const std::string& name : points.dim_names.back())
      lists.push_back(graph.pool().Symbol(name));
    IndexList place;
    for (int axis = 0; axis < rank; ++axis) {
      const std::string name =
          FreshArgument(points.op, absl::StrCat("axis_", axis, "_of_", result.name));
      place.push_back(maker.AddPointIndex(name, lists, axis + 1));
      const Shape shape = {lists[0], lists[static_cast<size_t>(axis) + 1]};
      points.op.args.push_back({name, DType::kI64, shape, false, maker.LastPointIndex()});
      points.index_names.back().push_back(name);
    }
    points.op.results[r].node = maker.At(result.node, lists, place);
  }
  NESTOR_RETURN_IF_ERROR(maker.status());
  points.op.gradient = nullptr;
  return points;
}

PointGroups GroupsOfOne(const Dims& shape, absl::Span<const int64_t> elements) {
  PointGroups groups{static_cast<int64_t>(elements.size()), Dims(shape.size(), 1), {}};
  groups.indices.resize(shape.size());
  int64_t below = 1;  // elements from one index of the axis to the next
  for (size_t axis = shape.size(); axis-- > 0; below *= shape[axis]) {
    for (int64_t element : elements) groups.indices[axis].push_back(element / below % shape[axis]);
  }
  return groups;
}

// The row-major numbers, in the order in which the op gives the elements.
std::vector<int64_t> NumbersOf(const PointGroups& groups, const Dims& shape) {
  if (shape.empty()) return {0};
  const Dims strides = CompactStrides(shape);
  std::vector<int64_t> numbers;
  const int64_t size = NumElements(groups.along).value();
  if (size == 0) return numbers;
  numbers.reserve(static_cast<size_t>(groups.count * size));
  const auto at = [&](int64_t group, size_t axis, int64_t i) {
    return groups.indices[axis][static_cast<size_t>(group * groups.along[axis] + i)];
  };
  const size_t last = shape.size() - 1;
  Dims outer = groups.along;
  outer[last] = 1;
  for (int64_t group = 0; group < groups.count; ++group) {
    Dims index(shape.size(), 0);
    do {
      int64_t row = 0;
      for (size_t axis = 0; axis < last; ++axis)
        row += at(group, axis, index[axis]) * strides[axis];
      for (int64_t i = 0; i < groups.along[last]; ++i) numbers.push_back(row + at(group, last, i));
    } while (NextIndex(outer, absl::MakeSpan(index)));
  }
  return numbers;
}

// The inputs of the op itself, and lists for each result.
PointInputs AddPoints(const PointOp& points, const RunInputs& inputs,
                      absl::Span<const PointGroups> groups) {
  PointInputs added{inputs, {}};
  std::vector<std::string> names;
  for (size_t r = 0; r < groups.size(); ++r) {
    const auto& dims = points.dim_names[r];
    if (dims.size() == 1) continue;
    added.inputs.dims[dims[0]] = groups[r].count;
    for (size_t axis = 0; axis + 1 < dims.size(); ++axis) {
      added.inputs.dims[dims[axis + 1]] = groups[r].along[axis];
      added.indices.push_back(
          Tensor::Create(DType::kI64, {groups[r].count, groups[r].along[axis]}).value());
      absl::c_copy(groups[r].indices[axis], added.indices.back().values<int64_t>().begin());
      names.push_back(points.index_names[r][axis]);
    }
  }
  for (size_t i = 0; i < names.size(); ++i)
    added.inputs.tensors[names[i]] = added.indices[i].view();
  return added;
}

}  // namespace nestor
