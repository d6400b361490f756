// Derived, so that a new row of the table needs no entry here. A body is walked backwards: a
// register reaches a step or the result if one that is computed from it does. Rows without a body
// are decided by their types and one trait.
#include "uops/operand_use.h"

#include <vector>

#include "uops/scalar_body.h"

namespace nestor {
namespace {

OperandUse UseIn(const ScalarBody& body, int operand) {
  const size_t first_step = body.arity + body.constants.size();
  std::vector<OperandUse> registers(first_step + body.steps.size());
  registers[body.result].passes = true;
  for (size_t i = body.steps.size(); i-- > 0;) {
    const ScalarBody::Step& step = body.steps[i];
    const OperandUse result = registers[first_step + i];
    for (int arg = 0; arg < Row(step.op).arity; ++arg) {
      const OperandUse use = UseOf(step.op, step.operand, step.target, arg);
      OperandUse& source = registers[step.args[arg]];
      source.steps |= use.steps || (use.passes && result.steps);
      source.passes |= use.passes && result.passes;
    }
  }
  return registers[operand];
}

// The condition of a choice is a bool.
bool TakesFloat(const ScalarOpRow& row, DType operand, int index) {
  return IsFloat(operand) && !(row.result == ResultType::kChoice && index == 0);
}

}  // namespace

// From the coarsest fact to the finest: type, trait, then the body.
OperandUse UseOf(ScalarOp op, DType operand, DType target, int index) {
  const ScalarOpRow& row = Row(op);
  if (!TakesFloat(row, operand, index)) return {};
  const bool steps = (row.traits & kStep) != 0;
  if (row.transcendental) return {.steps = steps, .passes = true};
  if (!IsFloat(target) || steps) return {.steps = true};
  const ScalarFunction function = FunctionOf(op, operand, target);
  return function.body == nullptr ? OperandUse{.passes = true} : UseIn(*function.body, index);
}

}  // namespace nestor
