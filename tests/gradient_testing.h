// Ops as functions that can be run, their gradients to second order, and the comparison of both
// with differences.
#ifndef NESTOR_TESTS_GRADIENT_TESTING_H_
#define NESTOR_TESTS_GRADIENT_TESTING_H_

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autodiff/gradient.h"
#include "loop_ir/program.h"
#include "tensor/tensor.h"
#include "uops/dtype.h"
#include "uops/op.h"

namespace nestor {

using Values = std::map<std::string, Tensor>;  // by argument or result

// By default a gradient is of all float results by all float arguments.
std::vector<std::string> FloatArguments(const Op& op);
std::vector<std::string> FloatResults(const Op& op);

// An op that can be run, with fixed $params.
class Function {
 public:
  Function(Op op, absl::flat_hash_map<std::string, Scalar> params);

  const Op& op() const { return op_; }
  const absl::flat_hash_map<std::string, Scalar>& params() const { return params_; }

  // Its arguments are among `values`; the results by name.
  absl::StatusOr<Values> operator()(const Values& values) const;

 private:
  Op op_;
  loop::Program program_;
  absl::flat_hash_map<std::string, Scalar> params_;
};

// An op with its gradient op by `wrt` for adjoints of all float results.
class Differentiable {
 public:
  // Fails the test if the gradient op does not print and read back, or differs from its report.
  static absl::StatusOr<Differentiable> Make(const Function& function,
                                             GradientRequest request = {});

  const Function& function() const { return function_; }
  const Function& gradient_function() const { return gradient_; }
  const GradientResult& report() const { return report_; }
  const std::vector<std::string>& wrt() const { return request_.wrt; }
  const std::vector<std::string>& of() const { return request_.of; }
  // The gradient op's argument that is the adjoint of of()[i].
  const std::string& AdjointName(size_t i) const { return report_.op.args[i].name; }

  // The arguments of the gradient op: adjoints (by the result's name; 0 where none is given), and
  // the op's own arguments and results.
  absl::StatusOr<Values> GradientArguments(const Values& values, const Values& adjoints) const;

  // The gradient by argument name.
  absl::StatusOr<Values> operator()(const Values& values, const Values& adjoints) const;

 private:
  Differentiable(const Function& function, GradientRequest request, GradientResult report);

  Function function_;
  GradientRequest request_;
  GradientResult report_;
  Function gradient_;
};

// The total derivative of <directions, gradient> by every argument and, under the names of the
// gradient op, by the adjoints; see gradient_testing.cc. All float tensors are f64.
class SecondOrder {
 public:
  static absl::StatusOr<SecondOrder> Make(const Differentiable& first);

  absl::StatusOr<Values> operator()(const Values& values, const Values& adjoints,
                                    const Values& directions) const;

  const Differentiable& second() const { return second_; }

 private:
  SecondOrder(const Differentiable& first, Differentiable second)
      : first_(first), second_(std::move(second)) {}
  const Differentiable first_;
  const Differentiable second_;
};

// The largest magnitude of its elements, NaNs left out.
double Largest(const Tensor& tensor);

// Elements of f64 in [-1, 1).
Tensor RandomTensor(absl::Span<const int64_t> shape, std::mt19937_64& random);

// Expects the first order to equal differences of the op at `values`, and the second differences of
// the first, for random adjoints and directions.
void CheckBothOrders(const Function& function, const Values& values, std::mt19937_64& random);

}  // namespace nestor

#endif  // NESTOR_TESTS_GRADIENT_TESTING_H_
