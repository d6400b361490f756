// One pass over the operations: each goes to its emitter through a table with one row per opcode.
// Addresses of labels and constants that are not yet known are patched later. The code is written
// to a plain buffer, because executable memory is never writable here.
//
// Around the code: a prologue that saves the callee-saved registers that are used, one epilogue for
// all returns, and after it the constants (constant_pool.h).
//
//   push rbx .. r15 (those used)      a frame that holds vectors is aligned to 64 and
//   [align rsp] sub rsp, frame        keeps the caller's rsp at its end
#include "jit/codegen/emit.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "jit/codegen/emitters.h"
#include "jit/runtime/cpu_features.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

constexpr int kAlignment = 64;
// rbx, rbp, r12 .. r15, by their numbers in instructions (System V ABI, "Registers").
constexpr int kCalleeSaved[] = {3, 5, 12, 13, 14, 15};

constexpr Emitter kEmitters[kNumOpcodes] = {
#define OPERATION(Enumerator, ...) Emit##Enumerator,
#include "jit/codegen/operations.inc"
#undef OPERATION
};

// All registers, since copying one is much faster than assembling one from bit fields.
struct Registers {
  constexpr Registers() {
    constexpr Xbyak::Operand::Kind kKinds[] = {Xbyak::Operand::XMM, Xbyak::Operand::YMM,
                                               Xbyak::Operand::ZMM};
    for (int i = 0; i < 32; ++i) {
      for (int k = 0; k < 3; ++k) vector[k][i] = VectorRegister(i, kKinds[k], 128 << k);
    }
    for (int i = 0; i < 16; ++i) general[i] = Xbyak::Reg64(i);
  }
  VectorRegister vector[3][32];
  Xbyak::Reg64 general[16];
};
constexpr Registers kRegisters;

// Rounds up to a power of two.
int RoundedUp(int n) { return n <= 1 ? 1 : 2 * RoundedUp((n + 1) / 2); }

// Rare cases come after the epilogue, so that the common path runs straight through the code. The
// map from offsets to statements gets an entry where the statement changes.
MachineCode Assemble(Generator& g, const Allocated& allocated) {
  MachineCode code;
  int32_t statement = -1;
  const auto enter = [&](const Operation* op) {
    g.Enter(op);
    const int32_t next = op == nullptr ? -1 : op->statement;
    if (next != statement) code.statements.emplace_back(static_cast<int32_t>(g.getSize()), next);
    statement = next;
  };
  g.Prologue();
  for (const Operation& op : allocated.operations) {
    enter(&op);
    kEmitters[static_cast<int>(op.opcode)](g, op);
  }
  enter(nullptr);
  g.Epilogue();
  for (const auto& [op, emit] : g.out_of_line()) {
    enter(op);
    emit();
  }
  enter(nullptr);
  code.code_bytes = static_cast<int64_t>(g.getSize());
  g.Pool();
  code.bytes.assign(g.getCode(), g.getCode() + g.getSize());
  return code;
}

}  // namespace

Generator::Generator(const OperationList& list, const Allocated& allocated, uint8_t* buffer,
                     size_t bytes)
    : Xbyak::CodeGenerator(bytes, buffer), list_(list), has_dot_products_(HasDotProducts(list.isa)),
      allocated_(allocated), scratch_(ScratchVector(list.isa)), pool_(list.constants),
      labels_(list.labels) {
  for (const Operation& op : allocated.operations) NoteUse(op);
  aligned_ = allocated.frame_bytes > 0;
  parameters_ = allocated.frame_bytes;
  // frame, from rsp upwards: spilled values, the three parameters, the caller's rsp
  caller_rsp_ = parameters_ + (keeps_parameters_ ? 24 : 0);
  frame_bytes_ = caller_rsp_ + (aligned_ ? 8 : 0);
}

void Generator::NoteUse(const Operation& op) {
  if (op.opcode == Opcode::kParameterG) keeps_parameters_ = true;
  if (NESTOR_MUTANT("callee_saved_not_restored") && op.result.value == 12) return;
  if (op.result.is_register() && Info(op.opcode).result == RegisterClass::kGeneral)
    saved_[op.result.value] = true;
}

// Where spilled vectors need an alignment that the caller does not give, rsp is rounded down and
// the old one kept in the frame. The arguments are kept there only if ParameterG reads them.
void Generator::Prologue() {
  for (const int r : kCalleeSaved) {
    if (saved_[r]) push(Xbyak::Reg64(r));
  }
  if (aligned_) mov(rax, rsp);
  if (frame_bytes_ > 0) sub(rsp, static_cast<uint32_t>(frame_bytes_));
  if (aligned_) {
    and_(rsp, static_cast<uint32_t>(-kAlignment));
    mov(StackSlot(caller_rsp_), rax);
  }
  if (!keeps_parameters_) return;
  mov(ParameterSlot(0), rsi);
  mov(ParameterSlot(1), rdx);
  mov(ParameterSlot(2), rcx);
}

