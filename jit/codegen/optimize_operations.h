// The optimiser of operation lists, between translation and register allocation.
#ifndef NESTOR_JIT_CODEGEN_OPTIMIZE_OPERATIONS_H_
#define NESTOR_JIT_CODEGEN_OPTIMIZE_OPERATIONS_H_

#include "jit/codegen/operations.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {

// Computes nothing in vain or twice, and nothing in a loop that can be computed before it, as far
// as registers are free:
// - Operations whose result is written again before anything reads it are removed; only between
//   labels and jumps.
// - If a register already holds a value that is computed or loaded again, that register is used:
//   the loads and broadcasts that unrolled copies of a body share are made once. A loaded value is
//   kept for this only while registers are free: loading it again costs less than spilling the
//   value that it would displace ("Rematerialization", P. Briggs, K. Cooper and L. Torczon, 1992).
//   A line is prefetched once.
// - Masks and scalars in all lanes, also those from invariant loads, are computed before the
//   outermost loop in which they do not change (Allen and Cocke, "A catalogue of optimizing
//   transformations", 1971), and so are the constants of innermost loops loaded, which then need
//   not come from memory each time. If nothing has to be spilled without this, nothing has to be
//   with it. Only if `hoists`.
// Addresses and other values in general registers are where they belong already (frames.h).
void OptimizeOperations(OperationList& list, const RegisterFile& file, bool hoists = true);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_OPTIMIZE_OPERATIONS_H_
