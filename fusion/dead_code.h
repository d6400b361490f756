// Dead code: statements that no output depends on.
#ifndef NESTOR_FUSION_DEAD_CODE_H_
#define NESTOR_FUSION_DEAD_CODE_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Removes the statements whose target is not read afterwards and is no output,
// then loops left empty and declarations of tensors that nothing uses.
// Returns whether it changed anything; if not, the program is untouched. A second
// run changes nothing.
//
// REQUIRES: Verify accepts the program; and so it does afterwards.
//
// The pass is conservative: only an unmasked assignment to a rank-0 tensor counts as overwriting
// it; an element stored to keeps the whole tensor's earlier stores. Entries of Program::tensors
// stay, so that ids keep their meaning.
absl::StatusOr<bool> EliminateDeadCode(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_DEAD_CODE_H_
