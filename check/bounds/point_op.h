// An op that computes some elements of another one's results, and only what these need.
#ifndef NESTOR_CHECK_BOUNDS_POINT_OP_H_
#define NESTOR_CHECK_BOUNDS_POINT_OP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

// Has the arguments, $params and results' names of `op`; each result is a list of elements,
// one for each point, but for a result of rank 0, which stays as it is. Where an element lies is given by one more
// argument for each axis of its result, i64 of as many elements as there are points.
struct PointOp {
  Op op;
  // By result and axis: the names of those arguments.
  std::vector<std::vector<std::string>> index_names;
  // By result: the name of the dimension that counts its points.
  std::vector<std::string> count_names;
};

// Each element is computed by the same scalar ops on the same operands as in `op`, and
// summed in the same order: its bits and its enclosure are the same. What a scatter gives is
// computed as a whole. Unimplemented: what is computed is gathered at an index that is
// computed from a gathered number, or by dividing
// by what may be 0.
absl::StatusOr<PointOp> MakePointOp(const Op& op);

// `inputs` of `op` with the points added: `elements[r]` are row-major numbers of elements of
// result r, whose shape is shapes[r]. Owns what its views point to.
struct PointInputs {
  RunInputs inputs;
  std::vector<Tensor> indices;
};
PointInputs AddPoints(const PointOp& points, const RunInputs& inputs, absl::Span<const Dims> shapes,
                      absl::Span<const std::vector<int64_t>> elements);

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_POINT_OP_H_
