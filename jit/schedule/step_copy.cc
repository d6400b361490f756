// A pass that runs parts of a step apart needs some values of the step here, others there. Each
// part gets its own copies of the scalars that it reads: they are found from what is asked for,
// backward through the body, and defined in the order of the text.
#include "jit/schedule/step_copy.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"

namespace nestor::loop {

StepCopy::StepCopy(Program& program, const Loop& loop, IndexId at)
    : program_(program), loop_(loop), replace_(program) {
  replace_.Set(loop.var, at);
}

ValueId StepCopy::Value(ValueId value, Scope& scope) {
  Define(value, scope);
  const ValueId copy = RewriteValues(program_, value, [&](ValueId id) -> absl::optional<ValueId> {
    const auto* load = absl::get_if<LoadValue>(&program_[id].node);
    const auto known = load == nullptr ? known_.end() : known_.find(load->access.tensor);
    return known == known_.end() ? absl::nullopt : absl::optional<ValueId>(known->second);
  });
  return RewriteIndices(program_, copy, [&](IndexId e) { return replace_(e); });
}

void StepCopy::Stores(Scope& scope) {
  for (const Item& item : loop_.body) {
    const auto* statement = item.As<Statement>();
    if (statement == nullptr || program_[statement->target.tensor].shape.empty()) continue;
    const ValueId value = Value(statement->value, scope);
    scope.push_back(item);
    Statement& copy = *scope.back().As<Statement>();
    copy.value = value;
    copy.target =
        RewriteAccess(program_, statement->target, [&](IndexId e) { return replace_(e); });
  }
}

// Defines the loop's own scalars that the value reads, in the order of the text.
void StepCopy::Define(ValueId value, Scope& scope) {
  absl::flat_hash_set<TensorId> wanted;
  const auto want = [&](ValueId root) {
    VisitValues(program_, root, [&](ValueId, const loop::Value& v) {
      const auto* load = absl::get_if<LoadValue>(&v.node);
      if (load != nullptr && !known_.contains(load->access.tensor))
        wanted.insert(load->access.tensor);
    });
  };
  want(value);
  std::vector<const Statement*> definitions;
  for (auto item = loop_.body.rbegin(); item != loop_.body.rend(); ++item) {
    const auto* statement = item->As<Statement>();
    if (statement == nullptr || !wanted.contains(statement->target.tensor)) continue;
    definitions.push_back(statement);
    want(statement->value);
  }
  for (size_t i = definitions.size(); i-- > 0;) {
    TensorInfo info = program_[definitions[i]->target.tensor];
    const TensorId copy = program_.AddTensor(std::move(info));
    const ValueId computed = Value(definitions[i]->value, scope);
    scope.push_back(DeclarationOf(copy));
    scope.push_back(AssignmentOf(copy, computed));
    known_[definitions[i]->target.tensor] = program_.AddLoad({copy, {}});
  }
}

}  // namespace nestor::loop
