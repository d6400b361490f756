// Results that are a different sum for each remainder of an index are gathered by strips of rows.
#ifndef NESTOR_JIT_SCHEDULE_RESIDUE_STRIPS_H_
#define NESTOR_JIT_SCHEDULE_RESIDUE_STRIPS_H_

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for n in [0, N) { for o in [0, O) { for h in [0, H) { for i in [0, W) {
//     acc s: f32 = sum
//     for c in [0, C) { for r in [0, (i + 1)/2 - i/2 + 1) { s += w[c, o, i%2 - 2*r + 1] * x[n, c, h/2, i/2 + r] } }
//     y[n, o, h, i] = max(s, b[o])
//   } } } }
//     ->
//   for n in [0, N) { for p in [0, P) {                    strips of T rows (kept_sum.h)
//     temp gathered: f32[T, W, O]
//     for h in [T*p, min(H, T*p + T)) { for i { for o {
//       acc s: f32 = sum  for c { for r { s += .. } }  gathered[h - T*p, i, o] = s
//     } } }
//     for o, h, i { y[n, o, h, i] = max(gathered[h - T*p, i, o], b[o]) }
//   } }
//
// where the bounds of the sum move with i/2, so that split_residues makes a nest for each
// remainder: the gradient of a convolution with a stride. Without this, each of these nests stores
// every second element of a row, and reads all of an image of x once more. `w` depends on h and i
// only by their remainders, and o is not known to have less than two vectors, as it gets the lanes.
// T is a multiple of the number that h is divided by.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and
// so it does afterwards.
absl::StatusOr<bool> GatherResidues(Program& program, jit::Isa isa);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_RESIDUE_STRIPS_H_
