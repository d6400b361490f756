// How much a program has to compute.
#ifndef NESTOR_FUSION_COST_WORK_H_
#define NESTOR_FUSION_COST_WORK_H_

#include "loop_ir/program.h"

namespace nestor::loop {

// The number of primitive scalar ops in the value, with those of composed ops counted one by one.
int OperationsOf(const Program& program, ValueId value);
// How many of these are products, quotients or roots, alone or fused with a sum: a processor has
// fewer pipes for them.
int ProductsOf(const Program& program, ValueId value);
// How many of these are quotients or roots: they take a pipe for several cycles.
int QuotientsOf(const Program& program, ValueId value);
// The number of operations in the statement that has most of them; an accumulation counts as one.
int MostOperations(const Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COST_WORK_H_
