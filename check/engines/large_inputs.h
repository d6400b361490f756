// Inputs that fill several vectors and tiles (see RandomInputs for small ones).
#ifndef NESTOR_CHECK_ENGINES_LARGE_INPUTS_H_
#define NESTOR_CHECK_ENGINES_LARGE_INPUTS_H_

#include <cstdint>
#include <random>

#include "absl/types/optional.h"
#include "check/engines/program_generator.h"
#include "tensor/tensor.h"
#include "uops/dtype.h"
#include "uops/op.h"

namespace nestor {

enum class ValueKind {
  kEvery,          // specials, any bits, moderate ones
  kFewSpecials,    // one of 32 is of any kind
  kModerate,       // floats in [-1, 1), integers in [-1, 4]
  kSmallIntegers,  // in [-3, 3]: sums are exact, and ties are frequent; some i64 have one in
                   // their low 32 bits
};
// Elements of that kind; a bool is any byte.
Tensor DrawTensor(DType type, const Dims& shape, std::mt19937_64& random,
                  ValueKind kind = ValueKind::kEvery);

// Inputs of extents up to `max_extent`: those on both
// sides of a vector's and a tile's size, equal ones where the op asks for that. nullopt
// where no draw fits the op.
absl::optional<RandomInputsResult> DrawLargeInputs(const Op& op, uint64_t seed, int64_t max_extent);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_LARGE_INPUTS_H_
