// Stores to elements of temporaries that nothing reads.
#ifndef NESTOR_FUSION_DEAD_STORES_H_
#define NESTOR_FUSION_DEAD_STORES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   temp t: f32[N]
//   for k in [0, p) { t[k] = x[k] }
//   for k in [p, N) { t[k] = x[k] }      # removed: split loops have left it without a reader
//   for k in [0, p) { y[k] = t[k] }
//
// A store is removed where along some axis its index and that of each read run over ranges that are
// proven apart. A loop that only stores is shortened to the range that all reads run over, if it is
// one range and proven to lie within the loop's: in the example above, `for k in [0, N) { t[k] =
// x[k] }` would be shortened to [0, p). dead_code removes what has no use left after that.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> EliminateDeadStores(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_DEAD_STORES_H_
