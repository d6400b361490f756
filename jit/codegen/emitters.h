// Inside the translation to machine code: the generator, and the emitter of each
// operation. An emitter appends the instructions of one operation; it uses the scratch
// registers (registers.h) as it likes and keeps every other register but its result's.
#ifndef NESTOR_JIT_CODEGEN_EMITTERS_H_
#define NESTOR_JIT_CODEGEN_EMITTERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include <xbyak/xbyak.h>

#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {

// Of any width: its kind says which. (Ymm, since Xbyak asks for Xmm or Ymm, its
// derived class, where it could take any.)
using VectorRegister = Xbyak::Ymm;

// A register or an address, where Xbyak takes either.
class Place {
 public:
  Place(const Xbyak::Reg& reg)  // NOLINT: a register is a place
      : is_memory_(false), reg_(reg), address_(0, false, Xbyak::RegExp()) {}
  Place(const Xbyak::Address& address)  // NOLINT
      : is_memory_(true), address_(address) {}
  operator const Xbyak::Operand&() const {  // NOLINT
    if (is_memory_) return address_;
    return reg_;
  }
  bool is_memory() const { return is_memory_; }
  const Xbyak::Address& address() const { return address_; }

 private:
  bool is_memory_;
  Xbyak::Reg reg_;
  Xbyak::Address address_;
};

inline bool IsMemory(const Operand& operand) {
  return operand.kind == Operand::kConstant || operand.kind == Operand::kStack || operand.kind == Operand::kTable;
}

// Bytes of the register for so many lanes.
inline int RegisterBytes(int lanes, int lane_bytes) { return lanes * lane_bytes <= 16 ? 16 : lanes * lane_bytes; }
inline int RegisterBytes(const Operation& op) { return RegisterBytes(op.lanes, LaneBytes(op.lane)); }

class Generator : public Xbyak::CodeGenerator {
 public:
  // Writes to `buffer`, which is aligned to 64. All arguments outlive it.
  Generator(const OperationList& list, const Allocated& allocated, uint8_t* buffer, size_t bytes);

  bool avx512() const { return avx512_; }

  // ---- Vectors.
  VectorRegister Vector(int64_t number, int bytes);
  VectorRegister Scratch(int bytes) { return Vector(scratch_, bytes); }
  VectorRegister Result(const Operation& op) { return Vector(op.result.value, RegisterBytes(op)); }
  // A register, or where in memory it lies.
  Place VectorPlace(const Operand& operand, int bytes);
  // In its register, or else loaded into the scratch vector.
  VectorRegister Loaded(const Operand& operand, int bytes);
  void LoadVector(const VectorRegister& to, const Operand& operand, int bytes);
  void Zero(const VectorRegister& to);
  // REQUIRES: in a register, of a class that is k registers.
  Xbyak::Opmask Mask(const Operand& operand) const;

  // ---- General registers.
  Xbyak::Reg64 General(const Operand& operand) const;  // REQUIRES: a register
  // REQUIRES: no immediate.
  Place GeneralPlace(const Operand& operand) const;
  // In its register, or else loaded into `scratch`.
  Xbyak::Reg64 LoadedGeneral(const Operand& operand, const Xbyak::Reg64& scratch);
  void LoadGeneral(const Xbyak::Reg64& to, const Operand& operand);
  // Sets the flags for a signed comparison of a with b; uses both scratch registers.
  void CompareGeneral(const Operand& a, const Operand& b);

  // ---- Memory.
  Xbyak::RegExp AddressOf(const Memory& memory, int64_t offset = 0) const;
  Xbyak::Address StackSlot(int64_t offset) const { return qword[rsp + static_cast<size_t>(offset)]; }
  // The constant's first `bytes` bytes, which will be aligned to that.
  Xbyak::Address Constant(int64_t number, int bytes);
  // 128 bits of it.
  Xbyak::Address ConstantQuarter(int64_t number, int position);
  // One that the emitters need for themselves.
  Xbyak::Address Constant(const PoolConstant& constant, int bytes);

  // ---- Control.
  Xbyak::Label& LabelOf(const Operation& op) { return labels_[static_cast<size_t>(op.immediate)]; }
  Xbyak::Label& epilogue() { return epilogue_; }
  // The address of argument `number` of the function in the frame.
  Xbyak::Address ParameterSlot(int64_t number) const { return StackSlot(parameters_ + 8 * number); }
  bool IsLast(const Operation& op) const { return &op == &allocated_.operations.back(); }

  // What `op` rarely does: `emit` writes it behind the function.
  void OutOfLine(const Operation& op, std::function<void()> emit) { out_of_line_.emplace_back(&op, std::move(emit)); }
  const auto& out_of_line() const { return out_of_line_; }

  // ---- The function around the operations.
  void Prologue();
  void Epilogue();
  void Pool();

  // Where the lanes have no such instruction.
  template <class... Operands>
  void NoInstruction(const Operands&...) {
    FailNoInstruction();
  }

 private:
  struct PoolEntry {
    PoolConstant constant;
    Xbyak::Label label;
    int bytes = 0;  // the widest use; 0: none
  };

  [[noreturn]] static void FailNoInstruction();
  void NoteUse(const Operation& op);

  const Allocated& allocated_;
  const bool avx512_;
  const int scratch_;
  bool upper_used_ = false;  // of the vector registers
  std::deque<PoolEntry> pool_;
  const size_t own_constants_;  // of the pool, from there on
  std::vector<Xbyak::Label> labels_;
  std::vector<std::pair<const Operation*, std::function<void()>>> out_of_line_;
  Xbyak::Label epilogue_;
  // The frame, from its lowest address: spill slots, arguments, the caller's rsp if
  // the frame is aligned.
  bool saved_[16] = {};
  bool aligned_ = false, keeps_parameters_ = false;
  int64_t parameters_ = 0, caller_rsp_ = 0, frame_bytes_ = 0;
};

using Emitter = void (*)(Generator& g, const Operation& op);

#define OPERATION(Enumerator, ...) void Emit##Enumerator(Generator& g, const Operation& op);
#include "jit/codegen/operations.inc"
#undef OPERATION

// In an emitter, with its `g` and `op`: one of four instructions, by the kind of lanes.
#define BY_LANE(i32, i64, f32, f64) \
  [&](const auto&... operands) { \
    switch (op.lane) { \
      case Lane::kI32: g.i32(operands...); break; \
      case Lane::kI64: g.i64(operands...); break; \
      case Lane::kF32: g.f32(operands...); break; \
      case Lane::kF64: g.f64(operands...); break; \
    } \
  }

// The low 32-bit halves of the 64-bit lanes of `from`, in a register of half the width.
void EmitNarrowLanes(Generator& g, const Operand& result, const Operand& from, int lanes);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_EMITTERS_H_
