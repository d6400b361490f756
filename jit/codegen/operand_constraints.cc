// The facts about x86 instructions that the register allocator must know. It decides before code is
// emitted, so an emitter that needs more registers or another order than is said here would write
// over values.
//
// Three switches over opcodes. An opcode that is not named takes no operand from memory, and reads
// all operands before it writes. So only the first of these defaults is safe for a new opcode: an
// emitter that writes its result early must be named.
#include "jit/codegen/operand_constraints.h"

#include "uops/dtype.h"

namespace nestor::jit {
namespace {

int LastOnStack(const Operation& op) {
  for (int i = 2; i >= 0; --i) {
    if (op.operands[i].kind == Operand::kStack) return i;
  }
  return -1;
}

// The last operand, if it is as wide as the result. One instruction of x86 has one memory operand:
// a constant of the pool is one, too.
int LastIfAlone(const Operation& op) {
  const int last = Info(op.opcode).LastOperand();
  if (op.operands[last].kind != Operand::kStack) return -1;
  if (LaneBytes(OperandLane(op, last)) != LaneBytes(ResultLane(op))) return -1;
  for (int i = 0; i < last; ++i) {
    if (op.operands[i].kind == Operand::kConstant) return -1;
  }
  return last;
}

}  // namespace

int StackOperandOf(const Operation& op) {
  const OpcodeInfo& info = Info(op.opcode);
  if (!info.Is(kTakesMemory)) return -1;
  return info.operands[0] == RegisterClass::kGeneral ? LastOnStack(op) : LastIfAlone(op);
}

// If the lanes do not fill the register, the other lanes of a mask are undefined.
bool GoesByMask(const Operation& op, Isa isa) {
  if (!FillsRegister(op)) return false;
  const bool loads = Info(op.opcode).result == RegisterClass::kVector;
  const int least = loads ? FactsOf(isa).masked_load_bytes : FactsOf(isa).masked_store_bytes;
  return least > 0 && ByteSize(op.type) >= least;
}

}  // namespace nestor::jit
