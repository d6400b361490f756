// Calls of an executable that are repeated, for measuring.
#ifndef NESTOR_CLI_MEASURED_CALL_H_
#define NESTOR_CLI_MEASURED_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor::cli {

// The arguments of a call, in the order of the executable's signature, with memory for the results.
struct MeasuredCall {
  std::vector<TensorView> inputs, output_views;
  std::vector<Tensor> outputs;
  std::vector<Scalar> params;
  // Those that no input's shape says; else null.
  const absl::flat_hash_map<std::string, int64_t>* dims = nullptr;

  jit::Arguments arguments() const { return {inputs, output_views, params, dims}; }
};

// `inputs` must outlive the call.
absl::StatusOr<MeasuredCall> MakeCall(const jit::Executable& executable, const RunInputs& inputs,
                                      const Binding& binding);

// Compiles, and binds the inputs of these names. The Statuses of Compile and Bind.
absl::StatusOr<std::unique_ptr<const jit::Executable>> CompileBound(
    const Op& op, const RunInputs& inputs, const jit::CompileOptions& options,
    const std::vector<std::string>& bound);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_MEASURED_CALL_H_
