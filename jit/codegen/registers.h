// Which physical registers there are, and what each is for. Numbers are those of the
// machine's encoding.
#ifndef NESTOR_JIT_CODEGEN_REGISTERS_H_
#define NESTOR_JIT_CODEGEN_REGISTERS_H_

#include <cstdint>
#include <vector>

#include "jit/codegen/operations.h"

namespace nestor::jit {

// rdi holds the table all through a function. rax, rdx and the last vector register
// are the emitters' own, for use within one operation; k0 cannot mask.
constexpr int kTableRegister = 7;
constexpr int kScratchGeneral = 0, kScratchGeneral2 = 2;
constexpr int kStackRegister = 4;
constexpr int ScratchVector(Isa isa) { return FactsOf(isa).vectors - 1; }

// In the order in which they are handed out.
struct RegisterFile {
  std::vector<int> vector, mask, general;
  const std::vector<int>& Of(RegisterClass register_class) const {
    return register_class == RegisterClass::kVector ? vector
           : register_class == RegisterClass::kMask ? mask
                                                    : general;
  }
};
RegisterFile RegistersOf(Isa isa);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_REGISTERS_H_
