// Reductions across rows walk memory in its order.
#ifndef NESTOR_JIT_SCHEDULE_MEMORY_ORDER_H_
#define NESTOR_JIT_SCHEDULE_MEMORY_ORDER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

struct MemoryOrderOptions {
  // The most columns and rows whose results are in progress at once. (An odd number of cache lines,
  // so that rows do not compete for the same sets.)
  int64_t columns = 2032;
  int64_t rows = 16;
};

// A loop along memory with a reduction inside that jumps over whole rows changes places
// with it; the accumulators become rows of memory:
//
//   for j in [0, C) {                       for s in [0, ceil(C/2032)) {
//     acc a: f32 = sum                        temp a: f32[2032]
//     for k in [0, K) {                ->     for c in [0, min(2032, C - 2032*s)) { a[c] = 0 }
//       a += x[k, j]                          for k in [0, K) {
//     }                                         for c in [0, min(..)) { a[c] += x[k, 2032*s + c] }
//     y[j] = a                                }
//   }                                         for c in [0, min(..)) { y[2032*s + c] = a[c] }
//                                           }
//
// Where the reduction jumps over the loop around, too (x[k, i, j]), strips of that
// loop move inside likewise. Each element is still summed in the same order, so no
// result changes in any bit. At most 16 columns, if so many are known, stay as they are.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> WalkInMemoryOrder(Program& program, const MemoryOrderOptions& options = {});

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_MEMORY_ORDER_H_
