// The constraints of emitters on registers beyond their classes, and the spilled values that they
// take from memory: the agreement between allocate_registers and the emitters.
#ifndef NESTOR_JIT_CODEGEN_OPERAND_CONSTRAINTS_H_
#define NESTOR_JIT_CODEGEN_OPERAND_CONSTRAINTS_H_

#include "jit/codegen/operations.h"
#include "jit/target/isa.h"

namespace nestor::jit {

// The number of the operand that may stay kStack, or -1. The operation's row says whether one may:
// in a vector operation the last one, unless the operation has a constant of the pool; in a general
// one any, but only one (the last that is kStack).
int StackOperandOf(const Operation& op);

// The most registers that spilled values pass through: as many as the operands of one
// operation that are not taken from memory, with a result that must not share one of theirs.
inline int MostScratchRegisters(RegisterClass c) { return c == RegisterClass::kMask ? 2 : 3; }

// Whether a partial load or store, or a masked load of elements side by side, goes by its mask.
// Otherwise a partial one goes by its count, and may have no mask.
bool GoesByMask(const Operation& op, Isa isa);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_OPERAND_CONSTRAINTS_H_
