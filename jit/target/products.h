// Products in values, as schedule passes write them and code generation recognizes them.
#ifndef NESTOR_JIT_TARGET_PRODUCTS_H_
#define NESTOR_JIT_TARGET_PRODUCTS_H_

#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// The value as an application of `op`; null: it is none. The pointer is valid until a value
// is added.
const loop::ApplyValue* AsApply(const loop::Program& program, loop::ValueId id, ScalarOp op);

// Whether the value is the constant +0.
bool IsPlusZero(const loop::Program& program, loop::ValueId id);

// t + mulz(a, b) that rounds once: fma(where(gate, 0, a), where(gate, 0, b), t), the gate being
// a == 0 || b == 0.
struct GatedStep {
  loop::ValueId a, b, t;
  loop::ValueId gated_a, gated_b;  // the two choices
};
// For f32 or f64.
loop::ValueId AddGatedStep(loop::Program& program, loop::ValueId a, loop::ValueId b,
                           loop::ValueId t);
// nullopt: the value is no such step.
absl::optional<GatedStep> GatedStepOf(const loop::Program& program, loop::ValueId id);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_TARGET_PRODUCTS_H_
