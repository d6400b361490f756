// Loops over flat indices become loops over the indices that were flattened.
#ifndef NESTOR_JIT_SCHEDULE_SPLIT_QUOTIENTS_H_
#define NESTOR_JIT_SCHEDULE_SPLIT_QUOTIENTS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for i in [0, N*M) { y[i] = x[i / M, i % M] }
//     ->
//   for q in [0, N*M/max(M, 1)) { for r in [0, max(M, 1)) { y[q*max(M, 1) + r] = x[q, r] } }
//   for i in [N*M/max(M, 1)*max(M, 1), N*M) { y[i] = x[i / M, i % M] }
//
// (the first two run no iteration where M is not positive), where all loops of the nest from its
// outermost to this one carry no dependence, the loop begins at 0 and is not known to be shorter
// than the divisor, which is an expression of symbols, or too large for a few lanes. Nothing
// divides inside, and values that depend on the quotient alone do not change there.
//
// In nests that copy, the loop over an index that is divided after symbols are added to it is split
// as well: around it is a loop over the quotients of the sum, so that it runs over stretches in
// which the remainder grows with the index.
//
//   for i in [0, N) { y[i] = x[(i - $s) % N] }
//     ->
//   for q in [0, (N - 1 - $s)/N - (-$s)/N + 1) { for i in [max(0, b), min(N, b + N)) { y[i] = x[i - b] } }
//
// with b = ((-$s)/N + q)*N + $s, which is $s where that is in [0, N) and q is 1.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> SplitQuotients(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SPLIT_QUOTIENTS_H_
