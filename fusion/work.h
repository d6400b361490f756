// How much a program has to compute.
#ifndef NESTOR_FUSION_WORK_H_
#define NESTOR_FUSION_WORK_H_

#include "loop_ir/program.h"

namespace nestor::fusion {

// Primitive scalar ops in the value, those of composed ops counted one by one.
int OperationsOf(const loop::Program& program, loop::ValueId value);
// Of these, products, quotients and roots, alone or fused with a sum: a processor has fewer pipes for them.
int ProductsOf(const loop::Program& program, loop::ValueId value);
// Of these, quotients and roots: they take a pipe for several cycles.
int QuotientsOf(const loop::Program& program, loop::ValueId value);
// In the statement that has most of them, an accumulation being one.
int MostOperations(const loop::Program& program);

}  // namespace nestor::fusion

#endif  // NESTOR_FUSION_WORK_H_
