// Inputs that a nest reads from one end to the other.
#ifndef NESTOR_JIT_SCHEDULE_STREAM_PREFETCHES_H_
#define NESTOR_JIT_SCHEDULE_STREAM_PREFETCHES_H_

#include "loop_ir/program.h"

namespace nestor::loop {

// Loops with lanes prefetch some KB ahead of what they read, where a nest reads an input once, in
// the order of memory, and no loop of it prefetches from that input yet. In that order, each loop
// around moves along one axis, and outer loops along earlier axes than inner ones. Where these
// loops are inside of others, they read a piece of each plane (a strip of an image, for each
// channel): then they prefetch the next plane's piece, into the second cache. Hardware looks ahead,
// too, but not far enough for loops that compute much, whose loads the processor reaches late, nor
// to the next plane. Returns whether it changed anything; a second run changes nothing. REQUIRES:
// Verify accepts the program; and so it does afterwards.
bool PrefetchAlongStreams(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_STREAM_PREFETCHES_H_
