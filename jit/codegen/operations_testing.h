// Lists of operations for tests: from text, and at random.
#ifndef NESTOR_JIT_CODEGEN_OPERATIONS_TESTING_H_
#define NESTOR_JIT_CODEGEN_OPERATIONS_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "jit/codegen/operations.h"

namespace nestor::jit {

// Reads what ToString prints. A malformed line is a broken invariant.
OperationList ParseOperations(absl::string_view text, Isa isa);

struct RandomListOptions {
  Isa isa = kLeastIsa;
  uint64_t seed = 0;
  // Values that live from the beginning to the end; masks only where they have a
  // class of their own.
  int live_vectors = 100, live_masks = 100, live_generals = 100;
  int operations = 600;  // about
};
// Nested loops with small constant counts, branches with and without a second arm, values that a
// loop carries, that are used after a loop, and that both arms write. An operation of every kind
// may occur. No operation that may write early redefines an operand of its own. At the end all
// values that live are stored.
OperationList RandomOperations(const RandomListOptions& options);

// The stores and the return value of a list, run so that operations mix their operands into a
// number unless their results matter. `error`: what went wrong, and at which operation.
struct MixedRun {
  std::vector<uint64_t> trace;
  std::string error;
};
// Runs a list on virtual registers.
MixedRun RunMixing(const OperationList& list);
// Runs one on physical registers, with a frame.
MixedRun RunMixing(Isa isa, const std::vector<Operation>& allocated, int64_t frame_bytes);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_OPERATIONS_TESTING_H_
