// List -> list, between translation and register allocation.
#ifndef NESTOR_JIT_CODEGEN_OPERATION_PASSES_H_
#define NESTOR_JIT_CODEGEN_OPERATION_PASSES_H_

#include "jit/codegen/operations.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {

// Takes out what is computed for a register that is written again before anything reads
// it, as far as this shows between labels and jumps.
void RemoveDeadWrites(OperationList& list);

// Where a register holds already what is computed or loaded again, takes it from there:
// the loads and broadcasts that unrolled copies of a body share are made once. What a load
// brings is kept for it only as far as registers are free: to load it again costs less than to
// spill what it would displace ("Rematerialization", P. Briggs, K. Cooper and L. Torczon, 1992).
// A line is prefetched once.
void ReuseComputations(OperationList& list, const RegisterFile& file);

// Before each innermost loop, computes what does not change in it: constants of the pool,
// which then need not come from memory each time, masks, and scalars in all lanes, also those that
// an invariant load brings. Only
// while registers are free: where nothing had to be spilled, nothing has to be then.
void HoistFromInnermostLoops(OperationList& list, const RegisterFile& file);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_OPERATION_PASSES_H_
