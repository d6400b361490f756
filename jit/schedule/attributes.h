// Marks the loops that may run on several threads, and those that run in the lanes of vectors.
#ifndef NESTOR_JIT_SCHEDULE_ATTRIBUTES_H_
#define NESTOR_JIT_SCHEDULE_ATTRIBUTES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// How much of a loop is scheduled: its body is in loops marked `vector` or `unroll`, or the loop
// itself is marked. Passes leave a scheduled loop alone, and look only at the parts of one that is
// scheduled in part.
enum class Scheduled : uint8_t { kNothing, kInPart, kAll };
Scheduled ScheduledOf(const Loop& loop);

// Each loop at the top becomes `parallel` where it carries no dependence
// (loop_ir/dependence.h).
absl::StatusOr<bool> MarkParallel(Program& program);

// A loop that is all of a parallel loop's body becomes parallel, too, where it carries no
// dependence, begins at 0 and holds a loop that is more than a few vectors: the code cuts the
// iterations of all these loops together into pieces. Vector loops, and loops inside them, do not.
absl::StatusOr<bool> MarkInnerParallel(Program& program);

// In each nest, the loop along which most accesses step from one element to the next becomes
// `vector`, if it can run in lanes (loop_ir/lanes.h) and carries no dependence; among equals, the
// outermost. A nest whose loops all jump stays scalar.
absl::StatusOr<bool> MarkVector(Program& program);

// Vector loops that can run in lanes get as many as their widest value leaves room for in the
// vectors of `isa`; the others run one iteration after the other.
absl::StatusOr<bool> SetLanes(Program& program, jit::Isa isa);

// Decides for loops with lanes how their vectors run: written out where the loop is at most two
// vectors long or walks a register tile, else two side by side; and whether there is a tail.
absl::StatusOr<bool> DecideVectors(Program& program);

// All return whether they changed anything; a second run changes nothing.
// REQUIRES: Verify accepts the program; and so it does afterwards.

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_ATTRIBUTES_H_
