// How much a program has to compute.
#ifndef NESTOR_JIT_SCHEDULE_WORK_H_
#define NESTOR_JIT_SCHEDULE_WORK_H_

#include "loop_ir/program.h"

namespace nestor::jit {

// Primitive scalar ops in the value, those of composed ops counted one by one.
int OperationsOf(const loop::Program& program, loop::ValueId value);
// In the statement that has most of them, an accumulation being one.
int MostOperations(const loop::Program& program);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_WORK_H_
