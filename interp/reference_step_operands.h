// Finds where the reference must take quotients as the program writes them. An allowed evaluation
// may replace a quotient by a product with a reciprocal, but not where a discrete step
// (loop_ir/discrete_steps.h) sees it: there the small difference could become a jump.
#ifndef NESTOR_INTERP_REFERENCE_STEP_OPERANDS_H_
#define NESTOR_INTERP_REFERENCE_STEP_OPERANDS_H_

#include <array>
#include <cstddef>
#include <vector>

#include "loop_ir/discrete_steps.h"
#include "loop_ir/program.h"

namespace nestor {

// The values that a program's discrete steps see.
class StepOperands {
 public:
  // The program outlives this. REQUIRES: Verify accepts it.
  explicit StepOperands(const loop::Program& program);

  // Whether the tensor's elements have an enclosure for steps and another one.
  bool IsSplit(loop::TensorId id) const;
  // Whether only steps see that operand of the value. False for an operand that is both seen by a
  // step and passed on.
  bool IsOnlyForSteps(loop::ValueId value, size_t operand) const {
    return only_[value.value][operand];
  }

 private:
  using Operands = std::array<bool, 3>;

  void FindOnly(const loop::ApplyValue& apply, DType target, Operands& only) const;

  const loop::Program& program_;
  const loop::DiscreteSteps steps_;
  std::vector<Operands> only_;  // by value
  bool any_quotient_ = false;   // that reaches a step
};

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_STEP_OPERANDS_H_
