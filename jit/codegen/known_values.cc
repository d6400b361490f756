// Registers are not SSA: one that is written again holds another value. So values are looked up by
// operations whose registers are numbered by their writes, which needs no renaming of the list.
#include "jit/codegen/known_values.h"

namespace nestor::jit {

Operation KnownValues::Key(Operation op) const {
  for (Operand* operand :
       {&op.operands[0], &op.operands[1], &op.operands[2], &op.memory.base, &op.memory.index}) {
    if (operand->is_register()) operand->value += int64_t{versions_[operand->value]} << 32;
  }
  return op;
}

// Since jumps nest, the values found since the first branch to a label are the last ones of the
// table.
void KnownValues::Control(const Operation& op) {
  switch (op.opcode) {
    case Opcode::kBranch:
    case Opcode::kJump: known_at_.try_emplace(op.immediate, values_.size()); break;
    case Opcode::kLabel:
      if (const auto at = known_at_.find(op.immediate); at != known_at_.end()) {
        values_.ForgetSince(at->second);
        known_at_.erase(at);
      }
      break;
    case Opcode::kLoopBegin:
    case Opcode::kLoopEnd:
      values_.ForgetSince(0);
      for (auto& [label, count] : known_at_) count = 0;
      break;
    default: break;
  }
}

}  // namespace nestor::jit
