// A model of the operations in C++, lane by lane: a second opinion on expansions, and the only one
// for instruction sets that the machine lacks. For tests.
#ifndef NESTOR_JIT_CODEGEN_OPERATION_MODEL_TESTING_H_
#define NESTOR_JIT_CODEGEN_OPERATION_MODEL_TESTING_H_

#include <cstdint>

#include "jit/codegen/operations.h"

namespace nestor::jit {

// Runs the list as a function that is given `table`. Lanes that an operation leaves undefined hold
// junk. Checks that constants are only where they are allowed, and that nothing is used that its
// set lacks. REQUIRES: a straight line on virtual registers, which accesses memory by plain loads and
// stores only.
void RunModel(const OperationList& list, const int64_t* table);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_OPERATION_MODEL_TESTING_H_