// The prologue in reverse. vzeroupper: mixing with code that has no VEX encoding is slow while
// upper halves are in use.
void Generator::Epilogue() {
  L(epilogue_);
  // Streaming stores are not ordered with any other store, not even with the one that tells another
  // thread that this function is done.
  if (streams_ && !NESTOR_MUTANT("streaming_store_without_fence")) sfence();
  if (aligned_) {
    mov(rsp, StackSlot(caller_rsp_));
  } else if (frame_bytes_ > 0) {
    add(rsp, static_cast<uint32_t>(frame_bytes_));
  }
  for (int i = static_cast<int>(std::size(kCalleeSaved)) - 1; i >= 0; --i) {
    if (saved_[kCalleeSaved[i]]) pop(Xbyak::Reg64(kCalleeSaved[i]));
  }
  if (upper_used_ && !NESTOR_MUTANT("upper_halves_not_cleared")) vzeroupper();
  ret();
}

// An operation wider than the set's registers is refused before anything of it is encoded.
void Generator::Enter(const Operation* op) {
  const auto has_lanes = [](RegisterClass c) {
    return c == RegisterClass::kVector || c == RegisterClass::kMask;
  };
  current_ = op;
  if (op == nullptr) return;
  const OpcodeInfo& info = Info(op->opcode);
  if (has_lanes(info.result)) RequireWidth(ResultBytes(*op));
  for (int i = 0; i < 3; ++i) {
    if (has_lanes(info.operands[i])) RequireWidth(OperandBytes(*op, i));
  }
}

std::string Generator::Describe(absl::string_view what) const {
  std::string text = absl::StrCat(
      Name(list_.isa), ": ", what, " in `",
      current_ == nullptr ? "the function's frame" : ToString(list_, *current_), "` of\n");
  for (const Operation& op : allocated_.operations)
    absl::StrAppend(&text, "  ", ToString(list_, op), "\n");
  return text;
}

void Generator::RequireEvex(absl::string_view what) const {
  NESTOR_CHECK(has_evex(), Describe(what));
}

void Generator::FailWidth(int bytes) const {
  NESTOR_CHECK(false, Describe(absl::StrCat("a vector of ", bytes, " bytes")));
  std::abort();
}

void Generator::FailVectorRegister(int64_t number) const {
  NESTOR_CHECK(false, Describe(absl::StrCat("vector register ", number)));
  std::abort();
}

// A constant's place holds as many bytes as operations say that they read of it.
void Generator::RequireRead(int64_t number, int bytes) const {
  int most = 0;
  for (int i = 0; i < 3; ++i) {
    if (current_->operands[i] == Operand::Constant(number))
      most = std::max(most, OperandBytes(*current_, i));
  }
  NESTOR_CHECK(bytes <= most,
               Describe(absl::StrCat(bytes, " bytes read of a constant, not ", most)));
}

VectorRegister Generator::Vector(int64_t number, int bytes) {
  RequireWidth(bytes);
  if (number < 0 || number > scratch_) FailVectorRegister(number);
  upper_used_ |= bytes > 16;
  return kRegisters.vector[bytes / 32][number];
}

// Constants are in memory after the code, spilled values in the frame.
Place Generator::VectorPlace(const Operand& operand, int bytes) {
  if (operand.kind == Operand::kConstant) return Constant(operand.value, bytes);
  if (operand.kind == Operand::kStack) {
    RequireWidth(bytes);
    return Xbyak::Address(static_cast<uint32_t>(bytes * 8), false,
                          rsp + static_cast<size_t>(operand.value));
  }
  NESTOR_CHECK(operand.is_register(), Describe("a vector operand that is no vector"));
  return Vector(operand.value, bytes);
}

VectorRegister Generator::Loaded(const Operand& operand, int bytes) {
  if (operand.is_register()) return Vector(operand.value, bytes);
  const VectorRegister scratch = Scratch(bytes);
  LoadVector(scratch, operand, bytes);
  return scratch;
}

// Zero is made, not loaded.
void Generator::LoadVector(const VectorRegister& to, const Operand& operand, int bytes) {
  if (operand.is_register()) {
    if (operand.value != to.getIdx()) vmovaps(to, Vector(operand.value, bytes));
    return;
  }
  if (operand.kind == Operand::kConstant) {
    const PoolConstant& constant = pool_[operand.value];
    if (constant.bits == 0 && constant.step == 0) return Zero(to);
  }
  vmovups(to, VectorPlace(operand, bytes));
}

