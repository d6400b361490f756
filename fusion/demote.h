// Demotion: an accumulator becomes a tensor, where that lets one walk feed several.
#ifndef NESTOR_FUSION_DEMOTE_H_
#define NESTOR_FUSION_DEMOTE_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// A sum over the rows of a matrix keeps its accumulator in the loop over columns:
//
//   for j in [0, M) { acc a: f32 = sum  for i in [0, N) { a += x[i, j] }  c[j] = a }
//
// and so cannot share a walk of x by rows. Demoted, it is
//
//   for j in [0, M) { c[j] = 0.0 }
//   for j in [0, M) { for i in [0, N) { c[j] += x[i, j] } }
//
// whose loops may be interchanged. This is done at the top of the program, for a nest that shares
// no loop with another nest that walks the same tensor of two or more dimensions, but could if it
// were demoted. Where the sum is used in an expression, or its type is wider than the result's, the
// accumulator itself becomes the tensor, and a third nest computes the result from it.
//
// Each element's terms keep their order, so no result changes in any bit. Returns
// whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> DemoteAccumulators(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_DEMOTE_H_
