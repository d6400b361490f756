// Rows and steps change places if each tensor that the nest changes has an axis whose subscript is
// the bare row index in all accesses: then rows have no element in common, whatever the steps do,
// and either order of the two loops runs each row's steps in their order.
//
// An element stays in a register if one statement of the loop writes the tensor, in each iteration,
// and all reads are of the element that the iteration before wrote. The element is loaded before
// the first step, unless the loop does not run: then it may not exist.
//
// The first is loop interchange, the second scalar replacement across iterations (Callahan, Carr
// and Kennedy, "Improving register allocation for subscripted variables", 1990) at distance one.
// Longer distances stay in memory, as does a tensor that is read anywhere else in the loop.
#include "jit/schedule/steps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/steps.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// ---- Rows outside of steps

class StepMover {
 public:
  explicit StepMover(Program& program) : program_(program), pool_(program.pool), ranges_(program) {}

  bool Run() {
    return ReplaceLoops(program_, ranges_, [&](Loop& loop) -> absl::optional<Scope> {
      if (!IsMoved(loop)) return absl::nullopt;
      return ScopeOf(Swapped(std::move(loop)));
    });
  }

 private:
  bool IsMoved(const Loop& steps) {
    const Loop* rows = OnlyLoopIn(steps.body);
    if (rows == nullptr || BoundsMoveWith(pool_, *rows, steps.var)) return false;
    return MemoryGain(steps, *rows) > 0 && AreApart(*rows) && RunsInSteps(program_, steps);
  }

  // Moves the steps inside as deep as it pays.
  Loop Swapped(Loop steps) {
    Loop rows = std::move(*steps.body[0].As<Loop>());
    steps.body = std::move(rows.body);
    if (IsMoved(steps)) steps = Swapped(std::move(steps));
    rows.body = ScopeOf(std::move(steps));
    return rows;
  }

  // Whether some axis of each changed tensor has the bare index of `rows` in all accesses.
  bool AreApart(const Loop& rows) {
    const Footprint footprint = FootprintOf(program_, rows.body);
    absl::flat_hash_map<TensorId, std::vector<bool>> walked;  // by axis, of changed tensors
    VisitItems(rows.body, [&](const Item& item) {
      VisitAccesses(
          program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
            if (!footprint.Changes(tensor)) return;
            std::vector<bool>& axes = walked.try_emplace(tensor, place.size(), true).first->second;
            for (size_t axis = 0; axis < place.size(); ++axis)
              axes[axis] = axes[axis] && pool_.VarValue(place[axis]) == rows.var;
          });
    });
    return absl::c_all_of(
        walked, [](const auto& tensor) { return absl::c_linear_search(tensor.second, true); });
  }

  // How many more accesses move along memory with the steps than with the rows.
  int MemoryGain(const Loop& steps, const Loop& rows) {
    int gain = 0;
    VisitItems(rows.body, [&](const Item& item) {
      VisitAccesses(program_, item, [&](TensorId, absl::Span<const IndexId> place, AccessKind) {
        if (place.empty()) return;
        gain += HoldsVar(pool_, place.back(), steps.var) - HoldsVar(pool_, place.back(), rows.var);
      });
    });
    return gain;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges ranges_;
};

// ---- The last step in a register

// In an innermost loop, the step that the next iteration reads is kept in a scalar besides being
// stored: for (t) h[t] = h[t - 1] + x[t] then reads no memory for h[t - 1].
class StepKeeper {
 public:
  explicit StepKeeper(Program& program)
      : program_(program), pool_(program.pool), ranges_(program) {}

  bool Run() {
    return ReplaceLoops(program_, ranges_, [&](Loop& loop) -> absl::optional<Scope> {
      if (loop.step != 1 || !HoldsNoLoop(loop)) return absl::nullopt;
      const Footprint footprint = FootprintOf(program_, loop.body);
      Scope before;
      for (size_t i = 0; i < loop.body.size(); ++i) {
        if (IsKept(loop, i, footprint)) Keep(loop, i, before);
      }
      if (before.empty()) return absl::nullopt;
      Append(before, ScopeOf(std::move(loop)));
      return before;
    });
  }

 private:
  static bool HoldsNoLoop(const Loop& loop) {
    return absl::c_none_of(loop.body, [](const Item& item) { return item.As<Loop>() != nullptr; });
  }

