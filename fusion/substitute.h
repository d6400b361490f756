// Substitution: a temporary's reads become the expression that it holds.
#ifndef NESTOR_FUSION_SUBSTITUTE_H_
#define NESTOR_FUSION_SUBSTITUTE_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// For a temporary all of whose elements are assigned by one statement `t[i, j] = E(i, j)`,
// replaces later reads t[e, f] by E(e, f), where what E reads is still unchanged, and removes the
// statement with the last read. A masked read becomes a masked read of what E reads, or where(in
// range, E, fill).
//
// When it pays:
//  - E that computes nothing (a read, a constant, an index), or little from tensors of
//    fewer dimensions, or of one with narrower elements: always;
//  - E that is one op on elements that the statement also reads by themselves: always;
//  - the only read, if it reads each element once; every such read, if E is a few ops
//    on one tensor of that size;
//  - a read by a statement that assigns, along loops that E's own loops could not
//    be merged with (shifted, permuted, broadcast): then E is computed again, which
//    is bounded.
// All other temporaries are left to merging and contraction, as are those that would make
// a statement larger than 1024 values or deeper than 160 levels.
//
// Returns whether it changed anything; if not, the program is untouched. No result
// changes in any bit. A second run changes nothing. REQUIRES: Verify accepts the
// program; and so it does afterwards.
absl::StatusOr<bool> SubstituteTemporaries(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_SUBSTITUTE_H_
