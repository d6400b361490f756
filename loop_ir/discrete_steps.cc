// A rounding error is harmless until something decides by it: then the smallest change becomes a
// jump. This is a backward data-flow analysis, insensitive to the order of statements. Works
// backwards from the steps: from a result to the operands that pass on into it, from a load to all
// stores to its tensor, until no tensor is new. The order and the places of loads and stores are
// ignored, so the answer holds whatever loops the statements are in.
//
//   q = a / b   y = floor(q)   z = q * 2     # the quotient reaches a step, the product does not
#include "loop_ir/discrete_steps.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "loop_ir/elements.h"
#include "uops/operand_use.h"

namespace nestor::loop {
namespace {

std::vector<const Statement*> StatementsOf(const Program& program) {
  std::vector<const Statement*> statements;
  VisitItems(program, [&](const Item& item) {
    if (const auto* statement = item.As<Statement>()) statements.push_back(statement);
  });
  return statements;
}

}  // namespace

DiscreteSteps::DiscreteSteps(const Program& program, Kind kind)
    : program_(program), kind_(kind), values_(program.values.size()),
      tensors_(program.tensors.size()) {
  std::vector<const Statement*> statements = StatementsOf(program);
  // Mostly each tensor is written before it is read.
  std::reverse(statements.begin(), statements.end());
  do {
    changed_ = false;
    for (const Statement* statement : statements) Visit(*statement);
  } while (changed_);
}

bool DiscreteSteps::Reach(ValueId value) const {
  return value.value < static_cast<int32_t>(values_.size()) && values_[value.value];
}

bool DiscreteSteps::ReachFrom(ValueId root) const {
  bool reach = false;
  VisitValues(program_, root, [&](ValueId id, const Value&) { reach = reach || Reach(id); });
  return reach;
}

void DiscreteSteps::Visit(const Statement& statement) {
  const bool compared = kind_ == Kind::kAll && statement.op && IsArg(*statement.op);
  const bool reaches = tensors_[statement.target.tensor.value] &&
                       !(kind_ == Kind::kEqualities && Accumulates(statement));
  Visit(statement.value, compared || reaches);
  if (statement.position.valid()) Visit(statement.position, false);
}

// Marks the value and what passes on into it; `reaches`: whether the place where it is used reaches
// a step.
void DiscreteSteps::Visit(ValueId id, bool reaches) {
  const Value& value = program_[id];
  reaches = reaches && IsFloat(value.type);
  if (reaches) values_[id.value] = true;
  if (const auto* load = absl::get_if<LoadValue>(&value.node)) {
    const int32_t tensor = load->access.tensor.value;
    changed_ |= reaches && !tensors_[tensor];
    if (reaches) tensors_[tensor] = true;
  }
  const auto* apply = absl::get_if<ApplyValue>(&value.node);
  if (apply == nullptr) return;
  const DType operand = program_[apply->args.back()].type;
  for (size_t i = 0; i < apply->args.size(); ++i) {
    const OperandUse use = UseOf(apply->op, operand, value.type, static_cast<int>(i));
    Visit(apply->args[i], (use.steps && IsStep(*apply)) || (use.passes && reaches));
  }
}

bool DiscreteSteps::IsStep(const ApplyValue& apply) const {
  if (kind_ == Kind::kAll) return true;
  const auto is_constant = [&](ValueId id) {
    return absl::holds_alternative<ConstantValue>(program_[id].node);
  };
  const bool asks = apply.op == ScalarOp::kEq || apply.op == ScalarOp::kNe;
  return asks && apply.args[0] != apply.args[1] && absl::c_none_of(apply.args, is_constant);
}

// A maximum or minimum is one of what it takes, and so not meant.
bool DiscreteSteps::Accumulates(const Statement& statement) const {
  if (statement.op) return *statement.op == ReduceOp::kSum || *statement.op == ReduceOp::kProd;
  const auto* apply = absl::get_if<ApplyValue>(&program_[statement.value].node);
  const auto is_old = [&](ValueId arg) { return IsElement(program_, arg, statement.target); };
  return apply != nullptr && absl::c_any_of(apply->args, is_old);
}

}  // namespace nestor::loop
