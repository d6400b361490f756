// Partial results in lanes: a reduction along a row becomes as many reductions as fit
// in a few vectors, whose results are then combined.
#ifndef NESTOR_JIT_SCHEDULE_LANE_PARTIALS_H_
#define NESTOR_JIT_SCHEDULE_LANE_PARTIALS_H_

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

struct LanePartialsOptions {
  jit::Isa isa = jit::kLeastIsa;
  // Vectors of partial results, which is also the number of operations in flight. It is rounded
  // down to a power of two.
  int vectors = 4;
  // Takes sums and products of floats, too, whose rounding depends on the order.
  bool reorders_rounding = true;
};

//   for k in [0, C) { acc += x[i, k] }
//     ->
//   acc p: f32[32] = sum register
//   for k in [0, C/32) { for l in [0, 32) vector { p[l] += x[i, 32*k + l] } }
//   for l in [0, C%32) vector { p[l] += x[i, 32*(C/32) + l] }
//   temp q: f32[16] register     for l in [0, 16) vector { q[l] = p[l] + p[l + 16] }
//   ...                                                       # 8, 4, 2, 1
//   acc += r[0]
//
// The partial results are kept in the outermost scope in which nothing else uses the accumulator. A
// loop is taken if only its accumulators keep it from running in lanes, each of which it only
// accumulates into, and if it walks along memory. It may hold loops, over windows, that are known
// to be too short for lanes themselves.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> SumInLanes(Program& program, const LanePartialsOptions& options);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_LANE_PARTIALS_H_
