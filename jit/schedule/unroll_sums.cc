// Complete unrolling of a short reduction, as over a window of 3 x 3: the sum becomes one
// expression that starts at the identity and adds the steps from left to right. The accumulator
// becomes a scalar that is assigned once, so that the loop around has no inner loop and can run in
// lanes. The size of the expression is bounded by kMostSteps times kMostOperations.
//
// Of a longer sum over a masked window, as of 7 x 7, the innermost loop alone is written out, into
// as many statements: the mask of a place in a row is then the same in all rows, and made once.
#include "jit/schedule/unroll_sums.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/cost/work.h"
#include "fusion/scopes.h"
#include "jit/schedule/attributes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "uops/graph.h"

namespace nestor::loop {
namespace {

constexpr int64_t kMostSteps = 25;      // a window of 5 x 5
constexpr int kMostOperations = 3;      // of a step
constexpr int64_t kMostOfWindow = 121;  // steps of a sum whose rows are written out: 11 x 11

class SumUnroller {
 public:
  explicit SumUnroller(Program& program) : program_(program), pool_(program.pool) {}

  // Outer loops first: a nest that is a short sum as a whole is written out as a whole.
  bool Run(Scope& scope) {
    bool changed = false;
    for (size_t i = 0; i < scope.size(); ++i) {
      Loop* loop = scope[i].As<Loop>();
      const auto* step = scope[i].As<Statement>();
      if (step != nullptr && IsStepOfSum(*step, scope)) {
        scope[i] = WrittenOut(*step);
        changed = true;
      }
      if (loop == nullptr || ScheduledOf(*loop) == Scheduled::kAll) continue;
      const auto steps = StepsOfSum(*loop, scope);
      if (steps && *steps <= kMostSteps) scope[i] = WrittenOut(*loop);
      else if (steps && HoldsMaskedRows(*loop)) WriteOutRows(*loop);
      else if (!Run(loop->body)) continue;
      changed = true;
    }
    return changed;
  }

 private:
  // The number of steps of the loop if it is a sum into a scalar that nothing else in `scope`, which
  // declares it, changes, of few steps with little work each.
  absl::optional<int64_t> StepsOfSum(const Loop& loop, const Scope& scope) const {
    const Statement* step = OnlyStatementIn(loop);
    const bool is_short = step != nullptr && IsStepOfSum(*step, scope) &&
                          OperationsOf(program_, step->value) <= kMostOperations;
    const auto steps = is_short ? StepsOf(loop) : absl::nullopt;
    return steps && *steps > 0 && *steps <= kMostOfWindow ? steps : absl::nullopt;
  }

  // Whether the statement sums into a scalar that `scope` declares, and nothing but the item that
  // holds the statement changes there, or reads before.
  bool IsStepOfSum(const Statement& step, const Scope& scope) const {
    if (!step.op || IsArg(*step.op) || step.target.masked) return false;
    const TensorId sum = step.target.tensor;
    const bool is_scalar =
        program_[sum].storage == Storage::kAccumulator && program_[sum].shape.empty();
    const bool declares = absl::c_any_of(scope, [&](const Item& item) {
      const auto* declaration = item.As<Declaration>();
      return declaration != nullptr && declaration->tensor == sum;
    });
    if (!is_scalar || !declares) return false;
    const auto touches = [&](const Item& item) { return FootprintOf(program_, item).Touches(sum); };
    const auto changes = [&](const Item& item) { return FootprintOf(program_, item).Changes(sum); };
    const auto first = absl::c_find_if(scope, touches);
    return absl::c_count_if(scope, changes) == 1 && changes(*first) &&
           !FootprintOf(program_, *first).reads.contains(sum);
  }

  // The number of steps; nullopt where it is unknown, or large.
  absl::optional<int64_t> StepsOf(const Loop& loop) const {
    const auto begin = pool_.ConstValue(loop.begin), end = pool_.ConstValue(loop.end);
    if (!begin || !end || loop.step != 1 || *end - *begin > kMostSteps) return absl::nullopt;
    const Loop* inner = loop.body[0].As<Loop>();
    const auto inside = inner == nullptr ? absl::optional<int64_t>(1) : StepsOf(*inner);
    if (!inside) return absl::nullopt;
    return (*end - *begin) * *inside;
  }

  // s = identity; for k < 3 { s += x[k] } becomes s = identity + x[0] + x[1] + x[2], from the left.
  Item WrittenOut(const Loop& loop) {
    const Statement& step = *OnlyStatementIn(loop);
    ValueId sum = IdentityOf(step);
    AddSteps(loop, step, {}, sum);
    return Assigned(step.target.tensor, sum);
  }

  // The same for a sum of one step.
  Item WrittenOut(const Statement& step) {
    return Assigned(step.target.tensor, Sum(step, IdentityOf(step), step.value));
  }

  Item Assigned(TensorId scalar, ValueId value) {
    program_[scalar].storage = Storage::kTemp;
    return AssignmentOf(scalar, value);
  }

  ValueId IdentityOf(const Statement& step) {
    return program_.AddConstant(Identity(*step.op, program_[step.target.tensor].type));
  }

  ValueId Sum(const Statement& step, ValueId sum, ValueId next) {
    return program_.AddApply(StepOp(*step.op), {sum, next}, program_[step.target.tensor].type);
  }

  // Whether there are rows, in whose places loads are masked.
  bool HoldsMaskedRows(const Loop& loop) const {
    bool masked = false;
    VisitLoads(program_, OnlyStatementIn(loop)->value,
               [&](ValueId, const Access& access) { masked |= access.masked; });
    return masked && loop.body[0].As<Loop>() != nullptr;
  }

  // for k { for q in [0, 3) { s += x[k, q] } }  ->  for k { s += x[k, 0]  s += x[k, 1]  s += x[k, 2] }
  void WriteOutRows(Loop& loop) {
    Loop& row = *loop.body[0].As<Loop>();
    if (row.body[0].As<Loop>() != nullptr) return WriteOutRows(row);
    Scope steps;
    for (int64_t i = *pool_.ConstValue(row.begin); i < *pool_.ConstValue(row.end); ++i) {
      VarReplacement replace(program_);
      replace.Set(row.var, pool_.Const(i));
      Scope step = row.body;
      RewriteIndices(program_, step, [&](IndexId e) { return replace(e); });
      std::move(step.begin(), step.end(), std::back_inserter(steps));
    }
    loop.body = std::move(steps);
  }

  // `at`: the indices of the loops around.
  void AddSteps(const Loop& loop, const Statement& step,
                std::vector<std::pair<int32_t, IndexId>> at, ValueId& sum) {
    const Loop* inner = loop.body[0].As<Loop>();
    at.emplace_back(loop.var, IndexId());
    for (int64_t i = *pool_.ConstValue(loop.begin); i < *pool_.ConstValue(loop.end); ++i) {
      at.back().second = pool_.Const(i);
      if (inner != nullptr) {
        AddSteps(*inner, step, at, sum);
        continue;
      }
      VarReplacement replace(program_);
      for (const auto& [var, index] : at) replace.Set(var, index);
      const ValueId next =
          RewriteIndices(program_, step.value, [&](IndexId e) { return replace(e); });
      sum = Sum(step, sum, next);
    }
  }

  Program& program_;
  IndexPool& pool_;
};

}  // namespace

absl::StatusOr<bool> UnrollSums(Program& program) { return SumUnroller(program).Run(program.body); }

}  // namespace nestor::loop
