// Narrow types are computed in lanes of 32 bits, so that a loop has as many lanes as the widest
// value on its way leaves room for.
#include "jit/target/lanes.h"

#include <algorithm>
#include <atomic>

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

// Of a primitive: the operands' lanes, the result's, and what lies between.
int LaneBytesOfPrimitive(ScalarOp op, DType operand, DType target) {
  // Quotients of 32 bits are found in f64.
  const bool divides = op == ScalarOp::kFloorDiv || op == ScalarOp::kMod;
  if (divides && IsInteger(operand) && ByteSize(operand) == 4) return 8;
  return std::max(LaneBytes(LaneOf(operand)), LaneBytes(LaneOf(target)));
}

int ComputeLaneBytes(ScalarOp op, DType operand, DType target) {
  const ScalarFunction function = FunctionOf(op, operand, target);
  if (function.body == nullptr) return LaneBytesOfPrimitive(op, operand, target);
  int bytes = LaneBytes(LaneOf(operand));
  for (const ScalarBody::Step& step : function.body->steps) {
    bytes = std::max(bytes, LaneBytesOf(step.op, step.operand, step.target));
  }
  return bytes;
}

// The widest lanes that computing the value needs.
int WidestLane(const Program& program, ValueId root) {
  int bytes = 4;
  VisitValues(program, root, [&](ValueId, const loop::Value& value) {
    bytes = std::max(bytes, LaneBytes(LaneOf(value.type)));
    const auto* apply = absl::get_if<loop::ApplyValue>(&value.node);
    if (apply == nullptr) return;
    bytes = std::max(bytes, LaneBytesOf(apply->op, program[apply->args.back()].type, value.type));
  });
  return bytes;
}

}  // namespace

Lane LaneOf(DType type) {
  const bool wide = ByteSize(type) == 8;
  if (IsFloat(type)) return wide ? Lane::kF64 : Lane::kF32;
  return wide ? Lane::kI64 : Lane::kI32;
}

int LaneBytesOf(ScalarOp op, DType operand, DType target) {
  // 0: not known yet. Threads that meet there store the same.
  static std::atomic<uint8_t> known[kNumScalarOps][kNumTypes][kNumTypes];
  std::atomic<uint8_t>& entry = known[static_cast<int>(op)][static_cast<int>(operand)][static_cast<int>(target)];
  int bytes = entry.load(std::memory_order_relaxed);
  if (bytes == 0) {
    bytes = ComputeLaneBytes(op, operand, target);
    entry.store(static_cast<uint8_t>(bytes), std::memory_order_relaxed);
  }
  return bytes;
}

int LanesOf(const Program& program, const loop::Loop& loop, Isa isa) {
  int bytes = 4;
  const auto look = [&](const loop::Item& item) {
    const auto* statement = item.As<loop::Statement>();
    if (statement == nullptr) return;
    bytes = std::max(bytes, WidestLane(program, statement->value));
    if (statement->op) {
      const DType type = program[statement->target.tensor].type;
      if (!IsArg(*statement->op)) bytes = std::max(bytes, LaneBytesOf(StepOp(*statement->op), type, type));
    }
    if (statement->position.valid()) bytes = 8;
  };
  VisitItems(loop.body, look);
  return VectorBytes(isa) / bytes;
}

}  // namespace nestor::jit
