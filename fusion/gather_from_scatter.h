// Gathering in place of scattering: gradients run like forward programs.
#ifndef NESTOR_FUSION_GATHER_FROM_SCATTER_H_
#define NESTOR_FUSION_GATHER_FROM_SCATTER_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Turns a nest that sets a tensor to an op's identity and a later one that
// accumulates into it at places of its own choosing,
//
//   for y { t[y] = 0.0 }
//   for l { for r { drop t[l*$s + r - $p] += f(l, r) } }
//
// into one that reduces over each element's preimage (preimage.h),
//
//   for y { acc a: f32 = sum
//           for r { drop a if 0 <= y/$s - r .. += f(y/$s - r, ..) }
//           t[y] = a }
//
// where nothing touches the tensor in between, places can be inverted, and it is
// no more work. Every bit stays: contributions to an element keep their order. (But
// the proof that indices do not overflow may refuse sizes near the ends of int64.)
// A scatter that stays one, of a load that gives the identity where a condition fails, has this
// condition in its store then:
//
//   for l { for r { drop t[l*$n/3 + r] += x[l | 0.0 if r < N] } }
//     ->
//   for l { for r { drop t[l*$n/3 + r] if r < N += x[l | 0.0] } }
//
// Returns whether it changed anything; if not, the program is as it was.
//
// "No more work" means: each inner loop is one of the scatter, or runs over a residue class or
// interval of one; and the product of all loops, with every dimension large and $params small,
// grows no faster than the work of the two nests did (constant factors at most 16 times larger).
// Then the work exceeds theirs only by the cost of strides, and by elements that no place reaches.
//
// REQUIRES: Verify accepts the program; and so it does afterwards. The pass is meant for what
// lowering yields: perfect nests.
absl::StatusOr<bool> GatherFromScatter(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_GATHER_FROM_SCATTER_H_
