// Products that are added right away stay unrounded: in a wider type, or as fused multiply-adds.
#ifndef NESTOR_JIT_SCHEDULE_MULTIPLY_ADD_H_
#define NESTOR_JIT_SCHEDULE_MULTIPLY_ADD_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// A product that is cast to a type which holds it (HoldsProducts) and added there is computed in
// that type: f32(a * b) + c of bf16 becomes f32(a) * f32(b) + c; so do terms of sums and
// differences, and products that reach them through a negation or a choice. Returns whether it
// changed anything; if not, the program is untouched. A second run changes nothing. REQUIRES:
// Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> WidenProducts(Program& program);

// dot_halves(a, b, 0) + c becomes dot_halves(a, b, c). Returns whether it changed anything; a
// second run changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> AddOntoDotProducts(Program& program);

// a * b + c becomes fma(a, b, c), which rounds once, for f32 and f64; the second of two products.
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> FuseMultiplyAdd(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_MULTIPLY_ADD_H_
