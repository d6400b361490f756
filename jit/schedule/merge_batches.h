// Loops over batches where one hands matrices on to the next run as one loop.
#ifndef NESTOR_JIT_SCHEDULE_MERGE_BATCHES_H_
#define NESTOR_JIT_SCHEDULE_MERGE_BATCHES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   temp t: f32[B, M, N]                             for b in [0, B) {
//   for b in [0, B) { .. t[b, i, j] = .. }     ->      temp t: f32[M, N]
//   for b_2 in [0, B) { .. t[b_2, i, j] .. }           .. t[i, j] = ..   .. t[i, j] ..
//                                                    }
//
// So a matrix is still in the cache when it is read, and there is one for each thread, not one for
// each batch. Fusion keeps such loops apart so that each has tiles of its own: here the loops
// inside make these. This is done only where the batches share no matrix (weights, say): else the
// loops inside could have run in parallel together with this one.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> MergeBatches(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_MERGE_BATCHES_H_
