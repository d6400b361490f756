// Vectors at the ends of a row that need masks, apart from those inside.
#ifndef NESTOR_JIT_SCHEDULE_PEEL_BORDERS_H_
#define NESTOR_JIT_SCHEDULE_PEEL_BORDERS_H_

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Peels the first and the last vector off a loop in lanes that loads elements beyond the ends of a
// row, as a stencil does. With 8 lanes:
//
//   for i in [0, N) vector { y[i] = x[i - 1 | 0.0] + x[i + 1 | 0.0] }
//     ->
//   for z in [0, min(N/8, 1)) {
//     for i in [0, 8) vector { y[i] = x[i - 1 | 0.0] + x[i + 1] }
//     for i in [8, 8*((N - 1)/8)) vector { y[i] = x[i - 1] + x[i + 1] }
//     for i in [N - 8, N) vector { y[i] = x[i - 1] + x[i + 1 | 0.0] }
//   }
//   for z in [0, 1 - min(N/8, 1)) { for i in [0, min(N, 7)) vector { y[i] = x[i - 1 | 0.0] + x[i + 1 | 0.0] } }
//
// All vectors are whole, and those inside, most of a long row, have no masks. The last one overlaps
// the one before where N is no multiple of the lanes: elements there are computed twice. So the body
// must assign, and read nothing that it writes. Elements may lie up to a vector before a row, or
// behind it. What is decided in a piece is left out, as the row above in the first row of an image.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> PeelBorders(Program& program, jit::Isa isa);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PEEL_BORDERS_H_
