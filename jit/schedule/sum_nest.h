// Perfect nests around a sum, and their second run where a quicker form of the sum was wrong.
#ifndef NESTOR_JIT_SCHEDULE_SUM_NEST_H_
#define NESTOR_JIT_SCHEDULE_SUM_NEST_H_

#include <cstddef>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

//   for ..band.. {
//     acc s: f32 = sum  for ..sums.. { s += value }
//     .. statements with s ..
//   }
struct SumNest {
  LoopsAround band;  // outermost first
  LoopsAround sums;
  std::vector<Loop> hulls;      // of the sums, with all their steps
  const Scope* core = nullptr;  // what the innermost loop of the band holds
  const Statement* step = nullptr;
};

// The perfect nest that begins with the loop, around a core with one nest of sums, which ends in `s
// += value`, and statements that may run after them; each sum must have a hull
// (contraction_bounds.cc). The result points into the loop.
absl::optional<SumNest> SumNestOf(const Program& program, const Loop& outermost);

// The core of a copy of the nest, or of its inner part, in which loops have the same indices.
Scope& CoreIn(const SumNest& nest, Loop& whole);
// Moves the sums before the statements, as a contraction has them.
void PutSumsFirst(const SumNest& nest, Loop& whole);

// `whole`, a copy of the nest from loop number `depth` of its band on, whose sum may be computed in
// a way that is right if it is no NaN, or all of `others` are finite at all steps; then the nest
// from that loop on as it was, which runs where neither holds, and overwrites the results. No bit
// of a result changes. REQUIRES: `ranges` is at the place of that loop; from there on the lengths of
// the loops of the band move with no loop, as a temporary may have an element for each iteration.
Scope WithSecondRun(Program& program, Ranges& ranges, const SumNest& nest, size_t depth, Loop whole,
                    absl::Span<const ValueId> others);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SUM_NEST_H_
