// Transposes go through tiles in registers.
#ifndef NESTOR_JIT_SCHEDULE_TRANSPOSE_TILES_H_
#define NESTOR_JIT_SCHEDULE_TRANSPOSE_TILES_H_

#include "absl/status/statusor.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// Of two nested loops of which one walks along the rows of what is written and the other
// along the rows of something that is read:
//
//   for i in [0, B) { for j in [0, A) { y[i, j] = x[j, i] } }
//     ->
//   for p in [0, B/8) { for q in [0, A/8) {
//     temp t: f32[8, 8] register
//     for r in [0, 8) unroll { for l in [0, 8) vector { t[r, l] = x[8*q + r, 8*p + l] } }
//     for r in [0, 8) unroll { for l in [0, 8) vector { y[8*p + r, 8*q + l] = t[l, r] } }
//   } }
//   ... and what is left over, as it was.
//
// Inside of other loops the last tile ends where the rows do, so that nothing is left over but rows that
// are shorter than a tile. Every second element is read likewise.
//
// Where a vector is less than a cache line, tiles beside each other are written together,
// a line at a time, and as many make a square that reads whole lines, too. Squares are
// walked in blocks, so that what is read and written lies on few pages.
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> TransposeInTiles(loop::Program& program, Isa isa);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_TRANSPOSE_TILES_H_
