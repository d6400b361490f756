// Sums that share a loop with what is made of them.
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
// as `sums`, the loop over k with the sum and what stores it,
//
//   for k { acc s: f32 = sum  for d { s += q[d] * w[k, d] }  t[k] = s }
//
// and `rest`, for k { m max= t[k] * 2 }. Where nothing stores the bare sum, `kept` is a new
// temporary that does, for the scope around to declare. Where the loop does nothing but sum
// and store what it makes of that, element by element, there is no rest.
struct SplitSum {
  Loop sums;
  absl::optional<Loop> rest;
  absl::optional<TensorId> kept;
};

// Splits the first sum off for which `is_wanted`, which is given the loop of the sum and its
// step; nullopt where there is none, or where the order matters. Every element is computed as
// before. REQUIRES: `ranges` is at the place of the loop.
absl::optional<SplitSum> SplitSumOff(
    Program& program, Ranges& ranges, const Loop& loop,
    absl::FunctionRef<bool(const Loop& sum, const Statement& step)> is_wanted);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SPLIT_SUMS_H_
