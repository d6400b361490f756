// Register allocation: linear scan over live ranges (Poletto and Sarkar, "Linear scan register
// allocation", 1999), for each class of registers on its own.
//
// A register's live range is one interval of the list, from its first write to its last use,
// extended to the end of every loop that it enters from outside. If there are more ranges than
// registers, the range that is cheapest to keep in memory (uses, each weighted by the depth of its
// loop, over its length) is spilled whole.
#ifndef NESTOR_JIT_CODEGEN_ALLOCATE_REGISTERS_H_
#define NESTOR_JIT_CODEGEN_ALLOCATE_REGISTERS_H_

#include <cstdint>
#include <vector>

#include "jit/codegen/operations.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {

struct LiveRange {
  int32_t reg;         // virtual
  int32_t begin, end;  // numbers of operations: the first write, the last that needs it
  double weight;       // uses and writes, each times 8 to the depth of the loops around it
};
// The ranges of all registers that the list uses, sorted by begin.
std::vector<LiveRange> LiveRangesOf(const OperationList& list);

struct Allocated {
  // As given, with physical registers; operands that were spilled are kStack where the
  // operation takes memory there, else loaded and stored around it by moves (Move,
  // MaskMove, MoveG with a kStack operand or result). kStack values are byte offsets
  // in the frame.
  std::vector<Operation> operations;
  int64_t frame_bytes = 0;  // a multiple of 64
  int spilled = 0;          // ranges
};

// Takes the operations out of the list, which keeps the rest.
// REQUIRES: `list` keeps the rules of operations.h, and the file has at least 8 vector
// and 8 general registers, and 4 mask registers if the list has masks of their own.
Allocated AllocateRegisters(OperationList& list, const RegisterFile& file);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_ALLOCATE_REGISTERS_H_
