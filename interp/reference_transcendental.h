// The values that a transcendental row may give: its exact image, widened by the
// row's stated error.
#ifndef NESTOR_INTERP_REFERENCE_TRANSCENDENTAL_H_
#define NESTOR_INTERP_REFERENCE_TRANSCENDENTAL_H_

#include "absl/types/span.h"
#include "interp/enclosure.h"
#include "uops/scalar_op.h"

namespace nestor {

// All values of `type` (f32 or f64) within the row's ulps of an exact result on
// members of `args`, with the sign of that result; an exact result of zero or infinity has no
// error, and pow(x, 0) and pow(1, x) are 1. An ulp is the one of the exact value; infinity stands
// for the first power of two that is out of range.
//
// Assumes that the C library's long double functions are within 8 units in the
// last of their 64 bits, give exact infinities and zeros as C99, annex F, has them
// and keep the sign of the exact value. (Against MPFR, glibc's, and sigmoid and
// softplus made of them, were off by at most 2.8 on some million arguments.)
//
// REQUIRES: Row(op).transcendental; args hold values of `type`.
Enclosure TranscendentalImage(ScalarOp op, DType type, absl::Span<const Enclosure> args);

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_TRANSCENDENTAL_H_
