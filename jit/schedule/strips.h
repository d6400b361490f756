// Chains of contractions that share a loop over rows run in strips of rows.
#ifndef NESTOR_JIT_SCHEDULE_STRIPS_H_
#define NESTOR_JIT_SCHEDULE_STRIPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

struct StripOptions {
  int64_t rows = 24;  // of a strip: whole tiles of both instruction sets
  // Which version of the program is made: see IsVersionFor.
  std::vector<bool> version = {};
};

// Where the iterations of a loop are independent, except for sums over them that one part of the
// body computes by itself, and the body holds, beside other parts, a loop that sums over an
// index that rows and columns share (contraction.h), each part runs for all rows of a strip,
// then the next:
//
//   for j in [0, L) {                               for p in [0, ceil(L/24)) {
//     temp t: f32[S]                                  temp t: f32[24, S]
//     acc m: f32 = max
//     for k in [0, S) {                               for r in [0, min(24, L - 24*p)) { for k in [0, S) {
//       acc s: f32 = sum                                acc s: f32 = sum
//       for d in [0, D) { s += q[j, d] * w[k, d] }      for d in [0, D) { s += q[24*p + r, d] * w[k, d] }
//       t[k] = s                               ->       t[r, k] = s
//       m max= t[k]                                   } }
//     }                                               for r in [0, min(24, L - 24*p)) {
//     for k in [0, S) { y[j, k] = t[k] - m }            acc m: f32 = max
//   }                                                   for k in [0, S) { m max= t[r, k] }
//                                                       for k in [0, S) { y[24*p + r, k] = t[r, k] - m }
//                                                     }
//                                                   }
//
// So a contraction gets rows for its tiles, and the results that it passes on stay in the cache:
// the blocking of Dao et al., "FlashAttention" (2022), without its rescaling, since rows are kept
// whole. Loops of many statements are left alone. Sums keep their order. Where the bounds of
// columns move with the row, each row of the strip has the columns of all its rows, provided that
// nothing reads what is stored beyond a row's own. In the version for fewer than kLeastRows rows,
// these run as they were.
// That temporaries of a strip are small is an assumption of the program (AssumeFewElements).
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> RunInStrips(Program& program, const StripOptions& options);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_STRIPS_H_
