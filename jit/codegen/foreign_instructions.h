// What is wrong with machine code as an independent decoder sees it, without running it: an
// instruction that its set lacks (all that can be asked of a set that the machine lacks), and
// a streaming store that nothing orders (which a run hardly ever shows).
#ifndef NESTOR_JIT_CODEGEN_FOREIGN_INSTRUCTIONS_H_
#define NESTOR_JIT_CODEGEN_FOREIGN_INSTRUCTIONS_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/runtime/cpu_features.h"

namespace nestor::jit {

// The first instruction of `code` that does not decode, belongs to an extension that
// `isa` does not name (see Isa), is no instruction of vectors in the VEX or EVEX form, or
// for AVX2 has a zmm, a mask register, a vector register from 16 on, or the EVEX form:
//
//   "0040: vmovups zmm3, [rip+0x80]: zmm3 is no register of avx2"
//
// nullopt where there is none. Thread-safe.
absl::optional<std::string> FirstForeignInstruction(absl::Span<const uint8_t> code, Isa isa);

// The first return of the function `code` before which, in the order of the code, a streaming
// store stands and no fence after it: another thread might see what is stored later before it.
//
//   "0040: ret: no fence orders the streaming stores before it"
//
// nullopt where there is none. Thread-safe. REQUIRES: the code decodes.
absl::optional<std::string> FirstUnfencedReturn(absl::Span<const uint8_t> code);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_FOREIGN_INSTRUCTIONS_H_
