// A composed op, such as exp, is a body over other rows of the op table: its cost is counted by
// walking bodies down to primitives. The counts are static, each application once, as no value is
// evaluated conditionally.
#include "fusion/cost/work.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "uops/scalar_body.h"

namespace nestor::loop {
namespace {

using IsCounted = bool (*)(ScalarOp op);

// The primitives of one application that are counted.
int Primitives(ScalarOp op, const ScalarFunction& function, IsCounted is_counted) {
  if (function.body == nullptr) return is_counted(op) ? 1 : 0;
  int sum = 0;
  for (const ScalarBody::Step& step : function.body->steps)
    sum += Primitives(step.op, step.function, is_counted);
  return sum;
}

int Count(const Program& program, ValueId root, IsCounted is_counted) {
  int sum = 0;
  VisitValues(program, root, [&](ValueId, const Value& value) {
    const auto* apply = absl::get_if<ApplyValue>(&value.node);
    if (apply == nullptr) return;
    sum += Primitives(
        apply->op, FunctionOf(apply->op, program[apply->args.back()].type, value.type), is_counted);
  });
  return sum;
}

}  // namespace

int OperationsOf(const Program& program, ValueId root) {
  return Count(program, root, [](ScalarOp) { return true; });
}

int ProductsOf(const Program& program, ValueId root) {
  return Count(program, root, [](ScalarOp op) {
    constexpr ScalarOp kProducts[] = {ScalarOp::kMul, ScalarOp::kFma, ScalarOp::kDiv,
                                      ScalarOp::kSqrt};
    return absl::c_linear_search(kProducts, op);
  });
}

int QuotientsOf(const Program& program, ValueId root) {
  return Count(program, root,
               [](ScalarOp op) { return op == ScalarOp::kDiv || op == ScalarOp::kSqrt; });
}

// Those of the largest statement, the step of its accumulation included.
int MostOperations(const Program& program) {
  int most = 0;
  VisitItems(program, [&](const Item& item) {
    const auto* statement = item.As<Statement>();
    if (statement == nullptr) return;
    most = std::max(most, OperationsOf(program, statement->value) + (statement->op ? 1 : 0));
  });
  return most;
}

}  // namespace nestor::loop
