// How much a program has to compute.
#ifndef NESTOR_JIT_WORK_H_
#define NESTOR_JIT_WORK_H_

#include "loop_ir/program.h"

namespace nestor::jit {

// Primitive scalar ops, those of composed ops counted one by one, in the statement that
// has most of them.
int MostOperations(const loop::Program& program);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_WORK_H_
