// Nestor as the benchmark sees it: text in, a callable out.
#ifndef NESTOR_BENCH_NESTOR_KERNEL_H_
#define NESTOR_BENCH_NESTOR_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fusion/cost/statistics.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/runtime/executor.h"
#include "uops/op.h"

namespace nestor::bench {

class NestorKernel {
 public:
  struct Options {
    int threads = 1;
    // Compiles the gradient of the op, by every float argument, in place of the op. It takes
    // g_<result> and the arguments that it needs, and gives g_<argument>.
    bool gradient = false;
    // By these arguments only, unless empty.
    std::vector<std::string> wrt = {};
  };

  // The last op of `notation`, which may call macro ops. Its dimensions stay symbols:
  // one kernel serves all sizes. Each call compiles anew; there is no cache.
  static absl::StatusOr<std::unique_ptr<NestorKernel>> Compile(absl::string_view notation,
                                                               const Options& options);

  NestorKernel(const NestorKernel&) = delete;
  NestorKernel& operator=(const NestorKernel&) = delete;

  // Names, in the order in which Run takes and gives tensors.
  const std::vector<std::string>& arguments() const { return arguments_; }
  const std::vector<std::string>& results() const { return results_; }

  // Later runs leave the argument out; it is `tensor`, whose elements are copied. A Status where
  // there is no such argument, or it is of another type or rank.
  absl::Status Bind(const std::string& name, const TensorView& tensor);

  // Reads `inputs` and writes `outputs`, compact tensors of the shapes that the op
  // gives to its results; they do not overlap. For one thread at a time.
  absl::Status Run(absl::Span<const TensorView> inputs, absl::Span<const TensorView> outputs);

  // The work of the fused program for arguments of these shapes. REQUIRES: no argument is bound.
  absl::StatusOr<loop::Statistics> Count(absl::Span<const TensorView> inputs) const;

  // From the text to the callable.
  double compile_ms() const { return compile_ms_; }
  // The bytes of machine code, without constants.
  absl::optional<int64_t> code_bytes() const { return executable_->kernel().code_bytes(); }

 private:
  NestorKernel() = default;

  Op op_;
  std::vector<std::string> arguments_, results_;
  std::unique_ptr<jit::Executor> executor_;
  std::unique_ptr<const jit::Executable> executable_;
  jit::Workspace workspace_;
  double compile_ms_ = 0;
};

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_NESTOR_KERNEL_H_
