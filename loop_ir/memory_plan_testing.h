// The test of a memory plan: runs a program's accesses on the memory that the plan
// gives out.
#ifndef NESTOR_LOOP_IR_MEMORY_PLAN_TESTING_H_
#define NESTOR_LOOP_IR_MEMORY_PLAN_TESTING_H_

#include "absl/status/status.h"
#include "loop_ir/access_walk_testing.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/sized_program.h"

namespace nestor::loop {

// Internal, naming the tensors, where an element is read and another tensor, or another element,
// was last written at one of its bytes; where a buffer reaches out of the arena or is not aligned.
// Outputs and inputs have memory of their own, except for the outputs that are buffers, and for
// plan.aliases[alias], whose two tensors share theirs (-1: none do).
absl::Status ReplayPlan(const SizedProgram& program, const MemoryPlan& plan, const Arena& arena,
                        GatheredValue gathered, int alias = -1);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_MEMORY_PLAN_TESTING_H_
