// Loop-invariant code motion (Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed. 2006, sec. 9.5) for
// scalar values. Works from the outermost scope inwards: before a loop it places the values that
// are invariant in the whole loop, so that each expression leaves all the loops that it can at
// once. Copies of an expression become one temporary.
//
// A value may be computed before a loop only if it may be computed at all there, though the loop
// may have no iteration: its loads must be proven in range and written (Written), since an element
// of a temporary that nothing has stored to has no value.
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
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// The elements that statements of the scopes around have stored to, unmasked.
class Written {
 public:
  size_t size() const { return stores_.size(); }

  void Add(const Access& access) {
    stores_.push_back(access);
    ++of_tensor_[access.tensor].emplace(access.place, 0).first->second;
  }

  // Forgets all but the first `size`.
  void Truncate(size_t size) {
    for (; stores_.size() > size; stores_.pop_back())
      --of_tensor_[stores_.back().tensor][stores_.back().place];
  }

  bool Holds(const Access& access) const {
    const auto places = of_tensor_.find(access.tensor);
    if (places == of_tensor_.end()) return false;
    const auto count = places->second.find(access.place);
    return count != places->second.end() && count->second > 0;
  }

 private:
  std::vector<Access> stores_;
  // How many, by place.
  absl::flat_hash_map<TensorId, absl::flat_hash_map<IndexList, int>> of_tensor_;
};

enum class Hoisted { kAll, kFromWide };

// The values that one loop's body computes and does not change.
class Invariants {
 public:
  // `written`: before the loop.
  Invariants(Program& program, Ranges& ranges, const Written& written, const Loop& loop,
             Hoisted hoisted)
      : program_(program), ranges_(ranges), written_(written), hoisted_(hoisted), numbers_(program),
        invariance_(program, loop) {}

  // The largest invariant expressions: where one is taken, what is in it is not looked at.
  ValueId Extract(ValueId id) {
    if (!absl::holds_alternative<ApplyValue>(program_[id].node)) return id;
    if (IsHoisted(id) && invariance_.Holds(id) && IsSafe(id)) return TemporaryFor(id);
    const ApplyValue apply = absl::get<ApplyValue>(program_[id].node);
    const DType type = program_[id].type;
    auto args = apply.args;
    for (ValueId& arg : args) arg = Extract(arg);
    return args == apply.args ? id : program_.AddApply(apply.op, args, type);
  }

  // The temporaries, each with the value that it is assigned.
  const std::vector<std::pair<TensorId, ValueId>>& extracted() const { return extracted_; }

 private:
  bool IsHoisted(ValueId id) const {
    if (hoisted_ == Hoisted::kAll) return true;
    constexpr int kWide = 8;
    const auto& apply = absl::get<ApplyValue>(program_[id].node);
    return ByteSize(program_[id].type) < kWide &&
           ByteSize(program_[apply.args.back()].type) == kWide;
  }

  // It has a value before the loop, also where the loop runs no iteration.
  bool IsSafe(ValueId id) {
    const auto known = safe_.find(id.value);
    if (known != safe_.end()) return known->second;
    const bool safe =
        absl::visit([&](const auto& node) { return IsSafeNode(node); }, program_[id].node);
    safe_[id.value] = safe;
    return safe;
  }

  bool IsSafeNode(const ConstantValue&) { return true; }
  bool IsSafeNode(const ParamValue&) { return true; }
  bool IsSafeNode(const IndexValue& index) { return ranges_.Defined(index.index); }
  bool IsSafeNode(const ApplyValue& apply) {
    return std::all_of(apply.args.begin(), apply.args.end(),
                       [&](ValueId arg) { return IsSafe(arg); });
  }
  bool IsSafeNode(const LoadValue& load) {
    const Access& access = load.access;
    if (access.masked) return IsSafe(access.fill);
    if (NESTOR_MUTANT("hoisted_out_of_empty_loop")) return true;
    return IsWritten(access) && ranges_.InRange(access.place, program_[access.tensor].shape);
  }

