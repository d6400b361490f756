// A count has no bound in the notation, and so is an i64; but what is counted is mostly divided by,
// as a float. Between two nests it then takes twice the memory, and a loop with an i64 beside floats
// runs in half as many lanes. The same holds of floats that the next op reads as bf16.
//
// One walk notes the type to which each temporary is cast, and drops those that are read in any
// other way.
#include "fusion/narrow_temporaries.h"

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "fusion/gathered.h"
#include "fusion/scopes.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class Narrower {
 public:
  explicit Narrower(Program& program) : program_(program) {}

  bool Run() {
    VisitScopes(program_.body, [&](Scope& scope) {
      for (TensorId tensor : DeclaredIn(scope)) {
        if (program_[tensor].storage == Storage::kTemp) types_[tensor] = absl::nullopt;
      }
    });
    if (types_.empty()) return false;
    VisitStatements(program_, [&](Statement& statement) { Note(statement); });
    DropGathered();
    DropWide();
    if (types_.empty()) return false;
    for (const auto& [tensor, type] : types_) program_[tensor].type = *type;
    VisitStatements(program_, [&](Statement& statement) { Rewrite(statement); });
    return true;
  }

 private:
  void Note(const Statement& statement) {
    if (statement.op) types_.erase(statement.target.tensor);
    for (ValueId root : {statement.value, statement.position}) {
      if (!root.valid()) continue;
      Drop(root);
      VisitValues(program_, root, [&](ValueId, const Value& value) {
        const auto* apply = absl::get_if<ApplyValue>(&value.node);
        if (apply == nullptr) return;
        for (ValueId arg : apply->args)
          apply->op == ScalarOp::kCast ? NoteCast(arg, value.type) : Drop(arg);
      });
    }
  }

  const Access* LoadOf(ValueId id) const {
    const auto* load = absl::get_if<LoadValue>(&program_[id].node);
    return load == nullptr ? nullptr : &load->access;
  }

  void Drop(ValueId id) {
    if (const Access* access = LoadOf(id)) types_.erase(access->tensor);
  }

  void NoteCast(ValueId id, DType type) {
    const Access* access = LoadOf(id);
    if (access == nullptr) return;
    const auto known = types_.find(access->tensor);
    if (known == types_.end()) return;
    if (!known->second) known->second = type;
    if (access->masked || known->second != type) types_.erase(known);
  }

  void DropGathered() {
    Gathered gathered(program_.pool);
    absl::erase_if(types_, [&](const auto& entry) { return gathered.Contains(entry.first); });
  }

  // And those that nothing reads.
  void DropWide() {
    absl::erase_if(types_, [&](const auto& entry) {
      return !entry.second || ByteSize(*entry.second) >= ByteSize(program_[entry.first].type);
    });
  }

  void Rewrite(Statement& statement) {
    statement.value = Rewritten(statement.value);
    if (statement.position.valid()) statement.position = Rewritten(statement.position);
    const auto type = types_.find(statement.target.tensor);
    if (type != types_.end())
      statement.value = program_.AddApply(ScalarOp::kCast, {statement.value}, *type->second);
  }

  // Each cast of such a temporary becomes a read. Operands are rewritten first: a read of the type
  // that the temporary has now is one of those, and what casts it stays.
  ValueId Rewritten(ValueId root) {
    return RewriteValues(program_, root, [&](ValueId id) -> absl::optional<ValueId> {
      const auto* apply = absl::get_if<ApplyValue>(&program_[id].node);
      if (apply == nullptr || apply->op != ScalarOp::kCast) return absl::nullopt;
      const Access* access = LoadOf(apply->args[0]);
      const bool is_old = access != nullptr && types_.contains(access->tensor) &&
                          program_[apply->args[0]].type != program_[access->tensor].type;
      return is_old ? absl::optional<ValueId>(program_.AddLoad(Access(*access))) : absl::nullopt;
    });
  }

  Program& program_;
  // Of each temporary that may become narrow; nullopt: no read was met.
  absl::flat_hash_map<TensorId, absl::optional<DType>> types_;
};

}  // namespace

absl::StatusOr<bool> NarrowTemporaries(Program& program) { return Narrower(program).Run(); }

}  // namespace nestor::loop
