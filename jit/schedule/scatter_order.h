// Scatters walk along memory.
#ifndef NESTOR_JIT_SCHEDULE_SCATTER_ORDER_H_
#define NESTOR_JIT_SCHEDULE_SCATTER_ORDER_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

struct ScatterOrderOptions {
  bool reorders_rounding = false;  // takes sums and products of floats, too
};

//   for j in [0, N/3 + 2) { for i in [0, 3) { drop y[j + i*N/3] if j < n(i) += x[i] } }
//     ->
//   for i in [0, 3) { for j in [0, n(i)) { y[j + i*N/3] += x[i] } }
//
// A loop that moves a subscript by one element goes inside of those by whose quotients the
// subscript jumps, so that it may have lanes; then loops are cut where the outcome of a mask
// changes (fusion/split_loops.h), of which there is one place now. This is how windows of different
// sizes are scattered (adaptive pooling). The order of the additions to an element changes.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> ScatterInMemoryOrder(Program& program, const ScatterOrderOptions& options);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SCATTER_ORDER_H_
