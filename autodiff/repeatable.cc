// A walk over the nodes in their order: operands come first.
#include "autodiff/repeatable.h"

#include <algorithm>

#include "uops/dtype.h"
#include "uops/scalar_rounding.h"

namespace nestor {
namespace {

// A reduction by one of these gives one of its elements.
bool Selects(ReduceOp op) { return op == ReduceOp::kMax || op == ReduceOp::kMin; }

}  // namespace

bool RepeatableValues::Contains(NodeId id) {
  while (static_cast<int>(roundings_.size()) <= id.value) {
    const NodeId next{static_cast<int32_t>(roundings_.size())};
    int most = 0;
    VisitOperands(graph_, next,
                  [&](NodeId operand) { most = std::max(most, roundings_[operand.value]); });
    roundings_.push_back(std::min(most + RoundingsOf(next), kManyRoundings));
  }
  return roundings_[id.value] < kManyRoundings;
}

// Integers and bools are exact.
int RepeatableValues::RoundingsOf(NodeId id) const {
  if (!IsFloat(graph_.type(id))) return 0;
  const Node& node = graph_[id];
  if (const Map* map = absl::get_if<Map>(&node.op)) return nestor::RoundingsOf(map->op);
  if (const Reduce* reduce = absl::get_if<Reduce>(&node.op))
    return Selects(reduce->op) ? 0 : kManyRoundings;
  if (const Scatter* scatter = absl::get_if<Scatter>(&node.op))
    return Selects(scatter->op) ? 0 : kManyRoundings;
  const bool is_recurrent =
      absl::holds_alternative<Recurrence>(node.op) || absl::holds_alternative<Carry>(node.op);
  return is_recurrent ? kManyRoundings : 0;
}

}  // namespace nestor
