// For arguments larger than the caches: rows are prefetched, and stores bypass the caches.
#ifndef NESTOR_JIT_SCHEDULE_STREAMING_H_
#define NESTOR_JIT_SCHEDULE_STREAMING_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// For arguments that a core's own caches do not hold. Loops with lanes prefetch what they will read
// in the next iteration of a loop around that goes from row to row of an input,
// - where rows are gathered by indices that lie in inputs: hardware cannot guess them;
// - where the body of the loop around walks the row more than once: memory is idle from the second
//   time on, and hardware looks ahead along a row, but not to the next. The loop with lanes is then
//   the last that walks the row from its beginning;
// and in the next iteration of a loop around that goes from piece to piece of a row, of a cache
// line at most, where a loop between goes from row to row (a transpose by squares does). An input
// that is read once from one end to the other is fetched some KB ahead (stream_prefetches.h). Loops
// that fill a register tile prefetch the operands that its sums are combined with
// (tile_prefetches.h). Returns whether it changed anything; a second run changes nothing. REQUIRES:
// Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> PrefetchArguments(Program& program);

// For arguments that no cache holds: does the same, and makes assignments to outputs stream, unless
// much is computed for each byte, as in a nest that sums products in register tiles.
absl::StatusOr<bool> StreamArguments(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_STREAMING_H_
