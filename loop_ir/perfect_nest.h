// Perfect nests: a *band* of loops, of which each but the innermost holds the next one and nothing
// else, around what the innermost one holds, the *core*.
//
//   for i in [0, M) { for j in [0, N) { s = 0; for k in [0, K) { s += a[i, j, k] } b[i, j] = s } }
//
// has the band i, j and three items in its core; the loop over k is a perfect nest of its own.
// Bounds may hold the indices of loops around.
#ifndef NESTOR_LOOP_IR_PERFECT_NEST_H_
#define NESTOR_LOOP_IR_PERFECT_NEST_H_

#include <vector>

#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The loop that is all of the scope; null if there is none.
const Loop* OnlyLoopIn(const Scope& scope);
Loop* OnlyLoopIn(Scope& scope);
// The only loop among the scope's items; null if there are none or several.
const Loop* OneLoopAmong(const Scope& scope);

// The loops from `outermost` on inwards, which is the first.
LoopsAround BandOf(const Loop& outermost);
std::vector<Loop*> BandOf(Loop& outermost);
const Scope& CoreOf(const Loop& outermost);
Scope& CoreOf(Loop& outermost);

// The statement that is all of the core; null if anything else is in there.
const Statement* OnlyStatementIn(const Loop& outermost);
Statement* OnlyStatementIn(Loop& outermost);

// A scope with this loop alone.
Scope ScopeOf(Loop loop);
// The loop's index and range around another body, without its attributes.
Scope Around(const Loop& loop, Scope body);
// Those of several, outermost first.
Scope Around(absl::Span<const Loop* const> loops, Scope body);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_PERFECT_NEST_H_
