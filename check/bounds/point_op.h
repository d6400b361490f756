// An op that computes some elements of another op's results, and only the values that these need.
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

// Has the arguments, $params and results' names of `op`; each result has an axis of groups, and
// one for each of its own, along which a group has a list of indices; a result of rank 0 stays as
// it is. The lists are additional arguments, one for each axis of a result: i64[groups, indices].
struct PointOp {
  Op op;
  // By result and axis: the names of the arguments that hold the lists.
  std::vector<std::vector<std::string>> index_names;
  // By result: the names of its dimensions, the groups' first.
  std::vector<std::vector<std::string>> dim_names;
};

// Each element is computed by the same scalar ops on the same operands as in `op`, and
// summed in the same order: its bits and its enclosure are the same. Values that depend on some
// axes only are computed once for all indices of a group along the other axes. A scatter is
// computed as a whole. Unimplemented where a computed value is gathered at an index that is
// computed from a gathered number, or by dividing by a number that may be 0.
absl::StatusOr<PointOp> MakePointOp(const Op& op);

// Elements of a result: for each group, those at all combinations of its indices along each axis.
struct PointGroups {
  int64_t count = 0;
  Dims along;                                 // by axis: how many indices each group has
  std::vector<std::vector<int64_t>> indices;  // by axis: those of the first group, of the second ..
};

// Each of `elements`, which are row-major numbers, in a group of its own.
PointGroups GroupsOfOne(const Dims& shape, absl::Span<const int64_t> elements);
// The row-major numbers of the elements, in the order in which a PointOp gives them.
std::vector<int64_t> NumbersOf(const PointGroups& groups, const Dims& shape);

// `inputs` of `op` with the points added, by result. Owns the memory that its views point to.
struct PointInputs {
  RunInputs inputs;
  std::vector<Tensor> indices;
};
PointInputs AddPoints(const PointOp& points, const RunInputs& inputs,
                      absl::Span<const PointGroups> groups);

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_POINT_OP_H_
