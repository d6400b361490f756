// A dimension is separable where each access goes along its axes by one loop index, which nothing
// else uses: then the values at each of its indices are the same expression of the slices there.
// Entry points: SeparableDimensions, SliceInputs.
#include "check/bounds/slices.h"

#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/types/variant.h"
#include "uops/graph.h"
#include "uops/index/index_expr.h"

namespace nestor {
namespace {

// Looks at each use of one dimension.
// c[i, j] = sum[k](a[i, k] * b[k, j]): i and j are separable, k (which is summed) is not;
// y[i] = x[i + 1]: i is not, since each slice would need its neighbour.
class SeparableUse {
 public:
  SeparableUse(const Op& op, IndexId dimension)
      : graph_(op.graph), pool_(op.graph.pool()), dimension_(dimension) {
    const std::vector<bool> live = Reachable(graph_, op.ResultNodes());
    for (const Argument& arg : op.args) IsWhole(arg.shape);
    for (const Equality& equality : op.equalities)
      IsUnused(equality.left), IsUnused(equality.right);
    for (const RangeCheck& check : op.range_checks) IsUnused(check.value);
    for (int i = 0; i < graph_.size(); ++i) {
      if (!live[static_cast<size_t>(i)]) continue;
      const Node& node = graph_[NodeId{i}];
      IsWhole(node.shape);
      absl::visit([&](const auto& micro_op) { LookAt(micro_op, node.shape); }, node.op);
    }
  }

  bool holds() const { return holds_; }

 private:
  // An extent is the dimension or independent of it.
  void IsWhole(const Shape& shape) {
    for (IndexId extent : shape) {
      if (extent != dimension_) IsUnused(extent);
    }
  }
  void IsUnused(IndexId e) { IsFree(e, {}); }

  bool IsAlong(IndexId e, const Shape& shape) const {
    const int64_t var = pool_.VarValue(e);
    return var >= 0 && shape[static_cast<size_t>(var)] == dimension_;
  }

  // `e`, over loop indices with the extents `shape`, does not use the dimension.
  // Clears holds_ if it does; each of these checks does so, and none sets it.
  void IsFree(IndexId e, const Shape& shape) {
    const IndexNode& node = pool_[e];
    if (e == dimension_ || (!shape.empty() && IsAlong(e, shape))) holds_ = false;
    if (node.kind == IndexKind::kLoad) {
      IsAccess(graph_.shape(NodeId{static_cast<int32_t>(node.value)}), node.args, shape);
    } else {
      for (IndexId arg : node.args) IsFree(arg, shape);
    }
  }

  // Each axis that has the dimension is accessed by a loop index that has it, and no other is.
  template <class Place>
  void IsAccess(const Shape& accessed, const Place& place, const Shape& shape) {
    for (size_t axis = 0; axis < accessed.size(); ++axis) {
      if (accessed[axis] != dimension_) IsFree(place[axis], shape);
      else if (!IsAlong(place[axis], shape)) holds_ = false;
    }
  }

  void LookAt(const Input&, const Shape&) {}
  void LookAt(const Param&, const Shape&) {}
  void LookAt(const Constant&, const Shape&) {}
  void LookAt(const Map&, const Shape&) {}
  void LookAt(const Index& index, const Shape& shape) { IsFree(index.expr, shape); }
  void LookAt(const Reindex& reindex, const Shape& shape) {
    IsAccess(graph_.shape(reindex.x), reindex.place, shape);
    for (IndexId condition : reindex.conditions) IsFree(condition, shape);
  }
  // An axis that is summed needs all of its elements.
  void LookAt(const Reduce& reduce, const Shape& shape) {
    const Shape operand = graph_.shape(reduce.x);
    for (size_t axis = shape.size(); axis < operand.size(); ++axis)
      holds_ = holds_ && operand[axis] != dimension_;
  }
  // Steps follow each other, so the axis of the steps cannot be cut.
  void LookAt(const Carry& carry, const Shape& shape) {
    holds_ = holds_ && shape[static_cast<size_t>(carry.axis)] != dimension_;
  }
  void LookAt(const Recurrence&, const Shape&) {}
  void LookAt(const Scatter& scatter, const Shape& shape) {
    for (IndexId e : scatter.place) IsFree(e, graph_.shape(scatter.x));
    for (const Shape& each : {shape, Shape(graph_.shape(scatter.x))}) {
      holds_ = holds_ && !absl::c_linear_search(each, dimension_);
    }
  }

  const Graph& graph_;
  const IndexPool& pool_;
  const IndexId dimension_;
  bool holds_ = true;
};

// Null: the whole axis.
Tensor Sliced(const TensorView& view, const std::vector<const std::vector<int64_t>*>& axes) {
  Dims shape = view.shape;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis] != nullptr) shape[axis] = static_cast<int64_t>(axes[axis]->size());
  }
  Tensor slice = Tensor::Create(view.type, shape).value();
  if (slice.num_elements() == 0) return slice;
  // Contiguous elements of the last axis are copied at once.
  const int64_t size = ByteSize(view.type);
  const bool is_row = !shape.empty() && axes.back() == nullptr && view.strides.back() == 1;
  const int64_t length = is_row ? shape.back() : 1;
  Dims outer = shape, index(shape.size(), 0);
  if (is_row) outer.back() = 1;
  char* to = static_cast<char*>(slice.data());
  do {
    int64_t offset = 0;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const int64_t at =
          axes[axis] == nullptr ? index[axis] : (*axes[axis])[static_cast<size_t>(index[axis])];
      offset += at * view.strides[axis];
    }
    std::memcpy(to, static_cast<const char*>(view.data) + offset * size,
                static_cast<size_t>(length * size));
    to += length * size;
  } while (NextIndex(outer, absl::MakeSpan(index)));
  return slice;
}

}  // namespace

std::vector<std::string> SeparableDimensions(const Op& op) {
  std::vector<std::string> names;
  Op copy = op;
  for (const std::string& name : UnboundDimensions(SignatureOf(op), {})) {
    if (SeparableUse(copy, copy.graph.pool().Symbol(name)).holds()) names.push_back(name);
  }
  return names;
}

std::vector<const std::vector<int64_t>*> SlicedAxes(const Op& op, const Shape& shape,
                                                    const Slices& slices) {
  const IndexPool& pool = op.graph.pool();
  std::vector<const std::vector<int64_t>*> axes;
  for (IndexId extent : shape) {
    const auto slice = pool[extent].kind == IndexKind::kSymbol
                           ? slices.find(pool.SymbolName(extent))
                           : slices.end();
    axes.push_back(slice == slices.end() ? nullptr : &slice->second);
  }
  return axes;
}

// All axes of one dimension are cut alike, or the op's equalities would fail.
SlicedInputs SliceInputs(const Op& op, const RunInputs& inputs, const Slices& slices) {
  SlicedInputs sliced{inputs, {}};
  for (const Argument& arg : op.args) {
    const auto axes = SlicedAxes(op, arg.shape, slices);
    if (absl::c_all_of(axes, [](const auto* indices) { return indices == nullptr; })) continue;
    sliced.tensors.push_back(Sliced(inputs.tensors.at(arg.name), axes));
    sliced.inputs.tensors[arg.name] = sliced.tensors.back().view();
  }
  for (const auto& [name, indices] : slices) {
    const auto given = sliced.inputs.dims.find(name);
    if (given != sliced.inputs.dims.end()) given->second = static_cast<int64_t>(indices.size());
  }
  return sliced;
}

}  // namespace nestor
