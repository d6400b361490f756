// Merging: loops of one scope that walk the same values become one loop.
#ifndef NESTOR_FUSION_MERGE_LOOPS_H_
#define NESTOR_FUSION_MERGE_LOOPS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Merges, in every scope from the outermost inwards, a later nest of loops with an earlier one,
// where match_nests.h finds loops that they can share; what is left of the two is placed one after
// the other in the shared loops' body, where it is looked at in turn. *Merge left*: the later nest
// moves up to the earlier one; *merge right*: the earlier one moves down, and so do those in
// between that depend on it.
//
// Merging makes no loop larger than 2048 values and conditions (nest_list.h says why).
//
// Returns whether it changed anything; if not, the program is untouched. No result
// changes in any bit.
//
// REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> MergeLoops(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_MERGE_LOOPS_H_
