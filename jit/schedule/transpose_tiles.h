// Transposes go through tiles in registers.
#ifndef NESTOR_JIT_SCHEDULE_TRANSPOSE_TILES_H_
#define NESTOR_JIT_SCHEDULE_TRANSPOSE_TILES_H_

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The outermost and the innermost of nested loops run in tiles if one walks along the rows of a
// tensor that is written and the other along the rows of one that is read:
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
// Inside of other loops, the last tile ends where the rows do, so that only rows shorter than a
// tile are left over. Every second element is read likewise.
//
// Where a vector is less than a cache line, tiles beside each other are written together, a line
// at a time, and as many make a square that reads whole lines, too; fewer along a loop that is
// known to have no room for them. Squares are walked in blocks, so that all that a block reads and
// writes lies on few pages. If there are loops between, each row of squares takes some iterations
// of the innermost one, so that short rows are written one after the other:
//
//   for o in [0, O) { for h in [0, H) { for w in [0, W) { y[o, h, w] = x[h, w, o] } } }
//     ->
//   for s in [0, ceil(H/8)) { for p in [0, O/8) { for h in [8*s, min(H, 8*s + 8)) { for q in [0, W/8) { .. } } } }
//
// Returns whether it changed anything; if not, the program is untouched. A second run
// changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> TransposeInTiles(Program& program, jit::Isa isa);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TRANSPOSE_TILES_H_
