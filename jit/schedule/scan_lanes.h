// Scans in lanes: stretches of steps of a recurrence that sums, multiplies, does both, or takes
// maxima or minima along memory run side by side.
#ifndef NESTOR_JIT_SCHEDULE_SCAN_LANES_H_
#define NESTOR_JIT_SCHEDULE_SCAN_LANES_H_

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

struct ScanLanesOptions {
  jit::Isa isa = jit::kLeastIsa;
  // Takes sums and products of floats, too, whose rounding depends on the order.
  bool reorders_rounding = true;
};

// With four lanes, for steps that go up:
//
//   for t in [0, C) {                       for t in [0, C/16) {
//     temp now: f64                           temp terms: f64[4, 4] register
//     now = last + x[t]                       for r in [0, 4) unroll { for l in [0, 4) vector {
//     y[t] = now                                terms[r, l] = x[16*t + 4*r + l]
//     last = now                              } }
//   }                                         # Each lane has four steps of its own.
//                                             temp scans: f64[4, 4] register
//                                   ->        for l in [0, 4) vector { scans[0, l] = terms[l, 0] }
//                                             for r in [1, 4) unroll { for l in [0, 4) vector {
//                                               scans[r, l] = scans[r - 1, l] + terms[l, r]
//                                             } }
//                                             temp ends: f64[4]
//                                             for l in [0, 4) vector { ends[l] = scans[3, l] }
//                                             temp starts: f64[4]
//                                             for r in [0, 4) unroll {
//                                               starts[r] = last
//                                               last = last + ends[r]
//                                             }
//                                             for r in [0, 4) unroll { for l in [0, 4) vector {
//                                               y[16*t + 4*r + l] = starts[r] + scans[l, r]
//                                             } }
//                                           }
//                                           ... and what is left over, as it was.
//
// Where steps multiply and add, `last = factor[t] * last + term[t]`, both are read into tiles. The
// product of the factors of each row, and its end from 0, are found in lanes; they give the next
// row's start; and from its start each row runs once more in lanes.
//
// Blocks begin later where rows of the stored elements would otherwise not be whole
// vectors of memory.
//
// A loop is taken if one scalar, of a type that fills the lanes in which the loop could run, goes
// from step to step, by sums, products, both, maxima or minima of itself and of values that do not
// depend on it (scan_finder.h), and if the loop walks along memory, in either direction.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> ScanInLanes(Program& program, const ScanLanesOptions& options);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SCAN_LANES_H_
