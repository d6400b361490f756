// The gradient of an op, as an op of the same micro-ops (SEMANTICS 4), by reverse accumulation.
//
//   op f(x: f32[N]) -> (y) { y[i] = x[i] * x[i] }
//     ->
//   op f_grad(g_y: f32[N], x: f32[N]) -> (g_x) { .. }    # g_x[i] is 2 * x[i] * g_y[i]
//
// It is printed, fused, compiled and differentiated as any other op. Thread-safe.
#ifndef NESTOR_AUTODIFF_GRADIENT_H_
#define NESTOR_AUTODIFF_GRADIENT_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "uops/op.h"

namespace nestor {

// All names are those of the op.
struct GradientRequest {
  // The results whose adjoints are given, as g_<result>; empty: every float result.
  std::vector<std::string> of;
  // The arguments to differentiate by; empty: every float argument.
  std::vector<std::string> wrt;
  // Names ("g_y", arguments, results) that the gradient op uses: exactly those.
  // Absent: the least that it can do with, chosen by Gradient.
  absl::optional<std::vector<std::string>> given;
};

// For f above: mask {"x"}, shapes {}, results {"g_x"}.
struct GradientResult {
  // `<op>_grad`: arguments are the adjoints g_<result>, then those of the op's arguments and
  // results that are used, under their own names, and its $params; results are g_<argument>, in the
  // order of `wrt`.
  Op op;
  // The arguments and results of the original op that the gradient op takes.
  std::vector<std::string> mask;
  // Those of `mask` of which the gradient op reads only the dimensions.
  std::vector<std::string> shapes;
  // For every name in wrt, the name of its gradient among op.results.
  std::vector<std::string> results;
};

// InvalidArgument where a name is unknown, where `wrt` or `of` names a value that is no float,
// where a node has no gradient (it is named), or where `given` does not suffice (the missing names
// are listed).
absl::StatusOr<GradientResult> Gradient(const Op& op, const GradientRequest& request = {});

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_GRADIENT_H_
