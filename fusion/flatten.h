// Flattening: each block becomes one loop or one statement.
#ifndef NESTOR_FUSION_FLATTEN_H_
#define NESTOR_FUSION_FLATTEN_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Makes each loop and statement of a block a block of its own, and the tensors that blocks declare
// temporaries of the program, so that passes see one scope at the top. A program with a block that
// declares a register tensor stays as it is: such a tensor belongs to a scope. Returns whether it
// changed anything; if not, the program is untouched.
//
// REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> FlattenBlocks(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_FLATTEN_H_
