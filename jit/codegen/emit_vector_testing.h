// One operation on vectors or masks with operands in given places, run and compared with
// the model of operations. For tests.
#ifndef NESTOR_JIT_CODEGEN_EMIT_VECTOR_TESTING_H_
#define NESTOR_JIT_CODEGEN_EMIT_VECTOR_TESTING_H_

#include <array>
#include <random>

#include "jit/codegen/emit_testing.h"
#include "jit/codegen/operations.h"

namespace nestor::jit {

struct VectorCase {
  Operation op;  // its operands and result are ignored
  std::array<Stand, 3> stands{};
};

int NumOperands(Opcode opcode);

// Expects that the operation can be encoded; and, with `run`, that for several inputs its
// result is the model's and no other vector register has changed.
void TestVectorCase(const VectorCase& c, Isa isa, bool run, std::mt19937_64& random);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_EMIT_VECTOR_TESTING_H_
