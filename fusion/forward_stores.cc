// Copy and constant propagation through memory (Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed.
// 2006, sec. 9.1 and 9.4), within one scope and with element addresses compared as written. One
// walk over each scope in order, with the elements whose value is known. When an item changes a
// tensor, what is known about it is forgotten, and so is what is known about elements that hold it,
// if it is a scalar.
//
// Equal subscripts mean equal elements here, as no index changes within a scope; different
// subscripts may still be the same element, which is why any change to a tensor forgets all of it.
#include "fusion/forward_stores.h"

#include <algorithm>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/variant.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

class Forwarder {
 public:
  explicit Forwarder(Program& program) : program_(program), is_written_(program.tensors.size()) {
    VisitItems(program, [&](const Item& item) {
      if (const auto* statement = item.As<Statement>())
        is_written_[Number(statement->target.tensor)] = true;
    });
  }

  bool Run() {
    VisitScopes(program_.body, [&](Scope& scope) { Walk(scope); });
    return changed_;
  }

 private:
  struct Known {
    Access element;
    ValueId value;
  };

  static size_t Number(TensorId tensor) { return static_cast<size_t>(tensor.value); }

  // One scope at a time: nothing is known at its begin, since a loop may come from its own end.
  void Walk(Scope& scope) {
    known_.clear();
    for (Item& item : scope) {
      auto* statement = item.As<Statement>();
      if (statement != nullptr) Forward(*statement);
      if (known_.empty() && statement == nullptr) continue;
      ForgetChanged(item);
      if (statement != nullptr) Remember(*statement);
    }
  }

  void Forward(Statement& statement) {
    statement.value = Forwarded(statement.value);
    if (statement.position.valid()) statement.position = Forwarded(statement.position);
  }

  // Loads of what is known to have been stored become the stored values.
  ValueId Forwarded(ValueId value) {
    return RewriteValues(program_, value, [&](ValueId id) {
      const auto* load = absl::get_if<LoadValue>(&program_[id].node);
      const absl::optional<ValueId> known = load == nullptr ? absl::nullopt : ValueOf(load->access);
      changed_ |= known.has_value();
      return known;
    });
  }

  // The identity for an accumulator that nothing has been added to, or what was stored at just this
  // place.
  absl::optional<ValueId> ValueOf(const Access& access) {
    const TensorInfo& tensor = program_[access.tensor];
    if (access.masked) return absl::nullopt;
    if (tensor.storage == Storage::kAccumulator && !is_written_[Number(access.tensor)] &&
        !IsArg(tensor.op)) {
      return program_.AddConstant(Identity(tensor.op, tensor.type));
    }
    for (const Known& known : known_) {
      if (known.element.tensor == access.tensor && known.element.place == access.place)
        return known.value;
    }
    return absl::nullopt;
  }

  // Constants and scalars only: anything else would be computed twice.
  void Remember(const Statement& statement) {
    const Access& target = statement.target;
    const auto gathers = [&](IndexId e) { return program_.pool.HasLoad(e); };
    if (statement.op || target.masked ||
        std::any_of(target.place.begin(), target.place.end(), gathers))
      return;
    if (IsConstant(statement.value) || (IsScalar(statement.value) && !target.place.empty())) {
      known_.push_back({target, statement.value});
    }
  }

  bool IsConstant(ValueId id) const {
    return absl::holds_alternative<ConstantValue>(program_[id].node);
  }

  bool IsScalar(ValueId id) const {
    const auto* load = absl::get_if<LoadValue>(&program_[id].node);
    return load != nullptr && load->access.place.empty() && !load->access.masked &&
           program_[load->access.tensor].storage == Storage::kTemp;
  }

  // Either the element may have changed, or the scalar that it was stored from.
  void ForgetChanged(const Item& item) {
    if (known_.empty() || NESTOR_MUTANT("forwarded_across_write")) return;
    const Footprint footprint = FootprintOf(program_, item);
    const auto is_changed = [&](const Known& known) {
      return footprint.Changes(known.element.tensor) ||
             (IsScalar(known.value) &&
              footprint.Changes(absl::get<LoadValue>(program_[known.value].node).access.tensor));
    };
    known_.erase(std::remove_if(known_.begin(), known_.end(), is_changed), known_.end());
  }

  Program& program_;
  std::vector<bool> is_written_;  // by tensor
  std::vector<Known> known_;      // of the scope at hand
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> ForwardStores(Program& program) { return Forwarder(program).Run(); }

}  // namespace nestor::loop
