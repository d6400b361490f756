// Products that are added at once become fused multiply-adds.
#ifndef NESTOR_JIT_SCHEDULE_MULTIPLY_ADD_H_
#define NESTOR_JIT_SCHEDULE_MULTIPLY_ADD_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// a * b + c becomes fma(a, b, c), which rounds once, for f32 and f64; of two products
// the second. Returns whether it changed anything; if not, the program is untouched.
// A second run changes nothing. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> FuseMultiplyAdd(loop::Program& program);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_MULTIPLY_ADD_H_
