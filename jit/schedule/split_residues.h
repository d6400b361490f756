// Loops whose index is divided by a small number become one loop for each remainder.
#ifndef NESTOR_JIT_SCHEDULE_SPLIT_RESIDUES_H_
#define NESTOR_JIT_SCHEDULE_SPLIT_RESIDUES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

struct ResidueOptions {
  bool reorders_rounding = false;  // of sums across iterations
};

//   for i in [0, N) { for j in [0, M) {
//     acc s: f32 = sum
//     for r in [0, (j + 1)/2 - j/2 + 1) { s += w[i, j%2 - 2*r + 1] * x[j/2 + r] }
//     y[i, j] = s
//   } }
//     ->
//   for i in [0, N) { for j in [0, (M + 1)/2) { ..  s += w[i, 1] * x[j]  y[i, 2*j] = s } }
//   for i in [0, N) { for j in [0, M/2) { ..  for r in [0, 2) { s += w[i, -2*r + 2] * x[j + r] }  y[i, 2*j + 1] = s } }
//
// where the bounds of a sum of products move with such a quotient: the gradient of a convolution
// with a stride. The same is done for a nest whose only sum has steps at some remainders only,
//
//   drop s if j%2 == 0 += w[i, r] * x[r, j/2]
//
// and none at the others. The divisor is a number below 9, the loop begins at a multiple of it, and
// the loops of the nest carry no dependence, or, where the order of sums may change, none but such
// sums. Each sum inside keeps its steps and their order.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> SplitResidues(Program& program, const ResidueOptions& options = {});

// The first of the nests that replace this one, if the order of all steps is kept, with the indices
// and tensors of `nest`; nullopt where no loop of it is split. REQUIRES: `ranges` is at the place
// of the nest.
absl::optional<Loop> FirstResidueOf(Program& program, Ranges& ranges, const Loop& nest);

// The small number by which the index of a loop of the nest is divided: in the bounds of a sum; or
// else in a condition of the only sum.
absl::optional<int64_t> DivisorOfBounds(const Program& program, const Loop& loop);
absl::optional<int64_t> DivisorOf(const Program& program, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SPLIT_RESIDUES_H_
