// Marks loops: which may run on several threads, and which in the lanes of vectors.
#ifndef NESTOR_JIT_SCHEDULE_ATTRIBUTES_H_
#define NESTOR_JIT_SCHEDULE_ATTRIBUTES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// How much of a loop's body stands in loops that are marked `vector` or `unroll`, the loop
// itself among them: how that runs is decided. Passes leave alone what is scheduled, and of
// what is in part only look at the parts.
enum class Scheduled : uint8_t { kNothing, kInPart, kAll };
Scheduled ScheduledOf(const Loop& loop);

// The outermost loop of each block becomes `parallel` where it carries no dependence
// (loop_ir/dependence.h).
absl::StatusOr<bool> MarkParallel(Program& program);

// Loops right inside a parallel one, which hold nothing beside them, become parallel, too,
// where they carry no dependence, begin at 0 and hold a loop of their own that is more than a
// few vectors: code cuts the iterations of all such loops together into pieces. Not those of a
// vector.
absl::StatusOr<bool> MarkInnerParallel(Program& program);

// In each nest, the loop along which most accesses step from one element to the next
// becomes `vector`, if it can run in lanes (loop_ir/lanes.h) and carries no dependence;
// of equals the outermost. A nest whose loops all jump stays scalar.
absl::StatusOr<bool> MarkVector(Program& program);

// Vector loops that can run in lanes get as many as their widest value leaves room for in the
// vectors of `isa`; the others run one iteration after the other.
absl::StatusOr<bool> SetLanes(Program& program, jit::Isa isa);

// All return whether they changed anything; a second run changes nothing.
// REQUIRES: Verify accepts the program; and so it does afterwards.

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_ATTRIBUTES_H_
