// Long sums with few results, in pieces for threads.
#ifndef NESTOR_JIT_SCHEDULE_PARALLEL_SUMS_H_
#define NESTOR_JIT_SCHEDULE_PARALLEL_SUMS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

struct ParallelSumsOptions {
  // Steps of a piece, in all its results: these take about ten times as long as waking a thread.
  int64_t least_steps = int64_t{1} << 16;
  // Takes sums and products of floats, too, whose rounding depends on the order.
  bool reorders_rounding = true;
};

//   for j in [0, N) {                        temp a_parts: f32[P, N]
//     acc a: f32 = sum                       for p in [0, P) parallel {
//     for k in [0, K) { a += x[k, j] }  ->     for j in [0, N) {
//     y[j] = g(a)                                acc a_2: f32 = sum
//   }                                            for k in [0, min(W, K - W*p)) { a_2 += x[W*p + k, j] }
//                                                a_parts[p, j] = a_2
//                                              }
//                                            }
//                                            for j {
//                                              acc a: f32 = sum
//                                              for p in [0, P) { a += a_parts[p, j] }
//                                              y[j] = g(a)
//                                            }
//
// P and W follow from the sizes alone, so that results do not depend on the number of threads:
// there are more pieces where there are fewer results to share out, and each has enough steps for
// waking a thread to pay. At sizes where the sum is too short for that, or there are results for
// all threads, P is 0 and the nest runs as it was. A sum that is a nest by itself, without loops
// around, is always cut, into one piece at least.
//
// Sums that lie in memory, one row of which a loop accumulates into in each of its iterations,
// beside other work, are cut likewise, into one piece at least:
//
//   for i in [0, N) {                        temp g_parts: f32[P, C]
//     z[i, ..] = ..                          for p in [0, P) {
//     for c in [0, C) { g[c] += x[i, c] }  ->  for c in [0, C) { g_parts[p, c] = 0 }
//   }                                          for i in [0, min(W, N - W*p)) { .. g_parts[p, c] += x[W*p + i, c] .. }
//                                            }
//                                            for p in [0, P) { for c in [0, C) { g[c] += g_parts[p, c] } }
//
// A nest is taken where the lengths of its loops over results are numbers, except for one at most,
// and where it holds accumulators, one loop that only accumulates into them, and statements after
// it. Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> SumInParallel(Program& program, const ParallelSumsOptions& options = {});

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PARALLEL_SUMS_H_
