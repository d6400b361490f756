// What vectors of an instruction set hold: a small description of the machine for schedule
// passes and code generation alike.
#ifndef NESTOR_JIT_TARGET_LANES_H_
#define NESTOR_JIT_TARGET_LANES_H_

#include <cstdint>

#include "jit/runtime/cpu_features.h"
#include "loop_ir/program.h"
#include "uops/dtype.h"
#include "uops/scalar_op.h"

namespace nestor::jit {

// What one lane of a vector register holds.
enum class Lane : uint8_t { kI32, kI64, kF32, kF64 };
inline int LaneBytes(Lane lane) { return lane == Lane::kI32 || lane == Lane::kF32 ? 4 : 8; }
inline bool IsFloat(Lane lane) { return lane == Lane::kF32 || lane == Lane::kF64; }
inline Lane IntegerLane(int lane_bytes) { return lane_bytes == 4 ? Lane::kI32 : Lane::kI64; }
// The lanes that elements of `type` are computed in.
Lane LaneOf(DType type);
// How many of these fill a vector.
inline int LanesOf(DType type, Isa isa) { return VectorBytes(isa) / LaneBytes(LaneOf(type)); }

// The widest lanes, in bytes, that computing the row needs, inside its body, too. `operand` is
// the type of its operands, `target` of its result. REQUIRES: the row takes `operand`.
int LaneBytesOf(ScalarOp op, DType operand, DType target);

// How many lanes fit where the widest value of the loop's body fills a vector.
int LanesOf(const loop::Program& program, const loop::Loop& loop, Isa isa);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_TARGET_LANES_H_