  // Whether item i writes the element that the next iteration reads, and nothing else
  // touches that tensor.
  bool IsKept(const Loop& loop, size_t i, const Footprint& footprint) {
    const auto* statement = loop.body[i].As<Statement>();
    if (statement == nullptr || statement->op || statement->target.masked) return false;
    const Access& target = statement->target;
    if (!footprint.writes.contains(target.tensor) || !footprint.reads.contains(target.tensor))
      return false;
    const IndexList earlier = Earlier(target.place, loop.var);
    if (earlier == target.place) return false;
    if (absl::c_any_of(target.place, [&](IndexId e) { return pool_.HasLoad(e); })) return false;
    int touches = 0, reads = 0;
    for (const Item& item : loop.body) {
      VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind) {
        touches += tensor == target.tensor;
      });
      if (const auto* other = item.As<Statement>())
        reads += CountReads(*other, target.tensor, earlier);
    }
    return reads > 0 && touches == reads + 1;
  }

  // The number of loads of the element at `place` in the statement.
  int CountReads(const Statement& statement, TensorId tensor, const IndexList& place) const {
    int count = 0;
    const auto visit = [&](ValueId, const Value& value) {
      const auto* load = absl::get_if<LoadValue>(&value.node);
      if (load == nullptr || load->access.tensor != tensor) return;
      count += !load->access.masked && load->access.place == place;
    };
    VisitValues(program_, statement.value, visit);
    if (statement.position.valid()) VisitValues(program_, statement.position, visit);
    return count;
  }

  // The place one iteration before.
  IndexList Earlier(const IndexList& place, int32_t var) {
    VarReplacement replace(program_);
    replace.Set(var, pool_.Sub(pool_.Var(var), pool_.Const(1)));
    IndexList earlier;
    for (IndexId e : place) earlier.push_back(replace(e));
    return earlier;
  }

  TensorId AddScalar(absl::string_view name, DType type) {
    return program_.AddTensor({std::string(name), type, {}, Storage::kTemp});
  }

  // Puts `now = value` before the store, `last = now` at the end of the body, and replaces loads of
  // the element before by `last`.
  void Keep(Loop& loop, size_t i, Scope& before) {
    Statement& store = *loop.body[i].As<Statement>();
    const Access target = store.target;
    const DType type = program_[target.tensor].type;
    const IndexList earlier = Earlier(target.place, loop.var);
    const TensorId last = AddScalar("last", type), now = AddScalar("now", type);
    VarReplacement first(program_);
    first.Set(loop.var, loop.begin);
    IndexList start;
    for (IndexId e : earlier) start.push_back(first(e));
    before.push_back(DeclarationOf(last));
    const ValueId zero = program_.AddConstant(Scalar::Zero(type));
    const IndexId runs = pool_.Condition(IndexKind::kLt, loop.begin, loop.end);
    Append(before,
           Assignment(last, {},
                      program_.AddLoad({target.tensor, std::move(start), true, zero, {runs}})));
    const ValueId kept = program_.AddLoad({last, {}});
    for (Item& item : loop.body) {
      auto* statement = item.As<Statement>();
      if (statement != nullptr) RedirectReads(*statement, target.tensor, kept);
    }
    const ValueId value = program_.AddLoad({now, {}});
    Scope compute = {DeclarationOf(now)};
    Append(compute, Assignment(now, {}, store.value));
    store.value = value;
    Insert(loop.body, i, std::move(compute));
    if (!NESTOR_MUTANT("last_step_is_the_first")) Append(loop.body, Assignment(last, {}, value));
  }

  void RedirectReads(Statement& statement, TensorId tensor, ValueId kept) {
    const auto redirect = [&](ValueId id) -> absl::optional<ValueId> {
      const auto* load = absl::get_if<LoadValue>(&program_[id].node);
      if (load == nullptr || load->access.tensor != tensor) return absl::nullopt;
      return kept;
    };
    statement.value = RewriteValues(program_, statement.value, redirect);
    if (statement.position.valid())
      statement.position = RewriteValues(program_, statement.position, redirect);
  }

  Program& program_;
  IndexPool& pool_;
  Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> MoveStepsInside(Program& program) { return StepMover(program).Run(); }

absl::StatusOr<bool> KeepLastStep(Program& program) { return StepKeeper(program).Run(); }

}  // namespace nestor::loop
