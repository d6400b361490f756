// Collapsing: adjacent loops over adjacent axes become one long loop.
#ifndef NESTOR_FUSION_COLLAPSE_H_
#define NESTOR_FUSION_COLLAPSE_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::fusion {

// Of a nest whose innermost loops walk whole adjacent axes of all tensors that they
// move in, in order, makes these loops one:
//
//   for i in [0, N) { for j in [0, C) { y[i, j] = exp(x[i, j]) } }
//     ->  for i in [0, N*C) { y[i/C, i%C] = exp(x[i/C, i%C]) }
//
// The order of iterations stays, so no result changes in any bit. Where the tensors
// are compact in memory, (i/C, i%C) lies at offset i: one loop then has one tail for
// vectors, and splits evenly over threads. A schedule that knows the tensors to be
// compact asks for it; it is not part of the default pipeline, as it would divide in
// every access of others and hide from merging which axis a loop walks.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> CollapseLoops(loop::Program& program);

}  // namespace nestor::fusion

#endif  // NESTOR_FUSION_COLLAPSE_H_
