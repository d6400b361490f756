// From the outermost scope inwards: before a loop stands what is invariant in it as a
// whole, so that each expression leaves all the loops that it can at once. Copies of
// an expression become one temporary.
#include "fusion/hoist.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fusion/invariance.h"
#include "fusion/scopes.h"
#include "fusion/value_numbers.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::fusion {
namespace {

using loop::Item;
using loop::LoadValue;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::TensorId;
using loop::Value;
using loop::ValueId;

// What one loop's body computes and does not change.
class Invariants {
 public:
  // `written`: what statements of the scopes around have stored to before the loop.
  Invariants(Program& program, loop::Ranges& ranges, const std::vector<loop::Access>& written, const Loop& loop)
      : program_(program), ranges_(ranges), written_(written), numbers_(program), invariance_(program, loop) {}

  ValueId Extract(ValueId id) {
    if (!absl::holds_alternative<loop::ApplyValue>(program_[id].node)) return id;
    if (invariance_.Holds(id) && IsSafe(id)) return TemporaryFor(id);
    const loop::ApplyValue apply = absl::get<loop::ApplyValue>(program_[id].node);
    const DType type = program_[id].type;
    auto args = apply.args;
    for (ValueId& arg : args) arg = Extract(arg);
    return args == apply.args ? id : program_.AddApply(apply.op, args, type);
  }

  // The temporaries, each with the value that it is assigned.
  const std::vector<std::pair<TensorId, ValueId>>& extracted() const { return extracted_; }

 private:
  // It has a value before the loop, also where the loop runs no iteration.
  bool IsSafe(ValueId id) {
    bool safe = true;
    VisitValues(program_, id, [&](ValueId, const Value& value) {
      if (const auto* index = absl::get_if<loop::IndexValue>(&value.node)) {
        const IndexId e = index->index;
        safe = safe && ranges_.Defined(e);
      }
      const auto* load = absl::get_if<LoadValue>(&value.node);
      if (load == nullptr || load->access.masked) return;
      const loop::Access access = load->access;
      safe = safe && IsWritten(access) && ranges_.InRange(access.place, program_[access.tensor].shape);
    });
    return safe;
  }

  // Also where loops before this one run no iteration.
  bool IsWritten(const loop::Access& access) const {
    const loop::Storage storage = program_[access.tensor].storage;
    if (storage == loop::Storage::kInput || storage == loop::Storage::kAccumulator) return true;
    return std::any_of(written_.begin(), written_.end(), [&](const loop::Access& w) {
      return w.tensor == access.tensor && w.place == access.place;
    });
  }

  ValueId TemporaryFor(ValueId id) {
    const auto [it, is_new] = temporaries_.try_emplace(numbers_.Of(id));
    if (is_new) {
      it->second = program_.AddTensor({"h", program_[id].type, {}, loop::Storage::kTemp});
      extracted_.emplace_back(it->second, id);
    }
    return program_.AddLoad({it->second});
  }

  Program& program_;
  loop::Ranges& ranges_;
  const std::vector<loop::Access>& written_;
  ValueNumbers numbers_;
  const Invariance invariance_;
  absl::flat_hash_map<int, TensorId> temporaries_;  // by number
  std::vector<std::pair<TensorId, ValueId>> extracted_;
};

class Hoister {
 public:
  explicit Hoister(Program& program) : program_(program), ranges_(program) {}

  // `declared`: takes what the scope must declare; null: it declares it itself.
  bool Run(Scope& scope, std::vector<TensorId>* declared) {
    const size_t known = written_.size();
    bool changed = false;
    Scope result;
    for (Item& item : scope) {
      if (Loop* loop = item.As<Loop>()) {
        changed |= HoistOutOf(*loop, result, declared);
        ranges_.Enter(*loop);
        changed |= Run(loop->body, nullptr);
        ranges_.Leave();
      }
      Note(item);
      result.push_back(std::move(item));
    }
    scope = std::move(result);
    written_.resize(known);
    return changed;
  }

 private:
  void Note(const Item& item) {
    const auto* statement = item.As<Statement>();
    if (statement != nullptr && !statement->op && !statement->target.masked) written_.push_back(statement->target);
  }

  bool HoistOutOf(Loop& loop, Scope& before, std::vector<TensorId>* declared) {
    Invariants invariants(program_, ranges_, written_, loop);
    VisitStatements(loop.body, [&](Statement& statement) {
      statement.value = invariants.Extract(statement.value);
      if (statement.position.valid()) statement.position = invariants.Extract(statement.position);
    });
    for (const auto& [tensor, value] : invariants.extracted()) {
      if (declared != nullptr) declared->push_back(tensor);
      else before.push_back(DeclarationOf(tensor));
      before.push_back(AssignmentOf(tensor, value));
      written_.push_back({tensor});
    }
    return !invariants.extracted().empty();
  }

  Program& program_;
  loop::Ranges ranges_;
  std::vector<loop::Access> written_;  // by the statements before, in the scopes around
};

}  // namespace

absl::StatusOr<bool> HoistInvariants(Program& program) {
  Hoister hoister(program);
  return RewriteTopScopes(program, [&](Scope& scope, bool is_program) {
    return hoister.Run(scope, is_program ? &program.temps : nullptr);
  });
}

}  // namespace nestor::fusion
