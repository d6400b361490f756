// A quotient may be computed as a product with a reciprocal, which differs in the last bit; before
// a floor this would be a jump by 1, so there quotients are as written (loop_ir/discrete_steps.h).
// Which operands lead only to such a step is a property of the program, not of an element: the
// constructor looks at each value once, because the walk asks again for each element.
#include "interp/reference_step_operands.h"

#include <cstdint>

#include "absl/types/variant.h"
#include "uops/operand_use.h"

namespace nestor {

StepOperands::StepOperands(const loop::Program& program)
    : program_(program), steps_(program), only_(program.values.size()) {
  for (size_t i = 0; i < program.values.size(); ++i) {
    const auto* apply = absl::get_if<loop::ApplyValue>(&program.values[i].node);
    if (apply == nullptr) continue;
    const bool quotient =
        apply->op == ScalarOp::kDiv && steps_.Reach(loop::ValueId{static_cast<int32_t>(i)});
    any_quotient_ |= quotient;
    FindOnly(*apply, program.values[i].type, only_[i]);
  }
}

bool StepOperands::IsSplit(loop::TensorId id) const {
  return any_quotient_ && program_[id].storage != loop::Storage::kInput && steps_.Reach(id);
}

void StepOperands::FindOnly(const loop::ApplyValue& apply, DType target, Operands& only) const {
  const DType operand = program_[apply.args.back()].type;
  for (size_t i = 0; i < apply.args.size(); ++i) {
    const OperandUse use = UseOf(apply.op, operand, target, static_cast<int>(i));
    only[i] = use.steps && !use.passes;
  }
}

}  // namespace nestor
