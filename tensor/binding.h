// Binding: the values of a signature's symbols for the tensors and numbers given to one run, with
// every check that SEMANTICS asks for.
#ifndef NESTOR_TENSOR_BINDING_H_
#define NESTOR_TENSOR_BINDING_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/tensor.h"
#include "uops/index/index_expr.h"
#include "uops/signature.h"

namespace nestor {

// The inputs of one run. Views must stay valid while it runs.
struct RunInputs {
  absl::flat_hash_map<std::string, TensorView> tensors;  // by argument name
  // "$k" -> value; integers fit any integer type.
  absl::flat_hash_map<std::string, Scalar> params;
  absl::flat_hash_map<std::string, int64_t> dims;  // "N" -> extent
};

// The values of one run; the same for every engine.
struct Binding {
  absl::flat_hash_map<std::string, int64_t> symbols;  // dimensions and integer $params
  absl::flat_hash_map<std::string, Scalar> params;    // all $params, in their own types

  // The value of a dimension or integer $param; nullopt where there is none.
  absl::optional<int64_t> Find(const std::string& name) const;
  // A symbol's value; nullopt for anything else or unknown.
  absl::optional<int64_t> Symbol(const IndexPool& pool, IndexId id) const;
};

// Binds and checks: unknown or missing tensors and $params, types, ranks,
// dimensions that disagree (both places named), ranges, equalities. An
// InvalidArgument Status names the op, the argument, the axis and the sizes.
absl::StatusOr<Binding> Bind(const Signature& signature, const RunInputs& inputs);

// The dimensions of `inputs` that are not given and that no tensor given binds,
// in the order of the signature: what a caller that makes up inputs must choose.
std::vector<std::string> UnboundDimensions(const Signature& signature, const RunInputs& inputs);

// The value of a shape's extents; a division by zero, overflow, a negative extent
// or an unknown dimension is a Status that names `what`.
absl::StatusOr<Dims> EvaluateShape(const IndexPool& pool, const Shape& shape,
                                   const Binding& binding, absl::string_view what);

}  // namespace nestor

#endif  // NESTOR_TENSOR_BINDING_H_
