// Statements that use the sums of a register tile may read a few vectors from each of some rows
// that are far apart in memory: those of a residual connection, say. They are prefetched while
// the tile sums.
#ifndef NESTOR_JIT_SCHEDULE_TILE_PREFETCHES_H_
#define NESTOR_JIT_SCHEDULE_TILE_PREFETCHES_H_

#include "loop_ir/program.h"

namespace nestor::loop {

// Loops with lanes that fill a register tile prefetch what loops after its sum read beside the same
// elements of the tile, from inputs and the program's temps. Returns whether it changed anything; a
// second run changes nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
bool PrefetchBesideTiles(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_TILE_PREFETCHES_H_
