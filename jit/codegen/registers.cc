// Registers that a function need not save come first, so that short functions save none.
#include "jit/codegen/registers.h"

namespace nestor::jit {

RegisterFile RegistersOf(Isa isa) {
  RegisterFile file;
  // Caller-saved registers first: rcx, rsi, r8 to r11; then rbx, rbp, r12 to r15.
  file.general = {1, 6, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15};
  for (int i = 0; i < ScratchVector(isa); ++i) file.vector.push_back(i);
  for (int i = 1; i <= FactsOf(isa).masks; ++i) file.mask.push_back(i);
  return file;
}

}  // namespace nestor::jit
