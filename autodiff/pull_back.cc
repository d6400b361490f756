// A read y[i] = x[p(i)] is linear in x; its adjoint is the transposed map, which adds g[i] to the
// place p(i): a scatter. Where every element of x knows the one place at which it was read, its
// adjoint is read there instead, because reads run in parallel and fuse; else the adjoints are
// scattered to where they came from.
//
//   y[i,j] = x[j, i+1]      g_x[a,b] = g[b-1, a] where 0 <= b-1 < n, else 0      (a read)
//   y[i] = x[idx[i]]        g_x[idx[i]] += g[i]                                  (a scatter)
//
// In a recurrence an index that depends on the step alone counts as a constant, so that a diagonal
// does not scatter along the step twice.
#include "autodiff/pull_back.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "uops/mutant.h"

namespace nestor {
namespace {

// x[place], a shift or a reflection of distinct axes, or constants.
struct Inverse {
  std::vector<int> axes;  // of the result, by axis of x; -1 for a constant
  std::vector<int> signs;
  IndexList offsets;
};

class Puller {
 public:
  Puller(Graph& graph, Algebra& algebra, const StepAxes& step)
      : graph_(graph), pool_(graph.pool()), algebra_(algebra), step_(step) {}

  NodeId Run(NodeId g, const IndexList& place, const Shape& x_shape) {
    const absl::optional<Inverse> inverse = Invert(place);
    return inverse ? Gather(g, *inverse, x_shape) : Scatter(g, place, x_shape);
  }

 private:
  // Whether `e`, on that axis of x, depends on the step and nothing else.
  bool IsOfStep(IndexId e, int axis) const {
    std::vector<int64_t> vars;
    CollectVars(pool_, e, vars);
    return axis != step_.x && vars.size() == 1 && vars[0] == step_.read && !pool_.HasLoad(e);
  }

  // Each subscript must be +-one axis of the read, of its own, plus what no axis moves; or moved by
  // none. Solved for the axes, the place is then a function of x's axes.
  absl::optional<Inverse> Invert(const IndexList& place) {
    Inverse inverse;
    for (size_t j = 0; j < place.size(); ++j) {
      const IndexId e = place[j];
      std::vector<int64_t> vars;
      CollectVars(pool_, e, vars);
      if (IsOfStep(e, static_cast<int>(j)) || (vars.empty() && pool_.IsAffine(e))) {
        inverse.axes.push_back(-1);
        inverse.signs.push_back(0);
        inverse.offsets.push_back(e);
        continue;
      }
      if (vars.size() != 1 || !pool_.IsAffine(e)) return absl::nullopt;
      const int axis = static_cast<int>(vars[0]);
      if (std::find(inverse.axes.begin(), inverse.axes.end(), axis) != inverse.axes.end())
        return absl::nullopt;
      // e = sign * var + offset, where taking the variable out leaves no variable.
      const IndexId var = pool_.Var(axis);
      const IndexId minus = pool_.Sub(e, var), plus = pool_.Add(e, var);
      const int sign = !pool_.HasVar(minus) ? 1 : !pool_.HasVar(plus) ? -1 : 0;
      if (sign == 0) return absl::nullopt;
      inverse.axes.push_back(axis);
      inverse.signs.push_back(sign);
      inverse.offsets.push_back(sign > 0 ? minus : plus);
    }
    return inverse;
  }

  // Axes of the read that no subscript mentions are repetitions: their adjoints are summed up
  // first. A fixed subscript was read at one place only.
  NodeId Gather(NodeId g, const Inverse& inverse, const Shape& x_shape) {
    std::vector<int> unused;
    std::vector<int> position(graph_.rank(g), -1);  // of each axis of g, after the sum
    int kept = 0;
    for (int axis = 0; axis < graph_.rank(g); ++axis) {
      const bool used =
          std::find(inverse.axes.begin(), inverse.axes.end(), axis) != inverse.axes.end();
      if (used) position[axis] = kept++;
      else unused.push_back(axis);
    }
    const NodeId sum = algebra_.SumOut(g, unused);
    IndexList place(kept), conditions;
    for (size_t j = 0; j < inverse.axes.size(); ++j) {
      const IndexId var = pool_.Var(static_cast<int64_t>(j)), offset = inverse.offsets[j];
      if (inverse.axes[j] < 0) {
        conditions.push_back(pool_.Condition(IndexKind::kEq, var, InPlacesOfX(offset)));
        continue;
      }
      const bool shifts = inverse.signs[j] > 0 || NESTOR_MUTANT("reflection_not_undone");
      place[position[inverse.axes[j]]] = shifts ? pool_.Sub(var, offset) : pool_.Sub(offset, var);
    }
    return graph_.AddReindex(sum, x_shape, place, NodeId(), conditions);
  }

  // `e`, a constant or an expression of the read's step, in terms of the axes of x.
  IndexId InPlacesOfX(IndexId e) {
    if (!pool_.HasVar(e)) return e;
    IndexList axes(static_cast<size_t>(step_.read) + 1, pool_.Const(0));
    axes[step_.read] = pool_.Var(step_.x);
    return SubstituteVars(pool_, e, axes);
  }

  // A place that depends on the step alone gets an axis of its own, on which one element is not 0.
  NodeId Scatter(NodeId g, IndexList place, const Shape& x_shape) {
    Shape shape = graph_.shape(g);
    const size_t rank = shape.size();
    IndexList conditions;
    for (size_t j = 0; j < place.size(); ++j) {
      if (!IsOfStep(place[j], static_cast<int>(j))) continue;
      const IndexId own = pool_.Var(static_cast<int64_t>(shape.size()));
      conditions.push_back(pool_.Condition(IndexKind::kEq, own, place[j]));
      place[j] = own;
      shape.push_back(x_shape[j]);
    }
    if (shape.size() > rank)
      g = graph_.AddReindex(g, shape, graph_.IdentityPlace(rank), NodeId(), conditions);
    return graph_.AddScatter(ReduceOp::kSum, g, x_shape, std::move(place));
  }

  Graph& graph_;
  IndexPool& pool_;
  Algebra& algebra_;
  const StepAxes step_;
};

}  // namespace

NodeId PullBack(Graph& graph, Algebra& algebra, NodeId g, const IndexList& place,
                const Shape& x_shape, const StepAxes& step) {
  return Puller(graph, algebra, step).Run(g, place, x_shape);
}

}  // namespace nestor
