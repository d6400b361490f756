// Loops that run in steps: those of recurrences.
#ifndef NESTOR_LOOP_IR_STEPS_H_
#define NESTOR_LOOP_IR_STEPS_H_

#include "loop_ir/program.h"

namespace nestor::loop {

// Whether an iteration may read what an earlier one assigned; just adding to a tensor does not
// count. This is as conservative as CarriedTensor (dependence.h).
bool RunsInSteps(const Program& program, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_STEPS_H_
