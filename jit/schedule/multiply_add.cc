// Bottom-up over each statement's value. A square is a product, too, but its row is
// left alone: it is one operation already.
#include "jit/schedule/multiply_add.h"

#include <utility>

#include "loop_ir/rewrite.h"

namespace nestor::jit {
namespace {

using loop::ApplyValue;
using loop::Program;
using loop::ValueId;

const ApplyValue* AsApply(const Program& program, ValueId id, ScalarOp op) {
  const auto* apply = absl::get_if<ApplyValue>(&program[id].node);
  return apply != nullptr && apply->op == op ? apply : nullptr;
}

absl::optional<ValueId> Fused(Program& program, ValueId id) {
  const DType type = program[id].type;
  const ApplyValue* sum = AsApply(program, id, ScalarOp::kAdd);
  if (sum == nullptr || (type != DType::kF32 && type != DType::kF64)) return absl::nullopt;
  for (int product : {1, 0}) {
    const ApplyValue* mul = AsApply(program, sum->args[product], ScalarOp::kMul);
    if (mul == nullptr) continue;
    const ValueId args[] = {mul->args[0], mul->args[1], sum->args[1 - product]};
    return program.AddApply(ScalarOp::kFma, args, type);
  }
  return absl::nullopt;
}

}  // namespace

absl::StatusOr<bool> FuseMultiplyAdd(Program& program) {
  bool changed = false;
  for (loop::Block& block : program.blocks) {
    VisitStatements(block.body, [&](loop::Statement& statement) {
      const ValueId by = RewriteValues(program, statement.value, [&](ValueId id) { return Fused(program, id); });
      changed |= by != statement.value;
      statement.value = by;
    });
  }
  return changed;
}

}  // namespace nestor::jit
