// Dimensions along which an op computes index by index, so that the op itself, run on
// slices of its arguments, gives slices of its results: the rows of a softmax, both axes of the
// result of a matmul.
#ifndef NESTOR_CHECK_BOUNDS_SLICES_H_
#define NESTOR_CHECK_BOUNDS_SLICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

// The names of such dimensions: a value that is computed at one index along them depends on no
// other index, nor on the index itself, nor on the extent.
std::vector<std::string> SeparableDimensions(const Op& op);

// By dimension: the indices that are kept.
using Slices = absl::flat_hash_map<std::string, std::vector<int64_t>>;

// `inputs` of `op` at the kept indices alone. Owns the memory that its views point to. REQUIRES:
// the dimensions are separable, the inputs fit the op, the indices lie in the dimensions.
struct SlicedInputs {
  RunInputs inputs;
  std::vector<Tensor> tensors;
};
SlicedInputs SliceInputs(const Op& op, const RunInputs& inputs, const Slices& slices);

// By axis of `shape`, which is that of an argument or result: the indices that are kept, or
// null for all.
std::vector<const std::vector<int64_t>*> SlicedAxes(const Op& op, const Shape& shape,
                                                    const Slices& slices);

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_SLICES_H_
