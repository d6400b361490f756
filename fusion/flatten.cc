// A block runs once, so a tensor that is fresh on entry to it is as fresh at the
// beginning of the program.
#include "fusion/flatten.h"

#include <utility>

#include "fusion/scopes.h"

namespace nestor::loop {

namespace {

// Then the program is scheduled already, and its loops are as they should be.
bool DeclaresRegister(const Program& program) {
  for (const Block& block : program.blocks) {
    for (TensorId tensor : DeclaredIn(block.body)) {
      if (program[tensor].is_register) return true;
    }
  }
  return false;
}

}  // namespace

// Tensors that blocks declared become the program's: scopes of their own would end too early.
absl::StatusOr<bool> FlattenBlocks(Program& program) {
  if (IsFlat(program) || DeclaresRegister(program)) return false;
  Scope items;
  for (Block& block : program.blocks) {
    for (Item& item : block.body) {
      const auto* declaration = item.As<Declaration>();
      if (declaration != nullptr) program.temps.push_back(declaration->tensor);
      else items.push_back(std::move(item));
    }
  }
  program.blocks.clear();
  PutItems(program, std::move(items));
  return true;
}

}  // namespace nestor::loop
