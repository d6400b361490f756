// Integers in general registers, and control. Operands may be registers, immediates of 64 bits,
// slots of the table and of the frame in any position; an operand that x86 does not take in its
// position passes through rax and rdx.
#include <cstdint>
#include <limits>
#include <utility>

#include "jit/codegen/emitters.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

namespace {

constexpr auto kNear = Xbyak::CodeGenerator::T_NEAR;

bool IsImmediate(const Operand& operand) { return operand.kind == Operand::kImmediate; }

// Whether it fits into a sign-extended 32-bit field of an instruction.
bool Fits(const Operand& operand) {
  return IsImmediate(operand) && operand.value >= std::numeric_limits<int32_t>::min() &&
         operand.value <= std::numeric_limits<int32_t>::max();
}
uint32_t Field(const Operand& operand) { return static_cast<uint32_t>(operand.value); }

bool IsPowerOfTwo(const Operand& operand) {
  return IsImmediate(operand) && operand.value > 0 && (operand.value & (operand.value - 1)) == 0;
}

// For an operand that is not a short immediate.
Place SourcePlace(Generator& g, const Operand& operand) {
  if (IsImmediate(operand)) return g.LoadedGeneral(operand, g.rdx);
  return g.GeneralPlace(operand);
}

// `instruction(target, source)` does target = target . source.
template <class Instruction>
void TwoAddress(Generator& g, const Operation& op, Instruction instruction) {
  Operand a = op.operands[0], b = op.operands[1];
  if ((IsImmediate(a) || b == op.result) && Commutes(op)) std::swap(a, b);
  const bool overwrites_b = b == op.result && !(a == op.result);
  const Xbyak::Reg64 result = g.General(op.result), target = overwrites_b ? g.rax : result;
  g.LoadGeneral(target, a);
  if (Fits(b)) {
    instruction(target, Field(b));
  } else {
    instruction(target, static_cast<const Xbyak::Operand&>(SourcePlace(g, b)));
  }
  if (overwrites_b) g.mov(result, target);
}

}  // namespace

void Generator::CompareGeneral(const Operand& a, const Operand& b) {
  if (a.is_register() && b == Operand::Immediate(0)) return test(General(a), General(a));
  // x86 compares with at most one operand in memory, and an immediate only on the right.
  const bool in_place = a.is_register() || (!IsImmediate(a) && !IsMemory(b));
  const Place left = in_place ? GeneralPlace(a) : Place(LoadedGeneral(a, rax));
  if (Fits(b)) return cmp(left, Field(b));
  cmp(left, SourcePlace(*this, b));
}

// ---- Arithmetic.

void EmitMoveG(Generator& g, const Operation& op) {
  const Operand& a = op.operands[0];
  if (op.result.is_register()) return g.LoadGeneral(g.General(op.result), a);
  const Xbyak::Address slot = g.StackSlot(op.result.value);
  if (Fits(a)) return g.mov(slot, static_cast<uint64_t>(a.value));
  g.mov(slot, g.LoadedGeneral(a, g.rax));
}

// lea can add into a third register.
void EmitAddG(Generator& g, const Operation& op) {
  Operand a = op.operands[0], b = op.operands[1];
  if (!a.is_register()) std::swap(a, b);
  if (a.is_register() && !(a == op.result) && !(b == op.result)) {
    if (b.is_register()) return g.lea(g.General(op.result), g.ptr[g.General(a) + g.General(b)]);
    if (Fits(b))
      return g.lea(g.General(op.result), g.ptr[g.General(a) + static_cast<size_t>(b.value)]);
  }
  TwoAddress(g, op, [&](const Xbyak::Reg64& target, const auto& source) { g.add(target, source); });
}

void EmitSubG(Generator& g, const Operation& op) {
  TwoAddress(g, op, [&](const Xbyak::Reg64& target, const auto& source) { g.sub(target, source); });
}

void EmitAndG(Generator& g, const Operation& op) {
  TwoAddress(g, op,
             [&](const Xbyak::Reg64& target, const auto& source) { g.and_(target, source); });
}

void EmitOrG(Generator& g, const Operation& op) {
  TwoAddress(g, op, [&](const Xbyak::Reg64& target, const auto& source) { g.or_(target, source); });
}

void EmitXorG(Generator& g, const Operation& op) {
  TwoAddress(g, op,
             [&](const Xbyak::Reg64& target, const auto& source) { g.xor_(target, source); });
}

namespace {

struct Multiply {
  Generator& g;
  void operator()(const Xbyak::Reg64& target, const Xbyak::Operand& source) const {
    g.imul(target, source);
  }
  void operator()(const Xbyak::Reg64& target, uint32_t source) const {
    g.imul(target, target, static_cast<int>(source));
  }
};

}  // namespace