// Clears the whole register: instructions on 128 bits clear the rest.
void Generator::Zero(const VectorRegister& to) {
  const VectorRegister low = Vector(to.getIdx(), 16);
  // The VEX form is shorter; registers from 16 on need the EVEX form.
  if (to.getIdx() < 16) return vpxor(low, low, low);
  vpxord(low, low, low);
}

Xbyak::Opmask Generator::Mask(const Operand& operand) const {
  NESTOR_CHECK(operand.is_register() && operand.value > 0,
               Describe("a mask outside of the mask registers"));
  return MaskRegister(operand.value);
}

Xbyak::Opmask Generator::MaskRegister(int64_t number) const {
  NESTOR_CHECK(has_mask_registers(), Describe("a mask register"));
  NESTOR_CHECK(number >= 0 && number <= FactsOf(list_.isa).masks,
               Describe(absl::StrCat("mask register ", number)));
  return Xbyak::Opmask(static_cast<int>(number));
}

Xbyak::Reg64 Generator::General(const Operand& operand) const {
  NESTOR_CHECK(operand.is_register(), Describe("an operand that must be a register"));
  NESTOR_CHECK(operand.value >= 0 && operand.value < 16,
               Describe(absl::StrCat("general register ", operand.value)));
  return kRegisters.general[operand.value];
}

Place Generator::GeneralPlace(const Operand& operand) const {
  if (operand.kind == Operand::kTable) return qword[rdi + static_cast<size_t>(8 * operand.value)];
  if (operand.kind == Operand::kStack) return StackSlot(operand.value);
  return General(operand);
}

Xbyak::Reg64 Generator::LoadedGeneral(const Operand& operand, const Xbyak::Reg64& scratch) {
  if (operand.is_register()) return General(operand);
  LoadGeneral(scratch, operand);
  return scratch;
}

// Leaves the flags undefined.
void Generator::LoadGeneral(const Xbyak::Reg64& to, const Operand& operand) {
  if (operand.kind != Operand::kImmediate) {
    if (!operand.is_register() || operand.value != to.getIdx()) mov(to, GeneralPlace(operand));
  } else if (operand.value == 0) {
    xor_(to.cvt32(), to.cvt32());
  } else {
    mov(to, static_cast<uint64_t>(operand.value));
  }
}

// Displacements are subtracted as unsigned numbers, the one form that takes all values.
Xbyak::RegExp Generator::AddressOf(const Memory& memory, int64_t offset) const {
  Xbyak::RegExp address;
  if (memory.base.kind != Operand::kNone) address = Xbyak::RegExp(General(memory.base));
  if (memory.index.kind != Operand::kNone)
    address = address + Xbyak::RegExp(General(memory.index), memory.scale);
  const int64_t displacement = memory.displacement + offset;
  if (displacement != 0) address = address - static_cast<size_t>(-displacement);
  return address;
}

const Xbyak::Label& Generator::ConstantLabel(int64_t number, int bytes) {
  RequireWidth(bytes);
  if (pool_.IsGiven(number)) RequireRead(number, bytes);
  return pool_.Use(number, bytes);
}

Xbyak::Address Generator::Constant(int64_t number, int bytes) {
  return Xbyak::Address(static_cast<uint32_t>(bytes * 8), false,
                        rip + ConstantLabel(number, bytes));
}

// One piece of 128 bits out of a wider constant, such as lanes 4 to 7 of 0, 1, 2, ..
Xbyak::Address Generator::ConstantQuarter(int64_t number, int position) {
  return xword[rip + 16 * position + ConstantLabel(number, 16 * RoundedUp(position + 1))];
}

Xbyak::Address Generator::Constant(const PoolConstant& constant, int bytes) {
  return Constant(pool_.NumberOf(constant), bytes);
}

void Generator::FailNoInstruction() const {
  NESTOR_CHECK(false, Describe("no instruction for lanes of this kind"));
  std::abort();
}

CodeBuffer::CodeBuffer() : bytes_(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBytes))) {}

void CodeBuffer::Free::operator()(uint8_t* p) const { std::free(p); }

absl::StatusOr<MachineCode> Emit(const OperationList& list, const Allocated& allocated,
                                 const CodeBuffer& buffer) {
  if (buffer.bytes() == nullptr)
    return absl::ResourceExhaustedError("no memory to write machine code to");
  Generator g(list, allocated, buffer.bytes(), CodeBuffer::kBytes);
  try {
    return Assemble(g, allocated);
  } catch (const Xbyak::Error& error) {
    const bool too_big = static_cast<int>(error) == Xbyak::ERR_CODE_IS_TOO_BIG;
    NESTOR_CHECK(too_big, g.Describe(error.what()));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the code of one function would exceed ", CodeBuffer::kBytes >> 20, " MiB"));
}

}  // namespace nestor::jit
