// Inside the translation to machine code: the generator, and the emitter of each
// operation. An emitter appends the instructions of one operation; it uses the scratch
// registers (registers.h) as it likes and keeps every other register but its result's.
#ifndef NESTOR_JIT_CODEGEN_EMITTERS_H_
#define NESTOR_JIT_CODEGEN_EMITTERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <xbyak/xbyak.h>

#include "absl/strings/string_view.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/constant_pool.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {

// A register of any width: its kind says which. (Ymm, since Xbyak asks for Xmm or Ymm, its derived
// class, where it could take any.)
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
  return operand.kind == Operand::kConstant || operand.kind == Operand::kStack ||
         operand.kind == Operand::kTable;
}

// Bytes of the register for the lanes of `op`, where its result and its operands have the
// same ones.
inline int RegisterBytes(const Operation& op) { return RegisterBytes(op.lanes, op.lane); }

// Nothing that the instruction set lacks can be encoded. Emitters get their registers, and the
// places of vectors in memory, from the functions below. These refuse in every build a number, a
// width or a mask register that `list.isa` lacks, and so do the mnemonics that only EVEX has.
class Generator : public Xbyak::CodeGenerator {
 public:
  // Writes to `buffer`, which is aligned to 64. All arguments outlive it.
  Generator(const OperationList& list, const Allocated& allocated, uint8_t* buffer, size_t bytes);

  Isa isa() const { return list_.isa; }
  bool has_evex() const { return FactsOf(list_.isa).evex; }
  // Else masks are vectors.
  bool has_mask_registers() const { return !MasksAreVectors(list_.isa); }
  bool has_dot_products() const { return has_dot_products_; }

  // Says what is emitted from here on, which must be no wider than the set's registers;
  // null: the function's frame.
  void Enter(const Operation* op);
  // "avx2: <what> in `v3 = add.f32x8 v1, c0` of" and all operations.
  std::string Describe(absl::string_view what) const;

  // ---- Vectors.
  VectorRegister Vector(int64_t number, int bytes);
  VectorRegister Scratch(int bytes) { return Vector(scratch_, bytes); }
  VectorRegister Result(const Operation& op) { return Vector(op.result.value, ResultBytes(op)); }
  // The operand's register, or its place in memory.
  Place VectorPlace(const Operand& operand, int bytes);
  // The operand's register, or else the scratch vector, into which it is loaded.
  VectorRegister Loaded(const Operand& operand, int bytes);
  void LoadVector(const VectorRegister& to, const Operand& operand, int bytes);
  void Zero(const VectorRegister& to);
  // REQUIRES: the operand is in a k register.
  Xbyak::Opmask Mask(const Operand& operand) const;
  // The mask register that masks nothing.
  Xbyak::Opmask ScratchMask() const { return MaskRegister(0); }
  // A mask register that may be in use: whoever writes it restores its value.
  Xbyak::Opmask BorrowedMask() const { return MaskRegister(1); }

  // ---- General registers.
  Xbyak::Reg64 General(const Operand& operand) const;  // REQUIRES: a register
  // REQUIRES: the operand is not an immediate.
  Place GeneralPlace(const Operand& operand) const;
  // The operand's register, or else `scratch`, into which it is loaded.
  Xbyak::Reg64 LoadedGeneral(const Operand& operand, const Xbyak::Reg64& scratch);
  void LoadGeneral(const Xbyak::Reg64& to, const Operand& operand);
  // Sets the flags for a signed comparison of a with b; uses both scratch registers.
  void CompareGeneral(const Operand& a, const Operand& b);

  // ---- Memory.
  Xbyak::RegExp AddressOf(const Memory& memory, int64_t offset = 0) const;
  Xbyak::Address StackSlot(int64_t offset) const {
    return qword[rsp + static_cast<size_t>(offset)];
  }
  // The constant's first `bytes` bytes, which will be aligned to that.
  Xbyak::Address Constant(int64_t number, int bytes);
  // 128 bits of the constant.
  Xbyak::Address ConstantQuarter(int64_t number, int position);
  // A constant that the emitters need for themselves.
  Xbyak::Address Constant(const PoolConstant& constant, int bytes);

  void StoreStreaming(const Xbyak::Address& to, const VectorRegister& from) {
    streams_ = true;
    vmovntps(to, from);
  }

  // ---- Control.
  Xbyak::Label& LabelOf(const Operation& op) { return labels_[static_cast<size_t>(op.immediate)]; }
  Xbyak::Label& epilogue() { return epilogue_; }
  // The address of argument `number` of the function in the frame.
  Xbyak::Address ParameterSlot(int64_t number) const { return StackSlot(parameters_ + 8 * number); }
  bool IsLast(const Operation& op) const { return &op == &allocated_.operations.back(); }

  // For a rare case of `op`: `emit` appends its code after the function.
  void OutOfLine(const Operation& op, std::function<void()> emit) {
    out_of_line_.emplace_back(&op, std::move(emit));
  }
  const auto& out_of_line() const { return out_of_line_; }

  // ---- The function around the operations.
  void Prologue();
  void Epilogue();
  void Pool() { pool_.Write(*this); }  // after all code

