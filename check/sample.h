// Which elements of large results are judged.
#ifndef NESTOR_CHECK_SAMPLE_H_
#define NESTOR_CHECK_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "check/bounds/point_op.h"
#include "check/bounds/slices.h"
#include "check/random.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

// Draws at most `most` elements of a shape; all where it has no more. The corners are in the first
// group, some border in most others. An element may be in several.
PointGroups DrawGroups(const Dims& shape, int64_t most, Random& random);

// Draws, for each dimension in `separable` that results of these shapes have, so many indices that
// slices of the results are hardly larger than the sample (with the first and the last index, if
// there are several); none where the slices would be larger.
Slices DrawSlices(const Op& op, absl::Span<const std::string> separable,
                  absl::Span<const Dims> shapes, int64_t sample, Random& random);

// The elements of a slice as one group; `axes` as SlicedAxes gives them.
PointGroups GroupOf(const std::vector<const std::vector<int64_t>*>& axes, const Dims& shape);

// Numbers that are not at `positions` become -1.
void KeepOnly(const std::vector<int64_t>& positions, std::vector<int64_t>& numbers);
// Numbers that occurred before become -1.
void RemoveRepeated(std::vector<int64_t>& numbers);

}  // namespace nestor

#endif  // NESTOR_CHECK_SAMPLE_H_
