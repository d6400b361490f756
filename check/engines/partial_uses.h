// Statements of nest programs (nest_programs.h) that use a value in part, or not as it is. A pass
// that keeps a value elsewhere, or computes it in another way, must do so for these, too.
#ifndef NESTOR_CHECK_ENGINES_PARTIAL_USES_H_
#define NESTOR_CHECK_ENGINES_PARTIAL_USES_H_

#include <string>
#include <vector>

#include "check/random.h"
#include "uops/dtype.h"

namespace nestor {

// A value that a statement has defined, with the index and the extent of each axis.
struct DefinedValue {
  std::string name;
  std::vector<std::string> indices, extents;
};

// A statement that defines `name` by elements of the value, which is of `type`: masked, compared,
// shifted, transposed or summed. REQUIRES: the value has an axis.
//   y[i, j] = t0[i, j if (i + j) % 2 == 1] where i < M, j < N
std::string DrawPartialUse(Random& random, DType type, const DefinedValue& value,
                           const std::string& name);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_PARTIAL_USES_H_
