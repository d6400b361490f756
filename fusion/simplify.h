// Simplify: uses what is known about indices.
#ifndef NESTOR_FUSION_SIMPLIFY_H_
#define NESTOR_FUSION_SIMPLIFY_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Does the following in the whole program, by what ranges.h proves at each place:
//  - simplifies bounds, extents, places, conditions and index values; a symbol in
//    bounds and extents that an equality binds is written as its representative;
//  - drops conditions that are always true, or that the other conditions or being
//    in range imply; an access that is always in range is no longer masked; one
//    that never is becomes its fill, or is not made at all;
//  - removes loops that never run, and replaces those that run once by their body;
//  - simplifies values where that keeps every bit (all NaNs being equal).
//
// Returns whether it changed anything; if not, the program is untouched, except for unused
// expressions in its pool. A second run changes nothing. REQUIRES: Verify accepts the program; and
// so it does afterwards (so the last statement that writes an output which may have elements stays,
// though it may never run). Programs that ran before give the same bits. A condition that is
// dropped is no longer checked for overflow.
absl::StatusOr<bool> Simplify(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_SIMPLIFY_H_
