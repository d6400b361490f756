// Contractions that share a nest get nests of their own.
#ifndef NESTOR_JIT_SCHEDULE_SPLIT_CONTRACTIONS_H_
#define NESTOR_JIT_SCHEDULE_SPLIT_CONTRACTIONS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for i in [0, N) { for j in [0, M) {             temp sums: f32[N, M]
//     acc s: f32 = sum                              for i in [0, N) { for j in [0, M) {
//     acc r: f32 = sum                                acc s: f32 = sum
//     for k in [0, K) { s += x[i, k]*v[k, j] }        for k in [0, K) { s += x[i, k]*v[k, j] }
//     for k in [0, L) { r += z[i, k]*w[k, j] }  ->    sums[i, j] = s
//     y[i, j] = s*r                                 } }
//   } }                                             for i in [0, N) { for j in [0, M) {
//                                                     acc r: f32 = sum
//                                                     for k in [0, L) { r += z[i, k]*w[k, j] }
//                                                     y[i, j] = sums[i, j]*r
//                                                   } }
//
// where the nest is no contraction (contraction.h) as it is, but one of its sums would be; and so
// on, until the rest is one, or holds none. Such nests are made by fusion, which merges nests over
// the same rows and columns, and by sums over rows beside the contraction: a nest with g[j] += s is
// no contraction. A sum further inside is split off as well, where columns are two loops or more: a
// nest over the points of an image that reduces them. (Those of one loop run in strips, strips.h.)
// A sum that is a contraction once each remainder of a quotient has its own nest (split_residues.h)
// is split off first; one that is a contraction once it is padded (padded_sums.h) counts as well.
// Loops around that belong to neither rows nor columns stay around both. That
// the temporary is small is an assumption of the program (AssumeFewElements). Sums of few steps
// stay: storing and reading them would be as much work.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> SplitContractions(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SPLIT_CONTRACTIONS_H_
