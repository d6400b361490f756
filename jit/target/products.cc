// A step of a sum of gated products is four values deep. A schedule pass writes it (fused, so that
// it rounds once), and code generation looks for exactly that form, to run the sum without gates
// where it may (codegen/translate_gated_sums.cc). Both are here so that they cannot differ.
//
//   t + mulz(a, b)   ->   g = a == 0 || b == 0
//                         fma(where(g, 0, a), where(g, 0, b), t)
#include "jit/target/products.h"

namespace nestor::jit {

using loop::ApplyValue;
using loop::Program;
using loop::ValueId;

const ApplyValue* AsApply(const Program& program, ValueId id, ScalarOp op) {
  const auto* apply = absl::get_if<ApplyValue>(&program[id].node);
  return apply != nullptr && apply->op == op ? apply : nullptr;
}

bool IsPlusZero(const Program& program, ValueId id) {
  const auto* constant = absl::get_if<loop::ConstantValue>(&program[id].node);
  return constant != nullptr && constant->value.bits == 0;
}

ValueId AddGatedStep(Program& program, ValueId a, ValueId b, ValueId t) {
  const DType type = program[t].type;
  const ValueId zero = program.AddConstant(Scalar::Zero(type));
  const ValueId tests[] = {program.AddApply(ScalarOp::kEq, {a, zero}),
                           program.AddApply(ScalarOp::kEq, {b, zero})};
  const ValueId gate = program.AddApply(ScalarOp::kOr, tests);
  return program.AddApply(ScalarOp::kFma,
                          {program.AddApply(ScalarOp::kSelect, {gate, zero, a}, type),
                           program.AddApply(ScalarOp::kSelect, {gate, zero, b}, type), t},
                          type);
}

namespace {

// Whether the value is a == 0.
bool IsZeroTest(const Program& program, ValueId id, ValueId a) {
  const ApplyValue* test = AsApply(program, id, ScalarOp::kEq);
  return test != nullptr && test->args[0] == a && IsPlusZero(program, test->args[1]);
}

}  // namespace

// Matches what AddGatedStep makes, node by node; equal values are one node, so a and b are found in
// both their test and their choice.
absl::optional<GatedStep> GatedStepOf(const Program& program, ValueId id) {
  const ApplyValue* step = AsApply(program, id, ScalarOp::kFma);
  if (step == nullptr) return absl::nullopt;
  const ApplyValue* a = AsApply(program, step->args[0], ScalarOp::kSelect);
  const ApplyValue* b = AsApply(program, step->args[1], ScalarOp::kSelect);
  if (a == nullptr || b == nullptr || a->args[0] != b->args[0]) return absl::nullopt;
  const ApplyValue* gate = AsApply(program, a->args[0], ScalarOp::kOr);
  if (gate == nullptr || !IsPlusZero(program, a->args[1]) || !IsPlusZero(program, b->args[1]))
    return absl::nullopt;
  const bool tests_a = IsZeroTest(program, gate->args[0], a->args[2]);
  if (!tests_a || !IsZeroTest(program, gate->args[1], b->args[2])) return absl::nullopt;
  return GatedStep{a->args[2], b->args[2], step->args[2], step->args[0], step->args[1]};
}

}  // namespace nestor::jit
