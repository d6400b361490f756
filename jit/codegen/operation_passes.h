// Passes on operation lists, between translation and register allocation.
#ifndef NESTOR_JIT_CODEGEN_OPERATION_PASSES_H_
#define NESTOR_JIT_CODEGEN_OPERATION_PASSES_H_

#include "jit/codegen/operations.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {

// Removes operations whose result register is written again before anything reads it; looks only
// between labels and jumps.
void RemoveDeadWrites(OperationList& list);

// If a register already holds a value that is computed or loaded again, uses that register: the
// loads and broadcasts that unrolled copies of a body share are made once. A loaded value is kept
// for this only while registers are free: loading it again costs less than spilling the value that
// it would displace ("Rematerialization", P. Briggs, K. Cooper and L. Torczon, 1992). A line is
// prefetched once.
void ReuseComputations(OperationList& list, const RegisterFile& file);

// Computes loop invariants before each innermost loop: constants of the pool, which then need not
// come from memory each time, masks, and scalars in all lanes, also those from invariant loads.
// Only while registers are free: if nothing had to be spilled before, nothing has to be afterwards.
void HoistFromInnermostLoops(OperationList& list, const RegisterFile& file);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_OPERATION_PASSES_H_
