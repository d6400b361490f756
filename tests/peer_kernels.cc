// The common part of the tables of the libraries: transposed and copied views, and
// gradients as ops.
#include "tests/peer_kernels.h"

#include <utility>

#include "autodiff/gradient.h"
#include "uops/invariant.h"

namespace nestor {

TensorView Transpose(TensorView view) {
  std::swap(view.shape[0], view.shape[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

void Copy(const TensorView& from, const TensorView& to) {
  if (*NumElements(from.shape) == 0) return;
  Dims index(from.shape.size(), 0);
  do Set(to, index, At(from, index));
  while (NextIndex(from.shape, absl::MakeSpan(index)));
}

Op GradientOf(const std::string& op, const std::vector<std::string>& wrt,
              const std::vector<std::string>& given, DType type) {
  ArgumentSpecs specs;
  const auto variable = CheckedOp(op).TypeVariableArguments();
  NESTOR_CHECK(variable.ok(), variable.status().ToString());
  for (const std::string& name : *variable) specs[name].type = type;
  const absl::StatusOr<Op> forward = CheckedOp(op).Instantiate(specs);
  NESTOR_CHECK(forward.ok(), forward.status().ToString());
  GradientRequest request;
  request.wrt = wrt;
  request.given = given;
  const absl::StatusOr<GradientResult> gradient = Gradient(*forward, request);
  NESTOR_CHECK(gradient.ok(), gradient.status().ToString());
  return gradient->op;
}

}  // namespace nestor
