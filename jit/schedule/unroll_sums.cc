// Complete unrolling of a short reduction, as over a window of 3 x 3: the sum becomes one
// expression that starts at the identity and adds the steps from left to right. The accumulator
// becomes a scalar that is assigned once, so that the loop around has no inner loop and can run in
// lanes. The size of the expression is bounded by kMostSteps times kMostOperations.
#include "jit/schedule/unroll_sums.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/cost/work.h"
#include "jit/schedule/attributes.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"
#include "uops/graph.h"

namespace nestor::loop {
namespace {

constexpr int64_t kMostSteps = 16;
constexpr int kMostOperations = 3;  // of a step

class SumUnroller {
 public:
  explicit SumUnroller(Program& program) : program_(program), pool_(program.pool) {}

  // Outer loops first: a nest that is a short sum as a whole is written out as a whole.
  bool Run(Scope& scope) {
    bool changed = false;
    for (size_t i = 0; i < scope.size(); ++i) {
      Loop* loop = scope[i].As<Loop>();
      if (loop == nullptr || ScheduledOf(*loop) == Scheduled::kAll) continue;
      if (IsShortSum(*loop, scope)) {
        scope[i] = WrittenOut(*loop);
        changed = true;
      } else {
        changed = Run(loop->body) || changed;
      }
    }
    return changed;
  }

 private:
  // Whether the loop is a short sum into a scalar that nothing else in `scope`, which
  // declares it, changes.
  bool IsShortSum(const Loop& loop, const Scope& scope) const {
    const Statement* step = OnlyStatementIn(loop);
    if (step == nullptr || !step->op || IsArg(*step->op) || step->target.masked) return false;
    const TensorId sum = step->target.tensor;
    const bool is_scalar =
        program_[sum].storage == Storage::kAccumulator && program_[sum].shape.empty();
    if (!is_scalar || OperationsOf(program_, step->value) > kMostOperations) return false;
    const auto steps = StepsOf(loop);
    const bool declares = absl::c_any_of(scope, [&](const Item& item) {
      const auto* declaration = item.As<Declaration>();
      return declaration != nullptr && declaration->tensor == sum;
    });
    const auto changes = [&](const Item& item) { return FootprintOf(program_, item).Changes(sum); };
    return steps && *steps > 0 && *steps <= kMostSteps && declares &&
           absl::c_count_if(scope, changes) == 1;
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
    TensorInfo& info = program_[step.target.tensor];
    info.storage = Storage::kTemp;
    ValueId sum = program_.AddConstant(Identity(*step.op, info.type));
    AddSteps(loop, step, {}, sum);
    return {Statement{step.target, absl::nullopt, sum, {}}};
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
      sum = program_.AddApply(StepOp(*step.op), {sum, next}, program_[step.target.tensor].type);
    }
  }

  Program& program_;
  IndexPool& pool_;
};

}  // namespace

absl::StatusOr<bool> UnrollSums(Program& program) { return SumUnroller(program).Run(program.body); }

}  // namespace nestor::loop
