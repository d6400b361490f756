// Kernels lie by a key of one letter for each axis of each argument.
#include "jit/layout_kernels.h"

#include <utility>

#include "absl/memory/memory.h"
#include "jit/argument_layout.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

std::string KeyOf(const TranslateOptions& options) {
  std::string key = options.streaming ? "s" : "";
  for (const Layout& layout : options.layouts) AddToKey(layout, &key);
  return key;
}

}  // namespace

LayoutKernels::LayoutKernels(std::unique_ptr<const Kernel> first, const TranslateOptions& options)
    : first_(first.get()) {
  absl::MutexLock lock(&mutex_);
  kernels_.emplace(KeyOf(options), std::move(first));
}

absl::StatusOr<std::shared_ptr<const LayoutKernels>> LayoutKernels::Create(loop::Program program,
                                                                           const TranslateOptions& first) {
  NESTOR_ASSIGN_OR_RETURN(std::unique_ptr<const Kernel> kernel, Kernel::Compile(std::move(program), first));
  return absl::WrapUnique<const LayoutKernels>(new LayoutKernels(std::move(kernel), first));
}

absl::StatusOr<std::shared_ptr<const Kernel>> LayoutKernels::For(const TranslateOptions& options) const {
  std::string key = KeyOf(options);
  {
    absl::MutexLock lock(&mutex_);
    const auto it = kernels_.find(key);
    if (it != kernels_.end()) return Share(*it->second);
  }
  // Compiled outside the lock; whoever comes first stays. What is proven of the program does
  // not depend on layouts.
  TranslateOptions proven = options;
  proven.proofs = first_->proofs();
  NESTOR_ASSIGN_OR_RETURN(std::unique_ptr<const Kernel> kernel, Kernel::Compile(program(), proven));
  absl::MutexLock lock(&mutex_);
  return Share(*kernels_.emplace(std::move(key), std::move(kernel)).first->second);
}

std::vector<std::shared_ptr<const Kernel>> LayoutKernels::All() const {
  std::vector<std::shared_ptr<const Kernel>> kernels;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, kernel] : kernels_) kernels.push_back(Share(*kernel));
  return kernels;
}

TranslateOptions CompactArguments(const loop::Program& program, Isa isa) {
  TranslateOptions options;
  options.isa = isa;
  for (const auto* list : {&program.inputs, &program.outputs}) {
    for (loop::TensorId tensor : *list) options.layouts.push_back(CompactLayout(program[tensor].shape.size()));
  }
  return options;
}

}  // namespace nestor::jit
