// The adjoint of a recurrence is a recurrence that runs the other way. Its carries are what the
// reads of earlier steps hand back: the adjoint of the read, one lag later.
//
//   h[t] = a[t] * h[t-1] + b[t]     s[t] = a[t+1] * (g_h[t+1] + s[t+1]), backward in t
//                                   g_b[t] = g_h[t] + s[t],  g_a[t] = g_b[t] * h[t-1]
//
// A step's own value is taken from outside, where it is computed for all steps at once from whole
// tensors that the recurrence gives (those that are read at earlier steps).
#include "autodiff/adjoint_recurrence.h"

#include <algorithm>

#include "autodiff/chain_rule.h"
#include "uops/mutant.h"

namespace nestor {

AdjointRecurrence::AdjointRecurrence(Graph& graph, Algebra& algebra, const Recurrence& forward)
    : graph_(graph), pool_(graph.pool()), algebra_(algebra), forward_(forward),
      steps_(StepsOf(graph, forward)) {
  FindValues();
}

NodeId AdjointRecurrence::ValueOf(NodeId x) const {
  const auto it = values_.find(x);
  return it == values_.end() ? x : it->second;
}

IndexId AdjointRecurrence::ValueOf(IndexId e) const {
  return ReplaceLoads(
      pool_, e, [&](int64_t node) { return ValueOf(NodeId{static_cast<int32_t>(node)}).value; });
}

StepAxes AdjointRecurrence::AxesOf(NodeId step, NodeId x) const {
  const auto stepped = steps_.axes.find(x);
  return stepped == steps_.axes.end() ? StepAxes()
                                      : StepAxes{steps_.axes.at(step), stepped->second};
}

// Rebuilds the steps with a view of the finished carry for each read of an earlier step.
void AdjointRecurrence::FindValues() {
  for (size_t k = 0; k < forward_.carries.size(); ++k) {
    const NodeId view = graph_.AddRecurrence(forward_.bodies[k], forward_.carries, forward_.bodies);
    values_[forward_.bodies[k]] = view;  // not in one statement: a reference into the map moves
    values_[forward_.carries[k]] = view;
  }
  for (NodeId step : steps_.nodes) {
    if (values_.contains(step)) continue;
    const auto image = [&](NodeId x) { return ValueOf(x); };
    const auto index = [&](IndexId e) { return ValueOf(e); };
    const NodeId value =
        Rebuild(graph_, step, graph_, {image, index, [](int64_t tag) { return tag; }});
    values_[step] = value;
  }
}

NodeId AdjointRecurrence::CarryReadBy(NodeId step) const {
  const Reindex* read = graph_.As<Reindex>(step);
  return read != nullptr && graph_.As<Carry>(read->x) != nullptr ? read->x : NodeId();
}

absl::optional<Contribution> AdjointRecurrence::Expect(NodeId step) {
  const Reindex read = *graph_.As<Reindex>(step);  // copies: the graph grows
  const Carry from = *graph_.As<Carry>(read.x);
  const IndexId lag = *LagOf(pool_, read.place[from.axis], steps_.axes.at(step), from.backward);
  // Lags hold no index, so equal expressions are equal numbers.
  const auto known = std::find_if(handed_.begin(), handed_.end(), [&](const HandedBack& handed) {
    return handed.from == read.x && handed.lag == lag;
  });
  reads_[step] = static_cast<size_t>(known - handed_.begin());
  if (known != handed_.end()) return absl::nullopt;
  const Shape shape = graph_.shape(read.x);
  const NodeId carry = graph_.AddCarry(graph_.type(read.x), shape, from.axis, !from.backward);
  handed_.push_back({read.x, lag, {carry, NodeId()}});
  IndexList later = graph_.IdentityPlace(shape.size());
  IndexId& at = later[from.axis];
  at = from.backward ? pool_.Sub(at, lag) : pool_.Add(at, lag);
  const auto number = std::find(forward_.carries.begin(), forward_.carries.end(), read.x) -
                      forward_.carries.begin();
  const uint8_t mask = kZeroed | (HoldsMulz() ? kUnbridled : kUnmasked);
  return Contribution{forward_.bodies[number], graph_.AddReindex(carry, shape, later), mask};
}

bool AdjointRecurrence::HoldsMulz() const {
  return std::any_of(values_.begin(), values_.end(), [&](const auto& value) {
    const Map* map = graph_.As<Map>(value.first);
    return map != nullptr && map->op == ScalarOp::kMulz;
  });
}

void AdjointRecurrence::HandBack(NodeId step, NodeId adjoint) {
  const Reindex read = *graph_.As<Reindex>(step);
  const int axis = steps_.axes.at(step), carry_axis = graph_.As<Carry>(read.x)->axis;
  IndexList place;
  for (IndexId e : read.place) place.push_back(ValueOf(e));
  place[carry_axis] = pool_.Var(axis);
  const NodeId pulled =
      PullBack(graph_, algebra_, adjoint, place, Shape(graph_.shape(read.x)), {axis, carry_axis});
  NodeId& sum = handed_[reads_.at(step)].equation.body;
  sum = sum.valid() && !NESTOR_MUTANT("reads_of_a_step_assigned") ? algebra_.Add(sum, pulled)
                                                                  : pulled;
}

// A carry to which nothing was handed back is 0.
std::vector<Equation> AdjointRecurrence::Equations() {
  std::vector<Equation> equations;
  for (const HandedBack& handed : handed_) {
    const auto& [carry, body] = handed.equation;
    const NodeId zero = algebra_.Splat(0.0, graph_.type(carry), Shape(graph_.shape(carry)));
    equations.push_back({carry, body.valid() ? body : zero});
  }
  return equations;
}

}  // namespace nestor
