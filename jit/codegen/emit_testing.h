// Functions for tests of emitters, written with physical registers: what the register
// allocator would give, but with every operand where the test wants it.
#ifndef NESTOR_JIT_CODEGEN_EMIT_TESTING_H_
#define NESTOR_JIT_CODEGEN_EMIT_TESTING_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/emit.h"
#include "jit/codegen/operations.h"
#include "jit/runtime/code_memory.h"

namespace nestor::jit {

using Function = int64_t (*)(const int64_t* table, int64_t p0, int64_t p1, int64_t p2);

// Where an operand of the operation under test is. kResult: in the register that the result is
// written to. kTable: general operands only.
enum class Stand : uint8_t { kRegister, kResult, kConstant, kStack, kTable };
const char* Name(Stand stand);

// Appends operations in the order of the calls.
class TestFunction {
 public:
  explicit TestFunction(Isa isa) : list_(isa) {}

  Isa isa() const { return list_.isa; }
  OperationList& list() { return list_; }
  void Add(const Operation& op) { allocated_.operations.push_back(op); }
  // A slot of `bytes` bytes.
  Operand NewSlot(int bytes);

  // Whole vector registers, and memory at the address that is in slot `table` of the
  // table; uses r8.
  void LoadWhole(int vector, int64_t table, int32_t offset = 0) {
    Whole(Opcode::kLoad, vector, table, offset);
  }
  void StoreWhole(int vector, int64_t table, int32_t offset = 0) {
    Whole(Opcode::kStore, vector, table, offset);
  }
  void MoveG(const Operand& result, const Operand& a);
  void Return(const Operand& a);

  // Fails the test if the function cannot be encoded, or if its code has something that the
  // instruction set lacks (foreign_instructions.h).
  MachineCode Encode() const;

 private:
  void Whole(Opcode opcode, int vector, int64_t table, int32_t offset);

  OperationList list_;
  Allocated allocated_;
  int64_t used_bytes_ = 0;
};

// Sealed machine code: one function or several.
class Sealed {
 public:
  explicit Sealed(const MachineCode& code) : Sealed(absl::MakeConstSpan(&code, 1)) {}
  explicit Sealed(absl::Span<const MachineCode> codes);
  int64_t operator()(const std::vector<int64_t>& table, int64_t p0 = 0, int64_t p1 = 0,
                     int64_t p2 = 0) const {
    return function()(table.data(), p0, p1, p2);
  }
  Function function(size_t i = 0) const {
    return reinterpret_cast<Function>(reinterpret_cast<uintptr_t>(memory_.data() + begins_[i]));
  }

 private:
  std::vector<size_t> begins_;  // of the functions, in bytes
  CodeMemory memory_;
};

// The instruction sets to encode for, and whether this machine runs them.
bool Runs(Isa isa);

// The type of elements that are as wide as the lane.
DType MemoryType(Lane lane);
// The bits of a lane: edge cases and noise.
uint64_t RandomLane(std::mt19937_64& random, Lane lane);
// Equal bits, or both a NaN.
bool SameLane(Lane lane, uint64_t x, uint64_t y);
uint64_t LaneAt(const uint8_t* bytes, int lane_bytes, int i);
void SetLane(uint8_t* bytes, int lane_bytes, int i, uint64_t bits);
std::string Difference(uint64_t got, uint64_t want);

inline Operand Slot(int64_t offset) { return {Operand::kStack, offset}; }

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_EMIT_TESTING_H_
