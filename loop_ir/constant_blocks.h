// What a program computes of some of its inputs alone.
#ifndef NESTOR_LOOP_IR_CONSTANT_BLOCKS_H_
#define NESTOR_LOOP_IR_CONSTANT_BLOCKS_H_

#include <vector>

#include "loop_ir/program.h"

namespace nestor::loop {

struct ConstantBlocks {
  // By block: whether it computes the same in all runs of the same sizes and $params in which
  // the constant inputs are the same, so that one run may do for all. It writes temporaries and
  // accumulators of the program that only such blocks write, and reads constant inputs and
  // what they wrote.
  std::vector<bool> is_constant;
  // Those of them that other blocks read.
  std::vector<TensorId> kept;
};

// `constant`: by input of the program. REQUIRES: Verify accepts the program.
ConstantBlocks ConstantBlocksOf(const Program& program, const std::vector<bool>& constant);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_CONSTANT_BLOCKS_H_
