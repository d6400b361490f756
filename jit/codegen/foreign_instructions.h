// Which instruction of machine code the instruction set that it was made for lacks, as an
// independent decoder sees it: all that can be asked of a set that the machine lacks.
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

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_FOREIGN_INSTRUCTIONS_H_
