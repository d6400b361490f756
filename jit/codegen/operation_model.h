// What operations do, in C++ and lane by lane: a second opinion on expansions, and the
// only one on instruction sets that the machine lacks. For tests.
#ifndef NESTOR_JIT_CODEGEN_OPERATION_MODEL_H_
#define NESTOR_JIT_CODEGEN_OPERATION_MODEL_H_

#include <cstdint>

#include "jit/codegen/operations.h"

namespace nestor::jit {

// Runs the list as a function that is given `table`. Lanes that an operation leaves
// undefined hold junk. Checks that constants stand where they may, and that AVX2 is not
// asked for what it lacks. REQUIRES: a straight line on virtual registers, which accesses
// memory by plain loads and stores only.
void RunModel(const OperationList& list, const int64_t* table);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_OPERATION_MODEL_H_
