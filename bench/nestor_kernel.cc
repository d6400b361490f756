// An op goes the same way as for a user: it is parsed, differentiated if asked, compiled, and run
// on tensors that the caller holds.
#include "bench/nestor_kernel.h"

#include <algorithm>
#include <utility>

#include "bench/measure.h"
#include "nestor.h"
#include "uops/invariant.h"

namespace nestor::bench {

// The time to compile is from the text to code; starting the threads is not part of it.
absl::StatusOr<std::unique_ptr<NestorKernel>> NestorKernel::Compile(absl::string_view notation,
                                                                    const Options& options) {
  std::unique_ptr<NestorKernel> kernel(new NestorKernel);
  if (options.threads > 1) kernel->executor_ = jit::NewThreadPool(options.threads);
  const double start = SteadySeconds();
  NESTOR_ASSIGN_OR_RETURN(Op op, Parse(notation));
  if (options.gradient) {
    NESTOR_ASSIGN_OR_RETURN(GradientResult gradient,
                            Gradient(op, {.of = {}, .wrt = options.wrt, .given = {}}));
    op = std::move(gradient.op);
  }
  for (const Argument& argument : op.args) kernel->arguments_.push_back(argument.name);
  for (const Result& result : op.results) kernel->results_.push_back(result.name);
  jit::CompileOptions compile;
  compile.executor = options.threads > 1 ? kernel->executor_.get() : &jit::InlineExecutor();
  NESTOR_ASSIGN_OR_RETURN(kernel->executable_, jit::Compile(Lower(op), compile));
  kernel->compile_ms_ = (SteadySeconds() - start) * 1e3;
  kernel->op_ = std::move(op);
  return kernel;
}

absl::Status NestorKernel::Bind(const std::string& name, const TensorView& tensor) {
  NESTOR_ASSIGN_OR_RETURN(executable_, executable_->Bind(name, tensor));
  arguments_.erase(std::remove(arguments_.begin(), arguments_.end(), name), arguments_.end());
  return absl::OkStatus();
}

absl::Status NestorKernel::Run(absl::Span<const TensorView> inputs,
                               absl::Span<const TensorView> outputs) {
  return executable_->Run({inputs, outputs}, &workspace_);
}

absl::StatusOr<loop::Statistics> NestorKernel::Count(absl::Span<const TensorView> inputs) const {
  RunInputs given;
  for (size_t i = 0; i < inputs.size(); ++i) given.tensors[arguments_[i]] = inputs[i];
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, nestor::Bind(SignatureOf(op_), given));
  loop::Program program = Lower(op_);
  NESTOR_RETURN_IF_ERROR(fusion::Pipeline::Default().Run(program));
  return loop::StatisticsOf(program, binding.symbols);
}

}  // namespace nestor::bench
