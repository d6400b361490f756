#include "jit/schedule/work.h"

#include <algorithm>

#include "uops/scalar_body.h"

namespace nestor::jit {
namespace {

int Primitives(const ScalarFunction& function) {
  if (function.body == nullptr) return 1;
  int sum = 0;
  for (const ScalarBody::Step& step : function.body->steps) sum += Primitives(step.function);
  return sum;
}

}  // namespace

int OperationsOf(const loop::Program& program, loop::ValueId root) {
  int sum = 0;
  VisitValues(program, root, [&](loop::ValueId, const loop::Value& value) {
    const auto* apply = absl::get_if<loop::ApplyValue>(&value.node);
    if (apply != nullptr) sum += Primitives(FunctionOf(apply->op, program[apply->args.back()].type, value.type));
  });
  return sum;
}

int MostOperations(const loop::Program& program) {
  int most = 0;
  for (const loop::Block& block : program.blocks) {
    VisitItems(block.body, [&](const loop::Item& item) {
      const auto* statement = item.As<loop::Statement>();
      if (statement == nullptr) return;
      most = std::max(most, OperationsOf(program, statement->value) + (statement->op ? 1 : 0));
    });
  }
  return most;
}

}  // namespace nestor::jit
