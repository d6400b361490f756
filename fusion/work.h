// How much a program has to compute.
#ifndef NESTOR_FUSION_WORK_H_
#define NESTOR_FUSION_WORK_H_

#include "loop_ir/program.h"

namespace nestor::loop {

// Primitive scalar ops in the value, those of composed ops counted one by one.
int OperationsOf(const Program& program, ValueId value);
// Of these, products, quotients and roots, alone or fused with a sum: a processor has fewer
// pipes for them.
int ProductsOf(const Program& program, ValueId value);
// Of these, quotients and roots: they take a pipe for several cycles.
int QuotientsOf(const Program& program, ValueId value);
// In the statement that has most of them, an accumulation being one.
int MostOperations(const Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_WORK_H_
