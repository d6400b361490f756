// Square tiles transposed in registers.
#ifndef NESTOR_JIT_CODEGEN_TRANSPOSE_H_
#define NESTOR_JIT_CODEGEN_TRANSPOSE_H_

#include <vector>

#include "absl/types/span.h"
#include "jit/codegen/operations.h"

namespace nestor::jit {

// Appends operations that turn `rows`, as many vectors as each has lanes, into the columns of the
// tile, in new registers. REQUIRES: a vector fills 16, 32 or 64 bytes.
std::vector<Operand> TransposeTile(OperationList& list, Lane lane, absl::Span<const Operand> rows);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSPOSE_H_
