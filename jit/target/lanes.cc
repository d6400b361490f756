// How wide a lane must be is asked by the schedule, which decides how many iterations run side by
// side, and by code generation, which must agree.
//
// Narrow types are computed in lanes of 32 bits, so that a loop has as many lanes as its widest
// value leaves room for. If all values are integers of one narrow width, lanes of that width
// suffice: integers wrap, so that their low bits depend on no others.
//
//   y[i] = x[i] + 1      x, y: u8       64 lanes of 8 bits, if vectors have 64 bytes
//   y[i] = f32(x[i])     x: u8          16 lanes of 32 bits then: f32 is the widest
#include "jit/target/lanes.h"

#include <algorithm>
#include <atomic>

#include "absl/types/span.h"
#include "absl/types/variant.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "uops/scalar_body.h"

namespace nestor::jit {
namespace {

using loop::Program;
using loop::ValueId;

constexpr int kNumScalarOps = 0
#define PRIMITIVE(...) +1
#define COMPOSED(...) +1
#define MIXED(...) +1
#define TRANSCENDENTAL(...) +1
#include "uops/scalar_ops.inc"
#undef PRIMITIVE
#undef COMPOSED
#undef MIXED
#undef TRANSCENDENTAL
    ;

// The narrowest lanes that hold a value of the type.
int OwnLaneBytes(DType type) { return IsFloat(type) ? LaneBytes(LaneOf(type)) : ByteSize(type); }

// For a primitive: the widest of the operands' lanes, the result's, and those of
// intermediate values.
int LaneBytesOfPrimitive(ScalarOp op, DType operand, DType target) {
  const int bytes = std::max(OwnLaneBytes(operand), OwnLaneBytes(target));
  switch (op) {
    // Quotients of 32 bits are found in f64.
    case ScalarOp::kFloorDiv:
    case ScalarOp::kMod:
      return IsInteger(operand) && ByteSize(operand) == 4 ? 8 : std::max(bytes, kLeastLaneBytes);
    // x86 shifts narrower lanes only by a common count, if at all.
    case ScalarOp::kShl:
    case ScalarOp::kShr:
    case ScalarOp::kPopcount:
    case ScalarOp::kClz: return std::max(bytes, kLeastLaneBytes);
    default: return bytes;
  }
}

int ComputeLaneBytes(ScalarOp op, DType operand, DType target) {
  const ScalarFunction function = FunctionOf(op, operand, target);
  if (function.body == nullptr) return LaneBytesOfPrimitive(op, operand, target);
  int bytes = OwnLaneBytes(operand);
  for (const ScalarBody::Step& step : function.body->steps) {
    bytes = std::max(bytes, LaneBytesOf(step.op, step.operand, step.target));
  }
  return bytes;
}

// Whether it is a shift by a count that every lane shares.
bool IsShiftByConstant(const Program& program, const loop::ApplyValue& apply) {
  return (apply.op == ScalarOp::kShl || apply.op == ScalarOp::kShr) &&
         absl::holds_alternative<loop::ConstantValue>(program[apply.args[1]].node);
}

// The widest lanes that computing the value needs.
int WidestLane(const Program& program, ValueId root) {
  int bytes = 1;
  VisitValues(program, root, [&](ValueId, const loop::Value& value) {
    bytes = std::max(bytes, OwnLaneBytes(value.type));
    const auto* apply = absl::get_if<loop::ApplyValue>(&value.node);
    if (apply == nullptr || IsShiftByConstant(program, *apply)) return;
    bytes = std::max(bytes, LaneBytesOf(apply->op, program[apply->args.back()].type, value.type));
  });
  return bytes;
}

// The widest lanes that the loop's body needs.
int WidestLane(const Program& program, const loop::Loop& loop) {
  int bytes = 1;
  VisitItems(loop.body, [&](const loop::Item& item) {
    const auto* statement = item.As<loop::Statement>();
    if (statement == nullptr) return;
    bytes = std::max(bytes, WidestLane(program, statement->value));
    if (statement->op) {
      const DType type = program[statement->target.tensor].type;
      if (!IsArg(*statement->op))
        bytes = std::max(bytes, LaneBytesOf(StepOp(*statement->op), type, type));
    }
    if (statement->position.valid()) bytes = 8;
  });
  return bytes;
}

// The distance in elements from one iteration to the next, if it is 0 or 1; else nullopt.
absl::optional<int> StepInLanes(const Program& program, absl::Span<const IndexId> place,
                                int32_t var) {
  int sum = 0;
  for (size_t axis = 0; axis < place.size(); ++axis) {
    const auto step = loop::StrideIn(program.pool, place[axis], var);
    if (!step || (*step != 0 && (*step != 1 || axis + 1 < place.size()))) return absl::nullopt;
    sum += static_cast<int>(*step);
  }
  return sum;
}

// Whether only booleans in the loop's body have another width, and elements lie so that narrow
// lanes can take them.
bool IsAllOfWidth(const Program& program, const loop::Loop& loop, int bytes) {
  bool is_all = true;
  const auto look = [&](loop::TensorId tensor, absl::Span<const IndexId> place, loop::AccessKind) {
    const auto step = StepInLanes(program, place, loop.var);
    const DType type = program[tensor].type;
    is_all = is_all && step && (ByteSize(type) == bytes || (type == DType::kBool && *step == 0));
  };
  VisitItems(loop.body, [&](const loop::Item& item) {
    VisitAccesses(program, item, look);
    const auto* statement = item.As<loop::Statement>();
    if (statement == nullptr) return;
    VisitValues(program, statement->value, [&](ValueId, const loop::Value& value) {
      is_all = is_all && (value.type == DType::kBool || ByteSize(value.type) == bytes);
    });
  });
  return is_all;
}

// The narrowest lanes that the loop's body can be computed in.
int BytesOfLanes(const Program& program, const loop::Loop& loop) {
  const int widest = WidestLane(program, loop);
  return widest < kLeastLaneBytes && !IsAllOfWidth(program, loop, widest) ? kLeastLaneBytes
                                                                          : widest;
}

}  // namespace

Lane LaneOf(DType type) {
  const bool wide = ByteSize(type) == 8;
  if (IsFloat(type)) return wide ? Lane::kF64 : Lane::kF32;
  return wide ? Lane::kI64 : Lane::kI32;
}

Lane LaneOf(DType type, int narrow_bytes) {
  const Lane lane = LaneOf(type);
  return lane == Lane::kI32 && narrow_bytes < kLeastLaneBytes ? IntegerLane(narrow_bytes) : lane;
}

int LaneBytesOf(ScalarOp op, DType operand, DType target) {
  // 0: not known yet. Threads that race here store the same value.
  static std::atomic<uint8_t> known[kNumScalarOps][kNumTypes][kNumTypes];
  std::atomic<uint8_t>& entry =
      known[static_cast<int>(op)][static_cast<int>(operand)][static_cast<int>(target)];
  int bytes = entry.load(std::memory_order_relaxed);
  if (bytes == 0) {
    bytes = ComputeLaneBytes(op, operand, target);
    entry.store(static_cast<uint8_t>(bytes), std::memory_order_relaxed);
  }
  return bytes;
}

int LanesOf(const Program& program, const loop::Loop& loop, Isa isa) {
  return VectorBytes(isa) / std::max(WidestLane(program, loop), kLeastLaneBytes);
}

int NarrowLaneBytes(const Program& program, const loop::Loop& loop) {
  return std::min(BytesOfLanes(program, loop), kLeastLaneBytes);
}

int MostLanesOf(const Program& program, const loop::Loop& loop, Isa isa) {
  return VectorBytes(isa) / BytesOfLanes(program, loop);
}

}  // namespace nestor::jit