// A shift where a factor is a power of two, and the three-operand form where it is short.
void EmitMulG(Generator& g, const Operation& op) {
  Operand a = op.operands[0], b = op.operands[1];
  if (IsImmediate(a)) std::swap(a, b);
  if (IsImmediate(b) && b.value > 0 && (b.value & (b.value - 1)) == 0) {
    const Xbyak::Reg64 result = g.General(op.result);
    g.LoadGeneral(result, a);
    return g.shl(result, __builtin_ctzll(static_cast<uint64_t>(b.value)));
  }
  if (Fits(b) && !IsImmediate(a)) {
    return g.imul(g.General(op.result), g.GeneralPlace(a), static_cast<int>(b.value));
  }
  TwoAddress(g, op, Multiply{g});
}

namespace {

using ConditionalMove = void (Xbyak::CodeGenerator::*)(const Xbyak::Reg&, const Xbyak::Operand&);

// Without a branch: both values are there, and one is moved.
void Extremum(Generator& g, const Operation& op, ConditionalMove take_b) {
  Operand a = op.operands[0], b = op.operands[1];
  if (IsImmediate(a)) std::swap(a, b);
  if (b == op.result) std::swap(a, b);
  const Xbyak::Reg64 result = g.General(op.result);
  g.LoadGeneral(result, a);
  const Place second = SourcePlace(g, b);
  g.cmp(result, second);
  (g.*take_b)(result, second);
}

}  // namespace

void EmitMinG(Generator& g, const Operation& op) { Extremum(g, op, &Xbyak::CodeGenerator::cmovg); }
void EmitMaxG(Generator& g, const Operation& op) { Extremum(g, op, &Xbyak::CodeGenerator::cmovl); }

// ---- Division.

namespace {

// idiv truncates; the floor is one less if the remainder is not 0 and does not have the divisor's
// sign. idiv faults for INT64_MIN / -1, so division by -1 is a negation.
//
// Leaves a / b in rax and a % b in rdx; `finish(divisor)` must correct one of them;
// `by_minus_one()` must give the same result for the divisor -1, from a in rax.
template <class Finish, class ByMinusOne>
void DivideGeneral(Generator& g, const Operation& op, Finish finish, ByMinusOne by_minus_one) {
  const Operand& b = op.operands[1];
  g.LoadGeneral(g.rax, op.operands[0]);
  // idiv takes no immediate. The result's register is free until the end; rax and rdx are not.
  const Xbyak::Reg64 divisor = g.LoadedGeneral(b, g.General(op.result));
  Xbyak::Label minus_one, done;
  if (!IsImmediate(b) || b.value == -1) {
    g.cmp(divisor, static_cast<uint32_t>(-1));
    g.je(minus_one);
  }
  g.cqo();
  g.idiv(divisor);
  finish(divisor, done);
  if (!IsImmediate(b) || b.value == -1) {
    g.jmp(done);
    g.L(minus_one);
    by_minus_one();
  }
  g.L(done);
}

}  // namespace

// By a power of two: an arithmetic shift, which rounds down already. Else a quotient that was
// truncated is one too large if the remainder is not 0 and has another sign than the divisor.
void EmitFloorDivG(Generator& g, const Operation& op) {
  const Xbyak::Reg64 result = g.General(op.result);
  if (IsPowerOfTwo(op.operands[1])) {
    g.LoadGeneral(result, op.operands[0]);
    const int shift = __builtin_ctzll(static_cast<uint64_t>(op.operands[1].value));
    if (shift > 0) g.sar(result, shift);
    return;
  }
  DivideGeneral(
      g, op,
      [&](const Xbyak::Reg64& divisor, Xbyak::Label& done) {
        g.test(g.rdx, g.rdx);
        g.je(done);
        g.xor_(g.rdx, divisor);
        g.jns(done);
        if (!NESTOR_MUTANT("index_division_truncates")) g.dec(g.rax);
      },
      [&] { g.neg(g.rax); });
  g.mov(result, g.rax);
}

// The same correction for the remainder: + divisor.
void EmitFloorModG(Generator& g, const Operation& op) {
  const Xbyak::Reg64 result = g.General(op.result);
  if (IsPowerOfTwo(op.operands[1])) {
    Operation mask = op;
    mask.operands[1].value -= 1;
    return EmitAndG(g, mask);
  }
  DivideGeneral(
      g, op,
      [&](const Xbyak::Reg64& divisor, Xbyak::Label& done) {
        g.test(g.rdx, g.rdx);
        g.je(done);
        g.mov(g.rax, g.rdx);
        g.xor_(g.rax, divisor);
        g.jns(done);
        if (!NESTOR_MUTANT("index_remainder_of_wrong_sign")) g.add(g.rdx, divisor);
      },
      [&] { g.xor_(g.edx, g.edx); });
  g.mov(result, g.rdx);
}

// ---- Truth values.

namespace {

using SetByte = void (Xbyak::CodeGenerator::*)(const Xbyak::Operand&);

void Set(Generator& g, const Operation& op, SetByte set) {
  (g.*set)(g.al);
  g.movzx(g.General(op.result).cvt32(), g.al);
}

}  // namespace