  // Whether it is written even if loops before this one run no iteration.
  bool IsWritten(const Access& access) const {
    const Storage storage = program_[access.tensor].storage;
    if (storage == Storage::kInput || storage == Storage::kAccumulator) return true;
    return written_.Holds(access);
  }

  // Equal expressions, by their value numbers, share a temporary.
  ValueId TemporaryFor(ValueId id) {
    const auto [it, is_new] = temporaries_.try_emplace(numbers_.Of(id));
    if (is_new) {
      it->second = program_.AddTensor({"h", program_[id].type, {}, Storage::kTemp});
      extracted_.emplace_back(it->second, id);
    }
    return program_.AddLoad({it->second});
  }

  Program& program_;
  Ranges& ranges_;
  const Written& written_;
  const Hoisted hoisted_;
  ValueNumbers numbers_;
  const Invariance invariance_;
  absl::flat_hash_map<int32_t, bool> safe_;         // by value
  absl::flat_hash_map<int, TensorId> temporaries_;  // by number
  std::vector<std::pair<TensorId, ValueId>> extracted_;
};

class Hoister {
 public:
  Hoister(Program& program, Hoisted hoisted)
      : program_(program), ranges_(program), hoisted_(hoisted) {}

  bool Run(Scope& scope) {
    const size_t known = written_.size();
    bool changed = false;
    Scope result;
    for (Item& item : scope) {
      if (Loop* loop = item.As<Loop>()) {
        if (MayHoistOutOf(*loop, scope)) changed |= HoistOutOf(*loop, result);
        ranges_.Enter(*loop);
        ++depth_;
        changed |= Run(loop->body);
        --depth_;
        ranges_.Leave();
      }
      Note(item);
      result.push_back(std::move(item));
    }
    scope = std::move(result);
    written_.Truncate(known);
    return changed;
  }

 private:
  // Wide values stay in the loop at the top, which threads may share out, and do not come between
  // the loops of a perfect nest, which can be cut into pieces as one loop.
  bool MayHoistOutOf(const Loop& loop, const Scope& around) const {
    if (hoisted_ == Hoisted::kAll) return true;
    const bool is_innermost = std::none_of(loop.body.begin(), loop.body.end(),
                                           [](const Item& i) { return i.As<Loop>() != nullptr; });
    return depth_ > 0 && (is_innermost || around.size() > 1);
  }

  void Note(const Item& item) {
    const auto* statement = item.As<Statement>();
    if (statement != nullptr && !statement->op && !statement->target.masked)
      written_.Add(statement->target);
  }

  // Takes the invariants out of all statements in the loop, at any depth.
  bool HoistOutOf(Loop& loop, Scope& before) {
    Invariants invariants(program_, ranges_, written_, loop, hoisted_);
    VisitStatements(loop.body, [&](Statement& statement) {
      statement.value = invariants.Extract(statement.value);
      if (statement.position.valid()) statement.position = invariants.Extract(statement.position);
    });
    for (const auto& [tensor, value] : invariants.extracted()) {
      before.push_back(DeclarationOf(tensor));
      before.push_back(AssignmentOf(tensor, value));
      written_.Add({tensor});
    }
    return !invariants.extracted().empty();
  }

  Program& program_;
  Ranges ranges_;
  const Hoisted hoisted_;
  int depth_ = 0;    // loops around
  Written written_;  // by the statements before, in the scopes around
};

bool Hoist(Program& program, Hoisted hoisted) {
  return Hoister(program, hoisted).Run(program.body);
}

}  // namespace

absl::StatusOr<bool> HoistInvariants(Program& program) { return Hoist(program, Hoisted::kAll); }

absl::StatusOr<bool> HoistFromWide(Program& program) { return Hoist(program, Hoisted::kFromWide); }

}  // namespace nestor::loop
