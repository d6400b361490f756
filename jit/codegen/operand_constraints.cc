// Three switches over opcodes. An opcode that is not named takes no operand from
// memory, and reads all operands before it writes.
#include "jit/codegen/operand_constraints.h"

#include "uops/dtype.h"

namespace nestor::jit {
namespace {

// One instruction of x86 has one memory operand, the last: a constant of the pool is
// one, too.
int LastIfAlone(const Operation& op, int last) {
  if (op.operands[last].kind != Operand::kStack) return -1;
  for (int i = 0; i < last; ++i) {
    if (op.operands[i].kind == Operand::kConstant) return -1;
  }
  return last;
}

int LastOnStack(const Operation& op) {
  for (int i = 2; i >= 0; --i) {
    if (op.operands[i].kind == Operand::kStack) return i;
  }
  return -1;
}

}  // namespace

int StackOperandOf(const Operation& op) {
  switch (op.opcode) {
    case Opcode::kMove:
    case Opcode::kMaskMove:
    case Opcode::kSqrt:
    case Opcode::kRound: return LastIfAlone(op, 0);
    case Opcode::kConvert:
      // Otherwise the operand is narrower or wider than the result.
      return LaneBytes(OperandLane(op, 0)) == LaneBytes(ResultLane(op)) ? LastIfAlone(op, 0) : -1;
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kMul:
    case Opcode::kMulU32:
    case Opcode::kDiv:
    case Opcode::kMinX86:
    case Opcode::kMaxX86:
    case Opcode::kMinUnsigned:
    case Opcode::kMaxUnsigned:
    case Opcode::kMaxNumber:
    case Opcode::kScale:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kAndNot:
    case Opcode::kUnpackLow:
    case Opcode::kUnpackHigh:
    case Opcode::kCompare: return LastIfAlone(op, 1);
    case Opcode::kFma:
    case Opcode::kDotHalves:
    case Opcode::kBlend: return LastIfAlone(op, 2);
    case Opcode::kMoveG:
    case Opcode::kAddG:
    case Opcode::kSubG:
    case Opcode::kMulG:
    case Opcode::kMinG:
    case Opcode::kMaxG:
    case Opcode::kAndG:
    case Opcode::kOrG:
    case Opcode::kXorG:
    case Opcode::kCompareG:
    case Opcode::kBranch:
    case Opcode::kLoopEnd: return LastOnStack(op);
    default: return -1;
  }
}

bool WritesResultEarly(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMaskWiden:
    case Opcode::kMaskNarrow:
    case Opcode::kLoadStrided:
    case Opcode::kLoadStridedPartial:
    case Opcode::kMinG:
    case Opcode::kMaxG:
    case Opcode::kFloorDivG:
    case Opcode::kFloorModG:
    case Opcode::kCompareG:
    case Opcode::kAddOverflowsG:
    case Opcode::kMulOverflowsG: return true;
    default: return false;
  }
}

// If the lanes do not fill the register, the other lanes of a mask are undefined. AVX2 has no masks
// for elements below 4 bytes, and there are processors (AMD's Zen 2 and 3) on which its masked
// stores take 15 cycles.
bool GoesByMask(const Operation& op, Isa isa) {
  if (!FillsRegister(op)) return false;
  const bool loads = op.opcode == Opcode::kLoadPartial || op.opcode == Opcode::kLoadMasked;
  return isa == Isa::kAvx512 || (loads && ByteSize(op.type) >= 4);
}

bool IsMove(Opcode opcode) {
  return opcode == Opcode::kMove || opcode == Opcode::kMaskMove || opcode == Opcode::kMoveG;
}

}  // namespace nestor::jit
