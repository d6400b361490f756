// Which items at the top of a program depend on some of its inputs alone.
#ifndef NESTOR_LOOP_IR_CONSTANT_ITEMS_H_
#define NESTOR_LOOP_IR_CONSTANT_ITEMS_H_

#include <vector>

#include "loop_ir/program.h"

namespace nestor::loop {

struct ConstantItems {
  // By item: whether it computes the same in all runs of the same sizes and $params in which the
  // constant inputs are the same, so that one run may do for all. Such an item writes only
  // temporaries and accumulators of the program that no other items write, and reads only constant
  // inputs and what such items wrote. False for declarations, which compute nothing.
  std::vector<bool> is_constant;
  // Those of these temporaries and accumulators that other items read.
  std::vector<TensorId> kept;
};

// `constant`: by input of the program. REQUIRES: Verify accepts the program.
ConstantItems ConstantItemsOf(const Program& program, const std::vector<bool>& constant);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_CONSTANT_ITEMS_H_
