// Sums of products skip the steps at which a factor is 0, as it lies outside of its tensor.
#ifndef NESTOR_JIT_SCHEDULE_TRIMMED_SUMS_H_
#define NESTOR_JIT_SCHEDULE_TRIMMED_SUMS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for i in [0, N) { for h in [0, H) { for j in [0, M) {
//     acc s: f32 = sum
//     for r in [0, R) { for c in [0, C) { s += w[i, r, c] * x[h + r - 1, c, j | 0] } }
//     y[i, h, j] = s
//   } } }
//     ->
//   acc not_finite: i64 = max
//   for i in [0, N) { for r in [0, R) { for c in [0, C) { not_finite max= i64(w[i, r, c] * 0 != 0) } } }
//   for i in [0, N) { for h in [0, H) { for j in [0, M) {
//     acc s: f32 = sum
//     for r in [max(0, 1 - h), min(R, H + 1 - h)) { for c in [0, C) { s += w[i, r, c] * x[h + r - 1, c, j | 0] } }
//     y[i, h, j] = s
//   } } }
//   .. and the nest as it was, each statement if not_finite[] == 1 ..
//
// where the nest is a contraction (contraction.h), and h neither its row nor its column: a padded
// convolution, whose windows reach beyond the image at its first and last rows. For a row or
// column, which is in a tile with others, the step says where it is needed:
//
//     s += w[i, c] * x[h, j + c - 1 | 0]  ->  s += w[i, c] * x[h, j + c - 1 | 0] needed if 0 <= j + c - 1, j + c - 1 < M
//
// The products left out are 0 unless w holds inf or NaN, and a sum that starts at +0 is the same
// without them. Only steps are left out, so sums keep their order. Such factors must be bound
// inputs (`bound`, by input; empty: none is), which are searched once, not in each call, and tiles
// must be large (AVX-512). Products of integers, and gated products, are 0 whatever the other
// factor is.
//
// It is padded_sums.h the other way round: adding steps there makes a nest a contraction; leaving
// steps out here keeps it one.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> TrimSums(Program& program, jit::Isa isa, const std::vector<bool>& bound = {});

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TRIMMED_SUMS_H_
