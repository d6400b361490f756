#include "fusion/invariance.h"

namespace nestor::fusion {

using loop::Item;
using loop::Loop;
using loop::TensorId;
using loop::Value;
using loop::ValueId;

Invariance::Invariance(const loop::Program& program, const Loop& loop) : program_(program) {
  vars_.insert(loop.var);
  VisitItems(loop.body, [&](const Item& item) {
    if (const Loop* inner = item.As<Loop>()) vars_.insert(inner->var);
    if (const auto* declaration = item.As<loop::Declaration>()) changed_.insert(declaration->tensor);
    if (const auto* statement = item.As<loop::Statement>()) changed_.insert(statement->target.tensor);
  });
}

bool Invariance::Holds(IndexId e) const {
  if (!program_.pool.HasVar(e) && !program_.pool.HasLoad(e)) return true;
  bool holds = true;
  VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
    if (node.kind == IndexKind::kVar) holds = holds && !vars_.contains(node.value);
    if (node.kind == IndexKind::kLoad) holds = holds && !changed_.contains(TensorId{static_cast<int32_t>(node.value)});
  });
  return holds;
}

bool Invariance::Holds(ValueId value) const {
  bool holds = true;
  VisitValues(program_, value, [&](ValueId, const Value& v) {
    if (const auto* index = absl::get_if<loop::IndexValue>(&v.node)) holds = holds && Holds(index->index);
    const auto* load = absl::get_if<loop::LoadValue>(&v.node);
    if (load == nullptr) return;
    holds = holds && !changed_.contains(load->access.tensor);
    for (IndexId e : load->access.place) holds = holds && Holds(e);
    for (IndexId e : load->access.conditions) holds = holds && Holds(e);
  });
  return holds;
}

}  // namespace nestor::fusion
