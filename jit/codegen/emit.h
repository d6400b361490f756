// Machine code from an operation list, and the table of emitters that write it.
#ifndef NESTOR_JIT_CODEGEN_EMIT_H_
#define NESTOR_JIT_CODEGEN_EMIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/operations.h"

namespace nestor::jit {

// A function of the System V ABI: int64_t f(const int64_t* table, int64_t p0,
// int64_t p1, int64_t p2), where ParameterG number i gives p_i. Position-independent; its constants
// follow its code.
struct MachineCode {
  std::vector<uint8_t> bytes;
  int64_t code_bytes = 0;  // the constants follow
  // (offset, statement): the code from there on comes from that statement; ascending.
  std::vector<std::pair<int32_t, int32_t>> statements;
};

// REQUIRES: registers are allocated for list.isa. ResourceExhausted where the code
// would exceed 16 MiB.
absl::StatusOr<MachineCode> Emit(const OperationList& list, const Allocated& allocated);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_EMIT_H_
