// Which values of a program decide something: they reach a discrete step, where the
// smallest change may become a jump.
#ifndef NESTOR_LOOP_IR_DISCRETE_STEPS_H_
#define NESTOR_LOOP_IR_DISCRETE_STEPS_H_

#include <vector>

#include "loop_ir/program.h"

namespace nestor::loop {

// Discrete steps are the rows that uops/operand_use.h names (floor, ceil, round, sign,
// comparisons, casts to integers) and what an argmax or argmin compares. Whether a branch
// is chosen and which element an index names follow from such steps: conditions are
// bools, indices integers.
//
// A value reaches a step through rows that pass it on, through every tensor (temporary, accumulator
// or output) that holds it, wherever that is read, and through sums and other reductions of it.
// Storing a value to an output is no step.
//
// Of these steps, those that ask whether two values are equal may be asked for alone: two loops may
// compute one value, and one of its kind is equal to their maximum only if both round it in the
// same way. Then what a statement adds up or multiplies up reaches nothing: such a result is
// computed in one place.
//
// Holds for the program as it was when this was made; a value that is added later is
// said not to reach a step.
class DiscreteSteps {
 public:
  enum class Kind { kAll, kEqualities };

  // REQUIRES: Verify accepts the program.
  explicit DiscreteSteps(const Program& program, Kind kind = Kind::kAll);

  // Whether a float that the value gives may reach a step. A value that several
  // statements share reaches one if it does so in any.
  bool Reach(ValueId value) const;
  // Whether one in it does. REQUIRES: no part of it is new.
  bool ReachFrom(ValueId root) const;
  // Whether a float element of the tensor may.
  bool Reach(TensorId tensor) const { return tensors_[tensor.value]; }

 private:
  void Visit(const Statement& statement);
  void Visit(ValueId value, bool reaches);
  bool IsStep(const ApplyValue& apply) const;
  bool Accumulates(const Statement& statement) const;

  const Program& program_;
  const Kind kind_;
  std::vector<bool> values_, tensors_;
  bool changed_ = false;  // a tensor was found, so that its stores need another look
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_DISCRETE_STEPS_H_
