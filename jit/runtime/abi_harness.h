// Calls generated code as a strict caller would, and says what it broke.
#ifndef NESTOR_JIT_RUNTIME_ABI_HARNESS_H_
#define NESTOR_JIT_RUNTIME_ABI_HARNESS_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace nestor::jit {

// The functions that kernels are.
using KernelFunction = int64_t (*)(const int64_t* table, int64_t p0, int64_t p1, int64_t p2);

// Calls `function` four times, with rsp at each multiple of 16 modulo 64, with usual and
// unusual floating-point settings (rounding, flushing; the last call has the usual ones), and with
// garbage in every register that holds no argument; and checks after each call that
//   1. rbx, rbp, r12 to r15 and rsp hold what they held,
//   2. the caller's frame, above the return address, is untouched,
//   3. the direction flag is clear,
//   4. MXCSR but for its sticky flags, and the x87 control word, are unchanged, and the
//      x87 registers are empty,
//   5. the vector registers 0 to 15 are zero above their low 128 bits, and not in use
//      there either where the CPU tells (so zeros do not hide a missing vzeroupper).
// Returns the result of the last call; Internal, naming all that one call broke; FailedPrecondition
// on a CPU without AVX2.
//
// REQUIRES: `function` returns to its caller, and may be called four times.
absl::StatusOr<int64_t> CallCheckingAbi(KernelFunction function, const int64_t* table, int64_t p0,
                                        int64_t p1, int64_t p2);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_RUNTIME_ABI_HARNESS_H_
