// The kernel that --library, --symbol and --strided name.
#ifndef NESTOR_CLI_LIBRARY_KERNEL_H_
#define NESTOR_CLI_LIBRARY_KERNEL_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "check/c_kernel.h"
#include "cli/arguments.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor::cli {

// --symbol, or "" where it is absent; an error if it is not a C identifier.
absl::StatusOr<std::string> ReadSymbol(const Arguments& arguments);

// The kernel that the flags name, before anything is loaded.
struct NamedKernel {
  std::string file;
  CPrototype prototype;
};

// Nothing where there is no --library, which --symbol and --strided need.
absl::StatusOr<absl::optional<NamedKernel>> ReadLibraryKernel(const Arguments& arguments,
                                                              const Op& op);

struct LibraryKernel {
  CPrototype prototype;
  SharedLibrary library;
  SharedLibrary::Function function;
};

// Loads it into this process, which may be its end (see TryLoadCKernel).
absl::StatusOr<LibraryKernel> LoadLibraryKernel(NamedKernel named);

// Calls of the kernel on one set of inputs, with results of their own, which are compact.
class LibraryCall {
 public:
  // The memory that `inputs` views must outlive it. It is an error if there is no memory.
  static absl::StatusOr<LibraryCall> Create(const LibraryKernel& kernel, const Op& op,
                                            const RunInputs& inputs, const Binding& binding);

  const std::function<absl::Status()>& run() const { return run_; }

 private:
  LibraryCall() = default;
  std::vector<Tensor> outputs_;
  std::function<absl::Status()> run_;
};

}  // namespace nestor::cli

#endif  // NESTOR_CLI_LIBRARY_KERNEL_H_
