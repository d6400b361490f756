// Local value numbering (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970;
// Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed. 2006, sec. 6.1 and 8.5), scope by scope. A load
// carries the version of its tensor, so that loads before and after a change differ.
//
// Two walks over a scope with value numbers. The first counts how often each application is used:
// once per application that it is an operand of, however often that one occurs, and once per
// statement. The second gives each application that is used twice a temporary where it occurs
// first. So of exp(x) + exp(x)*y only exp(x) gets one, and the parts of exp(x) do not: they are
// used once, by it.
//
// Both walks see the same numbers, as both note the same changes in the same order.
#include "fusion/common_subexpressions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fusion/scopes.h"
#include "fusion/value_numbers.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// Numbers the values of a scope's statements in order.
class NumberedWalk {
 public:
  explicit NumberedWalk(const Program& program) : program_(program), numbers_(program) {}

  int Of(ValueId id) { return numbers_.Of(id); }

  // After an item: notes what it has changed, and which values are known where it stored.
  void Pass(const Item& item) {
    const auto* statement = item.As<Statement>();
    if (statement == nullptr) {
      for (TensorId tensor : Sorted(FootprintOf(program_, item))) numbers_.Change(tensor);
      return;
    }
    const Access& target = statement->target;
    const int number = numbers_.Of(statement->value);
    numbers_.Change(target.tensor);
    const bool gathers = std::any_of(target.place.begin(), target.place.end(),
                                     [&](IndexId e) { return program_.pool.HasLoad(e); });
    if (!statement->op && !target.masked && !gathers && IsApplication(statement->value))
      numbers_.Alias(target, number);
  }

  bool IsApplication(ValueId id) const {
    return absl::holds_alternative<ApplyValue>(program_[id].node);
  }

 private:
  static std::vector<TensorId> Sorted(const Footprint& footprint) {
    std::vector<TensorId> changed(footprint.writes.begin(), footprint.writes.end());
    changed.insert(changed.end(), footprint.accumulates.begin(), footprint.accumulates.end());
    return changed;  // in any order: each only counts a version up
  }

  const Program& program_;
  ValueNumbers numbers_;
};

bool TakesPart(const Item& item) {
  const auto* statement = item.As<Statement>();
  return statement != nullptr && !statement->target.masked;
}

class ScopeEliminator {
 public:
  ScopeEliminator(Program& program, Scope& scope) : program_(program), scope_(scope) {}

  bool Run() {
    Count();
    if (!AnyShared()) return false;
    NumberedWalk walk(program_);
    Scope result;
    for (Item& item : scope_) {
      const Item original = item;
      if (TakesPart(item)) Rewrite(*item.As<Statement>(), walk, result);
      result.push_back(std::move(item));
      walk.Pass(original);
    }
    scope_ = std::move(result);
    if (!declared_.empty()) Declare(program_, scope_, declared_);
    return changed_;
  }

 private:
  // ---- Counting

  // How often each value number is used in the scope, since only one that is used twice is worth a
  // tensor.
  void Count() {
    CountWrites();
    NumberedWalk walk(program_);
    for (const Item& item : scope_) {
      if (TakesPart(item)) {
        const Statement& statement = *item.As<Statement>();
        Use(statement.value, walk);
        if (statement.position.valid()) Use(statement.position, walk);
      }
      walk.Pass(item);
    }
  }

  // A load whose value is known counts as that value, except for a load of a temporary that holds
  // nothing else.
  void Use(ValueId id, NumberedWalk& walk) {
    if (LoadsHolder(id)) return;
    const int number = walk.Of(id);
    const auto* apply = absl::get_if<ApplyValue>(&program_[id].node);
    ++uses_[number];
    if (apply == nullptr) return;
    if (applied_.insert(number).second) {
      const auto args = apply->args;
      for (ValueId arg : args) Use(arg, walk);
    }
  }

  // Scalars that are assigned once look like those that this pass makes.
  bool IsHolder(const Access& access) const {
    const auto it = writes_.find(access.tensor);
    return access.place.empty() && !access.masked && it != writes_.end() && it->second == 1 &&
           program_[access.tensor].storage == Storage::kTemp;
  }

  bool LoadsHolder(ValueId id) const {
    const auto* load = absl::get_if<LoadValue>(&program_[id].node);
    return load != nullptr && IsHolder(load->access);
  }

  void CountWrites() {
    VisitItems(scope_, [&](const Item& item) {
      if (const auto* statement = item.As<Statement>()) ++writes_[statement->target.tensor];
    });
  }

  bool IsShared(int number) const {
    const auto it = uses_.find(number);
    return it != uses_.end() && it->second >= 2 && applied_.contains(number);
  }

  bool AnyShared() const {
    for (const auto& [number, count] : uses_) {
      if (IsShared(number)) return true;
    }
    return false;
  }

  // ---- Rewriting

  // A statement that stores a shared value anyway becomes its holder, instead of a new tensor.
  void Rewrite(Statement& statement, NumberedWalk& walk, Scope& before) {
    const int number = walk.Of(statement.value);
    if (!statement.op && IsHolder(statement.target) && IsShared(number) &&
        !holders_.contains(number)) {
      statement.value = WithSharedArgs(statement.value, walk, before);
      holders_[number] = statement.target.tensor;
    } else {
      statement.value = Shared(statement.value, walk, before);
    }
    if (statement.position.valid()) statement.position = Shared(statement.position, walk, before);
  }

  // The value, or a load of the temporary that holds it, which is made at the first use.
  ValueId Shared(ValueId id, NumberedWalk& walk, Scope& before) {
    if (LoadsHolder(id)) return id;
    const int number = walk.Of(id);
    if (!IsShared(number)) return WithSharedArgs(id, walk, before);
    changed_ = true;
    const auto it = holders_.find(number);
    if (it != holders_.end()) return program_.AddLoad({it->second});
    const ValueId value = WithSharedArgs(id, walk, before);
    const TensorId holder = program_.AddTensor({"s", program_[id].type, {}, Storage::kTemp});
    declared_.push_back(holder);
    holders_[number] = holder;
    before.push_back(AssignmentOf(holder, value));
    return program_.AddLoad({holder});
  }

  ValueId WithSharedArgs(ValueId id, NumberedWalk& walk, Scope& before) {
    if (!walk.IsApplication(id)) return id;
    const ApplyValue apply = absl::get<ApplyValue>(program_[id].node);
    const DType type = program_[id].type;
    auto args = apply.args;
    for (ValueId& arg : args) arg = Shared(arg, walk, before);
    return args == apply.args ? id : program_.AddApply(apply.op, args, type);
  }

  Program& program_;
  Scope& scope_;
  absl::flat_hash_map<TensorId, int> writes_;   // in the scope and below
  absl::flat_hash_map<int, int> uses_;          // by number
  absl::flat_hash_set<int> applied_;            // numbers of applications
  absl::flat_hash_map<int, TensorId> holders_;  // by number
  std::vector<TensorId> declared_;
  bool changed_ = false;
};

}  // namespace

// Scope by scope: a temporary may serve only the scope whose tensors its value reads.
absl::StatusOr<bool> EliminateCommonSubexpressions(Program& program) {
  bool changed = false;
  VisitScopes(program.body, [&](Scope& scope) {
    if (ScopeEliminator(program, scope).Run()) changed = true;
  });
  return changed;
}

}  // namespace nestor::loop
