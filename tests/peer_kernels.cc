#include "tests/peer_kernels.h"

#include "autodiff/gradient.h"
#include "uops/invariant.h"

namespace nestor {

Op GradientOf(const std::string& op, const std::vector<std::string>& wrt, const std::vector<std::string>& given,
              DType type) {
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
