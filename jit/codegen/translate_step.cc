// A scope is translated item by item, by operations that are appended to one function; nothing is
// patched later. Only the items of a sum of gated products are translated together, and twice.
//
// The work is done by parts, each of which knows only those before it:
//
//   LaneBuilder             the function under construction, and the lanes in which its code runs
//   AccessTranslator        elements, in memory and in registers
//   ValueTranslator         what statements compute from elements
//   DeclarationTranslator   start values
//   StatementTranslator     where results go
//   GatedSumTranslator      a sum without gates, and perhaps with them
//   LoopTranslator          in which lanes and how often bodies run
//
// The body of a loop is a scope again, for which LoopTranslator calls back here.
#include "jit/codegen/translate_step.h"

#include "absl/types/span.h"

namespace nestor::jit {

StepTranslator::StepTranslator(loop::Program& program, Isa isa, Tensors& tensors,
                               const GatedSums& gated_sums, RegisterNeeds& needs, Translation& out)
    : gated_sums_(gated_sums), f_(program, out.table, tensors.places(), isa),
      accesses_(program, out.table, tensors, f_), values_(program, out.table, needs, f_, accesses_),
      declarations_(program, tensors, f_, accesses_, values_),
      statements_(program, tensors, f_, accesses_, values_, out.statements),
      sums_(program, tensors, f_, values_),
      loops_(program, f_, accesses_, [this](const loop::Scope& body) { Scope(body); }) {}

void StepTranslator::Scope(const loop::Scope& scope) {
  for (size_t i = 0; i < scope.size(); ++i) {
    Item(scope[i]);
    const absl::optional<size_t> last = gated_sums_.LastItemOf(scope, i);
    if (!last) continue;
    const auto items = absl::MakeConstSpan(scope).subspan(i + 1, *last - i);
    sums_.GatedSum(items, scope[i].As<loop::Declaration>()->tensor, [&] {
      for (const loop::Item& item : items) Item(item);
    });
    i = *last;
  }
}

void StepTranslator::Item(const loop::Item& item) {
  if (const auto* loop = item.As<loop::Loop>()) {
    loops_.Loop(*loop);
  } else if (const auto* statement = item.As<loop::Statement>()) {
    statements_.Statement(*statement);
  } else {
    Declare(item.As<loop::Declaration>()->tensor);
  }
}

// A function that comes to its end has found every access in range: 0.
OperationList StepTranslator::Finish() {
  Operation leave{Opcode::kReturn};
  leave.operands[0] = Immediate(0);
  f_.list().operations.push_back(leave);
  return f_.Finish();
}

}  // namespace nestor::jit
