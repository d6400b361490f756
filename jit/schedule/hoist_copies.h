// Copies that are the same in each iteration are made once.
#ifndef NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_
#define NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::jit {

//   for n in [0, B) { temp t: f32[K]  for k in [0, K) { t[k] = w[K - k - 1] }  .. t .. }
//     ->
//   temp t: f32[K]  for k in [0, K) { t[k] = w[K - k - 1] }  for n in [0, B) { .. t .. }
//
// for temporaries that loops fill and nothing else changes, from tensors that the nest does
// not change, where neither holds an index of a loop around: contractions pack an operand
// inside loops of which it does not depend. Out of the whole nest or not at all, as loops
// that hold nothing but another are cut into pieces for threads together.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> HoistCopies(loop::Program& program);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_HOIST_COPIES_H_
