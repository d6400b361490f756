// The lanes of an instruction set's vectors: a small description of the machine for schedule passes
// and code generation alike.
#ifndef NESTOR_JIT_TARGET_LANES_H_
#define NESTOR_JIT_TARGET_LANES_H_

#include <cstdint>

#include "jit/target/isa.h"
#include "loop_ir/program.h"
#include "uops/dtype.h"
#include "uops/scalar_op.h"

namespace nestor::jit {

// The type of one lane of a vector register.
enum class Lane : uint8_t { kI8, kI16, kI32, kI64, kF32, kF64 };
constexpr int kNumLanes = static_cast<int>(Lane::kF64) + 1;
constexpr int LaneBytes(Lane lane) {
  constexpr int kBytes[] = {1, 2, 4, 8, 4, 8};
  return kBytes[static_cast<int>(lane)];
}
inline bool IsFloat(Lane lane) { return lane == Lane::kF32 || lane == Lane::kF64; }
constexpr Lane IntegerLane(int lane_bytes) {
  return lane_bytes == 1   ? Lane::kI8
         : lane_bytes == 2 ? Lane::kI16
         : lane_bytes == 4 ? Lane::kI32
                           : Lane::kI64;
}
// The lanes that elements of `type` are computed in. They are no narrower than kLeastLaneBytes:
// this fills a register with fewer elements, but lets all types meet.
constexpr int kLeastLaneBytes = 4;
Lane LaneOf(DType type);
// The same if only booleans and integers of `narrow_bytes` (1 or 2) meet; otherwise `narrow_bytes`
// is kLeastLaneBytes.
Lane LaneOf(DType type, int narrow_bytes);
// How many of these fill a vector.
inline int LanesOf(DType type, Isa isa) { return VectorBytes(isa) / LaneBytes(LaneOf(type)); }

// The widest lanes, in bytes, that computing the row needs, inside its body, too. `operand` is the
// type of its operands, `target` of its result. 1 or 2: the operands are narrow integers, and lanes
// of their own width suffice. REQUIRES: the row takes `operand`.
int LaneBytesOf(ScalarOp op, DType operand, DType target);

// How many lanes fit if the widest value of the loop's body fills a vector; no lane is narrower
// than kLeastLaneBytes.
int LanesOf(const loop::Program& program, const loop::Loop& loop, Isa isa);

// The width of the lanes that the loop's body can be computed in: 1 or 2 if it reads, computes and
// writes only booleans (side by side in memory for a width of 1 only) and integers of that width,
// by rows that need no wider lanes, and if its elements lie side by side or are the same for all
// lanes. Else kLeastLaneBytes.
int NarrowLaneBytes(const loop::Program& program, const loop::Loop& loop);
// The most lanes that the loop can have: LanesOf, or more if its lanes have NarrowLaneBytes.
int MostLanesOf(const loop::Program& program, const loop::Loop& loop, Isa isa);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_TARGET_LANES_H_
