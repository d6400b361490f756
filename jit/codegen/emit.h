// Machine code from an operation list, and the table of emitters that write it.
#ifndef NESTOR_JIT_CODEGEN_EMIT_H_
#define NESTOR_JIT_CODEGEN_EMIT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
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

// Memory that Emit writes to, for one function after the other. How long a function gets is not
// known before, so it has room for the longest that is allowed: pages that no code reaches are
// never touched. (glibc, which has seen a block of this size come back, then keeps that much free
// memory. After small blocks it would give the pages of a large program back after each
// compilation, and the next one would spend a quarter of its time on faults.)
class CodeBuffer {
 public:
  // Far from a limit of x86, whose jumps and addresses of constants have 32 bits.
  static constexpr size_t kBytes = 16 << 20;

  CodeBuffer();

  // Null where there was no memory.
  uint8_t* bytes() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };
  std::unique_ptr<uint8_t, Free> bytes_;
};

// Overwrites `buffer`; the result does not refer to it. REQUIRES: registers are allocated for
// list.isa. ResourceExhausted where the code would exceed the buffer.
absl::StatusOr<MachineCode> Emit(const OperationList& list, const Allocated& allocated,
                                 const CodeBuffer& buffer);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_EMIT_H_
