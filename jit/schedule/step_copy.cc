// A pass that runs parts of a step apart needs some values of the step here, others there. Each
// part gets its own copies of the scalars that it reads: they are found from what is asked for,
// backward through the body, and defined in the order of the text.
#include "jit/schedule/step_copy.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/dependence.h"

namespace nestor::loop {
namespace {

// Whether a subscript or a condition of the statement is computed from an element of such a tensor,
// or a mask decides whether one is read.
bool ReadsOtherwise(const Program& program, const Item& item, const Statement& statement,
                    const absl::flat_hash_set<TensorId>& tensors) {
  bool reads = false;
  VisitLoads(program, statement.value, [&](ValueId, const Access& access) {
    reads |= access.masked && tensors.contains(access.tensor);
  });
  VisitIndices(program, item, [&](IndexId e) {
    reads |= absl::c_any_of(tensors, [&](TensorId t) { return LoadsFrom(program.pool, e, t); });
  });
  return reads;
}

}  // namespace

bool StepCopy::MayCopy(const Program& program, const Loop& loop) {
  absl::flat_hash_set<TensorId> scalars, unassigned;
  for (TensorId tensor : DeclaredIn(loop.body)) {
    if (!program[tensor].shape.empty()) return false;
    scalars.insert(tensor);
  }
  unassigned = scalars;
  for (const Item& item : loop.body) {
    const auto* statement = item.As<Statement>();
    if (statement != nullptr && program[statement->target.tensor].shape.empty())
      scalars.insert(statement->target.tensor);
  }
  absl::flat_hash_set<TensorId> assigned;
  return absl::c_all_of(loop.body, [&](const Item& item) {
    const auto* statement = item.As<Statement>();
    if (statement == nullptr) return item.As<Declaration>() != nullptr;
    const auto is_late = [&](TensorId t) { return unassigned.contains(t); };
    if (statement->op || absl::c_any_of(FootprintOf(program, item).reads, is_late) ||
        ReadsOtherwise(program, item, *statement, scalars))
      return false;
    const TensorId target = statement->target.tensor;
    if (!scalars.contains(target)) return true;
    unassigned.erase(target);
    return !statement->target.masked && assigned.insert(target).second;
  });
}

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
    VisitLoads(program_, root, [&](ValueId, const Access& access) {
      if (!known_.contains(access.tensor)) wanted.insert(access.tensor);
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
