// One walk over the loop's body finds the indices and tensors that it changes; an expression that
// holds none of them is invariant. Most statements hold nothing to ask about, so the walk waits for
// the first question, and answers for values are remembered.
#include "fusion/invariance.h"

#include <algorithm>

namespace nestor::loop {

// The indices of the loop and of those inside, and all tensors that the body declares or changes.
void Invariance::Collect() const {
  if (is_collected_) return;
  is_collected_ = true;
  vars_.insert(loop_.var);
  VisitItems(loop_.body, [&](const Item& item) {
    if (const Loop* inner = item.As<Loop>()) vars_.insert(inner->var);
    if (const auto* declaration = item.As<Declaration>()) changed_.insert(declaration->tensor);
    if (const auto* statement = item.As<Statement>()) changed_.insert(statement->target.tensor);
  });
}

// Whether e keeps its value while the loop runs: it holds no index of the loop or of one inside,
// and gathers only from tensors that nothing in it changes.
bool Invariance::Holds(IndexId e) const {
  if (!program_.pool.HasVar(e) && !program_.pool.HasLoad(e)) return true;
  Collect();
  bool holds = true;
  VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
    if (node.kind == IndexKind::kVar) holds = holds && !vars_.contains(node.value);
    if (node.kind == IndexKind::kLoad)
      holds = holds && !changed_.contains(TensorId{static_cast<int32_t>(node.value)});
  });
  return holds;
}

// A value is invariant if all of its parts are; remembered, since values share parts.
bool Invariance::Holds(ValueId value) const {
  const auto known = known_.find(value.value);
  if (known != known_.end()) return known->second;
  const auto& node = program_[value].node;
  bool holds = true;
  if (const auto* index = absl::get_if<IndexValue>(&node)) holds = Holds(index->index);
  if (const auto* load = absl::get_if<LoadValue>(&node)) holds = HoldsLoad(load->access);
  if (const auto* apply = absl::get_if<ApplyValue>(&node)) {
    holds = std::all_of(apply->args.begin(), apply->args.end(),
                        [&](ValueId arg) { return Holds(arg); });
  }
  known_[value.value] = holds;
  return holds;
}

// Nothing in the loop writes the tensor, and the same element is read each time.
bool Invariance::HoldsLoad(const Access& access) const {
  Collect();
  const auto holds = [&](IndexId e) { return Holds(e); };
  return !changed_.contains(access.tensor) &&
         std::all_of(access.place.begin(), access.place.end(), holds) &&
         std::all_of(access.conditions.begin(), access.conditions.end(), holds) &&
         (!access.fill.valid() || Holds(access.fill));
}

}  // namespace nestor::loop
