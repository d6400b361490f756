// The type of a shared object's function is known from the op's prototype alone.
#include "cli/library_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "check/kernel_call.h"
#include "uops/invariant.h"

namespace nestor::cli {

absl::StatusOr<std::string> ReadSymbol(const Arguments& arguments) {
  const std::string symbol = arguments.Find("--symbol").value_or("");
  if (!arguments.Has("--symbol") || IsName(symbol)) return symbol;
  return absl::InvalidArgumentError(absl::StrCat("--symbol=", symbol, ": no name in C"));
}

// None without --library; then the flags that say more of it are errors.
absl::StatusOr<absl::optional<NamedKernel>> ReadLibraryKernel(const Arguments& arguments,
                                                              const Op& op) {
  const auto file = arguments.Find("--library");
  for (const char* flag : {"--symbol", "--strided"}) {
    if (!file && arguments.Has(flag))
      return absl::InvalidArgumentError(absl::StrCat(flag, ": only with --library"));
  }
  if (!file) return absl::optional<NamedKernel>();
  NESTOR_ASSIGN_OR_RETURN(const std::string symbol, ReadSymbol(arguments));
  return absl::optional<NamedKernel>(
      {*file, CPrototypeOf(op, {arguments.Has("--strided"), symbol})});
}

absl::StatusOr<LibraryKernel> LoadLibraryKernel(NamedKernel named) {
  NESTOR_ASSIGN_OR_RETURN(SharedLibrary library, SharedLibrary::Open(named.file));
  NESTOR_ASSIGN_OR_RETURN(const SharedLibrary::Function function,
                          library.Find(named.prototype.symbol));
  return LibraryKernel{std::move(named.prototype), std::move(library), function};
}

// With memory for the results, which the kernel writes in every call.
absl::StatusOr<LibraryCall> LibraryCall::Create(const LibraryKernel& kernel, const Op& op,
                                                const RunInputs& inputs, const Binding& binding) {
  LibraryCall call;
  std::vector<TensorView> input_views, output_views;
  for (const Argument& arg : op.args) input_views.push_back(inputs.tensors.at(arg.name));
  for (const Result& result : op.results) {
    NESTOR_ASSIGN_OR_RETURN(
        const Dims shape,
        EvaluateShape(op.graph.pool(), op.graph.shape(result.node), binding, result.name));
    NESTOR_ASSIGN_OR_RETURN(Tensor output, Tensor::Create(op.graph.type(result.node), shape));
    output_views.push_back(output.view());
    call.outputs_.push_back(std::move(output));
  }
  call.run_ = CKernelCall(kernel.prototype, kernel.function,
                          KernelCall(op, binding, input_views, output_views));
  return call;
}

}  // namespace nestor::cli