void EmitCompareG(Generator& g, const Operation& op) {
  using X = Xbyak::CodeGenerator;
  // By Condition.
  constexpr SetByte kSet[] = {&X::sete, &X::setne, &X::setl, &X::setle,
                              &X::setg, &X::setge, &X::setb};
  g.CompareGeneral(op.operands[0], op.operands[1]);
  Set(g, op, kSet[op.immediate]);
}

void EmitAddOverflowsG(Generator& g, const Operation& op) {
  const Operand& b = op.operands[1];
  g.LoadGeneral(g.rax, op.operands[0]);
  if (Fits(b)) {
    g.add(g.rax, Field(b));
  } else {
    g.add(g.rax, SourcePlace(g, b));
  }
  Set(g, op, &Xbyak::CodeGenerator::seto);
}

void EmitMulOverflowsG(Generator& g, const Operation& op) {
  g.LoadGeneral(g.rax, op.operands[0]);
  g.imul(g.rax, SourcePlace(g, op.operands[1]));
  Set(g, op, &Xbyak::CodeGenerator::seto);
}

// ---- Memory and vectors.

// An element extended to 64 bits by its own signedness.
void EmitLoadG(Generator& g, const Operation& op) {
  const Xbyak::RegExp address = g.AddressOf(op.memory);
  const Xbyak::Reg64 r = g.General(op.result);
  NESTOR_CHECK(!IsFloat(op.type), "load_g of a float");
  const bool is_signed = IsSigned(op.type);
  switch (ByteSize(op.type)) {
    case 1: return is_signed ? g.movsx(r, g.byte[address]) : g.movzx(r.cvt32(), g.byte[address]);
    case 2: return is_signed ? g.movsx(r, g.word[address]) : g.movzx(r.cvt32(), g.word[address]);
    case 4: return is_signed ? g.movsxd(r, g.dword[address]) : g.mov(r.cvt32(), g.dword[address]);
    default:
      if (NESTOR_MUTANT("gather_index_of_32_bits")) return g.movsxd(r, g.dword[address]);
      return g.mov(r, g.qword[address]);
  }
}

void EmitAddressG(Generator& g, const Operation& op) {
  g.lea(g.General(op.result), g.ptr[g.AddressOf(op.memory)]);
}

void EmitParameterG(Generator& g, const Operation& op) {
  g.mov(g.General(op.result), g.ParameterSlot(op.immediate));
}

void EmitLaneG(Generator& g, const Operation& op) {
  const Xbyak::Reg64 r = g.General(op.result);
  const VectorRegister a = g.Loaded(op.operands[0], OperandBytes(op, 0));
  if (LaneBytes(op.lane) == 8) return g.vmovq(r, a);
  g.vmovd(r.cvt32(), a);
  if (IsSigned(op.type)) g.movsxd(r, r.cvt32());
}

// ---- Control.

namespace {

// Jumps to code that does not exist yet, unless it is a loop's.
void JumpIf(Generator& g, const Operation& op) {
  Xbyak::Label& label = g.LabelOf(op);
  g.CompareGeneral(op.operands[0], op.operands[1]);
  const auto type = op.opcode == Opcode::kLoopEnd ? Xbyak::CodeGenerator::T_AUTO : kNear;
  switch (op.condition) {
    case Condition::kEqual: return g.je(label, type);
    case Condition::kNotEqual: return g.jne(label, type);
    case Condition::kLess: return g.jl(label, type);
    case Condition::kLessEqual: return g.jle(label, type);
    case Condition::kGreater: return g.jg(label, type);
    case Condition::kGreaterEqual: return g.jge(label, type);
    case Condition::kBelow: return g.jb(label, type);
  }
}

// The next loop operation is this loop's end if no other loop begins inside.
bool IsInnermost(const Operation& loop_begin) {
  const Operation* op = &loop_begin + 1;
  while (op->opcode != Opcode::kLoopBegin && op->opcode != Opcode::kLoopEnd) ++op;
  return op->opcode == Opcode::kLoopEnd;
}

}  // namespace

void EmitLabel(Generator& g, const Operation& op) { g.L(g.LabelOf(op)); }

void EmitJump(Generator& g, const Operation& op) { g.jmp(g.LabelOf(op), kNear); }

void EmitBranch(Generator& g, const Operation& op) { JumpIf(g, op); }

void EmitLoopBegin(Generator& g, const Operation& op) {
  // Of one fetch of instructions: a short loop then lies in as few of them as it can.
  constexpr size_t kFetchBytes = 32;
  if (IsInnermost(op)) g.align(kFetchBytes);
  g.L(g.LabelOf(op));
}

void EmitLoopEnd(Generator& g, const Operation& op) { JumpIf(g, op); }

void EmitReturn(Generator& g, const Operation& op) {
  g.LoadGeneral(g.rax, op.operands[0]);
  if (!g.IsLast(op)) g.jmp(g.epilogue(), kNear);
}

}  // namespace nestor::jit
