// Errors that an independent decoder finds in machine code, without running it: an instruction that
// its set lacks (the only check possible for a set that the machine lacks), and a streaming store
// that nothing orders (which a run hardly ever shows).
#ifndef NESTOR_JIT_CODEGEN_FOREIGN_INSTRUCTIONS_H_
#define NESTOR_JIT_CODEGEN_FOREIGN_INSTRUCTIONS_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/target/isa.h"

namespace nestor::jit {

// The first instruction of `code` that does not decode, belongs to an extension that `isa` does not
// name (see Isa), is a vector instruction in neither the VEX nor the EVEX form, or for AVX2 has a
// zmm, a mask register, a vector register from 16 on, or the EVEX form:
//
//   "0040: vmovups zmm3, [rip+0x80]: zmm3 is no register of avx2"
//
// nullopt where there is none. Thread-safe.
absl::optional<std::string> FirstForeignInstruction(absl::Span<const uint8_t> code, Isa isa);

// The first return of the function `code` that, in the order of the code, has a streaming store
// before it and no fence in between: another thread might see later stores before that one.
//
//   "0040: ret: no fence orders the streaming stores before it"
//
// nullopt where there is none. Thread-safe. REQUIRES: the code decodes.
absl::optional<std::string> FirstUnfencedReturn(absl::Span<const uint8_t> code);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_FOREIGN_INSTRUCTIONS_H_
