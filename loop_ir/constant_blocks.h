// Which blocks of a program depend on some of its inputs alone.
#ifndef NESTOR_LOOP_IR_CONSTANT_BLOCKS_H_
#define NESTOR_LOOP_IR_CONSTANT_BLOCKS_H_

#include <vector>

#include "loop_ir/program.h"

namespace nestor::loop {

struct ConstantBlocks {
  // By block: whether it computes the same in all runs of the same sizes and $params in which the
  // constant inputs are the same, so that one run may do for all. Such a block writes only
  // temporaries and accumulators of the program that no other blocks write, and reads only constant
  // inputs and what such blocks wrote.
  std::vector<bool> is_constant;
  // Those of these temporaries and accumulators that other blocks read.
  std::vector<TensorId> kept;
};

// `constant`: by input of the program. REQUIRES: Verify accepts the program.
ConstantBlocks ConstantBlocksOf(const Program& program, const std::vector<bool>& constant);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_CONSTANT_BLOCKS_H_
