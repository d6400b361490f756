// Writes out scalar ops whose costly parts are also computed by other values of a program, so that
// these parts are computed once.
#ifndef NESTOR_UOPS_SHARED_PARTS_H_
#define NESTOR_UOPS_SHARED_PARTS_H_

#include "absl/types/optional.h"
#include "uops/op.h"

namespace nestor {

//   g = gelu(x)    h = 0.5 * (1.0 + erf(x * 0.7071067811865476)) + ..
//     ->
//   e = erf(x * 0.7071067811865476)    g = 0.5 * x * (1.0 + e)    h = 0.5 * (1.0 + e) + ..
//
// as happens where a gradient recomputes values of the forward op. A part is costly if it is
// transcendental. Every result keeps its bits, since a composed scalar op is defined by what its
// body computes. nullopt where nothing is shared in this way; an op with recurrences is left alone.
absl::optional<Op> WriteOutSharedParts(const Op& op);

}  // namespace nestor

#endif  // NESTOR_UOPS_SHARED_PARTS_H_
