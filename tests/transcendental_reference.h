// The exact results of scalar ops: an independent reference in arbitrary precision (GNU
// MPFR), which shares nothing with the bodies that Nestor evaluates. It knows every
// transcendental row of the table, and sqrt rsqrt recip gelu silu elu celu selu gelu_tanh
// mish softcap logit logaddexp xlogy.
//
//   EXPECT_LE(UlpError("exp", "f32", {x}, y), 1.0);
//
// Values of every format are passed as double, which holds them exactly. Thread-safe; no global
// state but MPFR's caches, which are thread-local.

#ifndef NESTOR_TESTS_TRANSCENDENTAL_REFERENCE_H_
#define NESTOR_TESTS_TRANSCENDENTAL_REFERENCE_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace nestor {

// True if UlpError and ReferenceValue know this op.
bool HasReference(absl::string_view op);

// The value of op at args, computed with 160 bits and rounded once, to nearest even, to `type`
// ("f64" "f32" "f16" "bf16"), subnormals and overflow included.
// REQUIRES: HasReference(op); args.size() is the op's arity; each argument is a value of `type`.
double ReferenceValue(absl::string_view op, absl::string_view type, absl::Span<const double> args);

// |result - exact| in units in the last place of the exact value: 2^(e + 1 - p) for an exact value
// in [2^e, 2^(e+1)), e being clamped to the exponents of the normal numbers (p bits). So a
// correctly rounded result has an error of at most 0.5, also where it is subnormal; an infinite
// result stands for the first power of two that is out of range, and so does an exact value beyond
// it. 0 where both are NaN or the same infinity; infinity where only one is NaN, where an exact
// infinity was missed, and where a zero result has the wrong sign. REQUIRES: as ReferenceValue.
double UlpError(absl::string_view op, absl::string_view type, absl::Span<const double> args,
                double result);

}  // namespace nestor

#endif  // NESTOR_TESTS_TRANSCENDENTAL_REFERENCE_H_
