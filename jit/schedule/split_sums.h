// Sums that share a loop with statements that use them.
#ifndef NESTOR_JIT_SCHEDULE_SPLIT_SUMS_H_
#define NESTOR_JIT_SCHEDULE_SPLIT_SUMS_H_

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

//   for k in [0, K) {
//     acc s: f32 = sum
//     for d in [0, D) { s += q[d] * w[k, d] }
//     t[k] = s
//     m max= t[k] * 2
//   }
//
// is split into `sums`, the loop over k with the sum and the statement that stores it,
//
//   for k { acc s: f32 = sum  for d { s += q[d] * w[k, d] }  t[k] = s }
//
// and `rest`, for k { m max= t[k] * 2 }. Where nothing stores the bare sum, `kept` is a new
// temporary that holds it, for the scope around to declare. Where the loop only sums and stores
// results of the sum, element by element, there is no rest.
struct SplitSum {
  Loop sums;
  absl::optional<Loop> rest;
  absl::optional<TensorId> kept;
};

// Splits off the first sum for which `is_wanted` is true, given the loop of the sum and its step;
// nullopt where there is none, or where the order matters. Every element is computed as before.
// REQUIRES: `ranges` is at the place of the loop.
absl::optional<SplitSum> SplitSumOff(
    Program& program, Ranges& ranges, const Loop& loop,
    absl::FunctionRef<bool(const Loop& sum, const Statement& step)> is_wanted);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SPLIT_SUMS_H_
