// A division takes several times as long as a product and cannot be pipelined as well; where the
// divisor is the same in all iterations, one division suffices. The price is one more rounding: the
// rounded reciprocal and the product round twice, so that 41 * (1 / 41) is a little below 1, and
// its floor 0. So a quotient that decides something is kept (loop_ir/discrete_steps.h). Only the
// reciprocal is made here; hoist moves it before the loop.
#include "fusion/reciprocals.h"

#include "absl/types/optional.h"
#include "fusion/invariance.h"
#include "loop_ir/discrete_steps.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// Rewrites the quotients of a statement whose innermost loop is `loop`.
bool RewriteIn(Program& program, const DiscreteSteps& steps, const Loop& loop,
               Statement& statement) {
  const Invariance invariance(program, loop);
  const ValueId value =
      RewriteValues(program, statement.value, [&](ValueId id) -> absl::optional<ValueId> {
        // A value with rewritten operands is new to `steps`, but it reaches none: else its
        // operands would, and would have stayed.
        if (steps.Reach(id)) return absl::nullopt;
        const auto* apply = absl::get_if<ApplyValue>(&program[id].node);
        const DType type = program[id].type;
        if (apply == nullptr || apply->op != ScalarOp::kDiv ||
            (type != DType::kF32 && type != DType::kF64)) {
          return absl::nullopt;
        }
        const ValueId dividend = apply->args[0], divisor = apply->args[1];
        if (!invariance.Holds(divisor) || invariance.Holds(dividend)) return absl::nullopt;
        const ValueId reciprocal = program.AddApply(ScalarOp::kRecip, {divisor});
        return program.AddApply(ScalarOp::kMul, {dividend, reciprocal});
      });
  const bool changed = value != statement.value;
  statement.value = value;
  return changed;
}

}  // namespace

// Only the innermost loop: a reciprocal is made before it, once for all its iterations.
absl::StatusOr<bool> UseReciprocals(Program& program) {
  const DiscreteSteps steps(program);
  bool changed = false;
  for (Item& item : program.body) {
    VisitStatements(item, [&](Statement& statement, const LoopsAround& around) {
      if (!around.empty()) changed |= RewriteIn(program, steps, *around.back(), statement);
    });
  }
  return changed;
}

}  // namespace nestor::loop