  // Stands for an instruction that does not exist for these lanes.
  template <class... Operands>
  void NoInstruction(const Operands&...) {
    FailNoInstruction();
  }

  // ---- Mnemonics that only EVEX has, though their operands do not show it: without a mask, and on
  // the low registers, Xbyak would encode them whatever `list.isa` is.
#define EVEX_ONLY(mnemonic)                      \
  template <class... Operands>                   \
  void mnemonic(const Operands&... operands) {   \
    RequireEvex(#mnemonic);                      \
    Xbyak::CodeGenerator::mnemonic(operands...); \
  }
  EVEX_ONLY(valignd)
  EVEX_ONLY(valignq)
  EVEX_ONLY(vcvtqq2pd)
  EVEX_ONLY(vcvtqq2ps)
  EVEX_ONLY(vcvttpd2qq)
  EVEX_ONLY(vcvttps2qq)
  EVEX_ONLY(vextracti32x4)
  EVEX_ONLY(vfixupimmps)
  EVEX_ONLY(vinserti32x4)
  EVEX_ONLY(vpandd)
  EVEX_ONLY(vpandnd)
  EVEX_ONLY(vpandnq)
  EVEX_ONLY(vpandq)
  EVEX_ONLY(vpmaxsq)
  EVEX_ONLY(vpmaxuq)
  EVEX_ONLY(vpminsq)
  EVEX_ONLY(vpminuq)
  EVEX_ONLY(vpmovdb)
  EVEX_ONLY(vpmovdw)
  EVEX_ONLY(vpmovqd)
  EVEX_ONLY(vpmullq)
  EVEX_ONLY(vpord)
  EVEX_ONLY(vporq)
  EVEX_ONLY(vpsraq)
  EVEX_ONLY(vpsravq)
  EVEX_ONLY(vpternlogd)
  EVEX_ONLY(vpxord)
  EVEX_ONLY(vpxorq)
  EVEX_ONLY(vrangepd)
  EVEX_ONLY(vrangeps)
  EVEX_ONLY(vrndscalepd)
  EVEX_ONLY(vrndscaleps)
  EVEX_ONLY(vscalefpd)
  EVEX_ONLY(vscalefps)
  EVEX_ONLY(vshuff64x2)
  EVEX_ONLY(vshufi32x4)
#undef EVEX_ONLY

 private:
  [[noreturn]] void FailNoInstruction() const;
  // Separate from the checks, which each operand passes: preparing a message takes long.
  [[noreturn, gnu::noinline]] void FailWidth(int bytes) const;
  [[noreturn, gnu::noinline]] void FailVectorRegister(int64_t number) const;
  void RequireEvex(absl::string_view what) const;
  void RequireWidth(int bytes) const {
    const bool has = bytes == 16 || bytes == 32 || bytes == 64;
    if (!has || bytes > VectorBytes(list_.isa)) FailWidth(bytes);
  }
  // Checks that `bytes` are no more than the operation says it reads of constant `number`: a
  // hoisted constant is no wider.
  void RequireRead(int64_t number, int bytes) const;
  // The constant's place, whose first `bytes` bytes may be read.
  const Xbyak::Label& ConstantLabel(int64_t number, int bytes);
  Xbyak::Opmask MaskRegister(int64_t number) const;
  void NoteUse(const Operation& op);

  const OperationList& list_;
  const bool has_dot_products_;
  const Allocated& allocated_;
  const Operation* current_ = nullptr;
  const int scratch_;
  bool upper_used_ = false;  // of any vector register
  bool streams_ = false;
  ConstantPool pool_;
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

// For use in an emitter, with its `g` and `op`: picks one of six instructions by the kind of lanes.
#define BY_LANE(i8, i16, i32, i64, f32, f64)      \
  [&](const auto&... operands) {                  \
    switch (op.lane) {                            \
      case Lane::kI8: g.i8(operands...); break;   \
      case Lane::kI16: g.i16(operands...); break; \
      case Lane::kI32: g.i32(operands...); break; \
      case Lane::kI64: g.i64(operands...); break; \
      case Lane::kF32: g.f32(operands...); break; \
      case Lane::kF64: g.f64(operands...); break; \
    }                                             \
  }

// The same for instructions that exist for integer lanes only.
#define BY_INTEGER_LANE(i8, i16, i32, i64) BY_LANE(i8, i16, i32, i64, NoInstruction, NoInstruction)
#define BY_FLOAT_LANE(f32, f64) \
  BY_LANE(NoInstruction, NoInstruction, NoInstruction, NoInstruction, f32, f64)
#define BY_WIDE_LANE(i32, i64, f32, f64) BY_LANE(NoInstruction, NoInstruction, i32, i64, f32, f64)

// Loads the elements at a stride that the mask of a load_masked has, one by one, in packed form.
void EmitGatherMasked(Generator& g, const Operation& op);
// Gives the low 32-bit halves of the 64-bit lanes of `from`, in a register of half the width.
void EmitNarrowLanes(Generator& g, const Operand& result, const Operand& from, int lanes);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_EMITTERS_H_
