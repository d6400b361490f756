// Kernels are found by a key of one letter for each axis of each argument, and one for each input
// if some are constant: the key holds all that the code depends on besides the program.
#include "jit/layout_kernels.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "jit/argument_layout.h"
#include "jit/schedule/streaming.h"
#include "loop_ir/constant_items.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

// A letter for the residence, one for each axis, and a digit for each input that is constant.
// "cu,au,10": a compact matrix, which is constant, and one whose rows are at any stride
std::string KeyOf(const KernelOptions& options) {
  std::string key;
  if (options.residence == Residence::kLastCache) key = "p";
  if (options.residence == Residence::kMemory) key = "s";
  for (const Layout& layout : options.translate.layouts) AddToKey(layout, &key);
  for (const bool constant : options.translate.constant) key += constant ? '1' : '0';
  return key;
}

// Without the marks of constant inputs if nothing depends on these alone: they would not change
// the code.
KernelOptions WithoutIdleConstants(const loop::Program& program, KernelOptions options) {
  std::vector<bool>& constant = options.translate.constant;
  if (constant.empty()) return options;
  const std::vector<bool> items = ConstantItemsOf(program, constant).is_constant;
  if (!absl::c_linear_search(items, true)) constant.clear();
  return options;
}

// The last passes, which depend on where the arguments of a call lie.
absl::StatusOr<std::unique_ptr<const Kernel>> CompileFor(loop::Program program,
                                                         const KernelOptions& options) {
  if (options.residence == Residence::kLastCache)
    NESTOR_RETURN_IF_ERROR(loop::PrefetchArguments(program).status());
  if (options.residence == Residence::kMemory)
    NESTOR_RETURN_IF_ERROR(loop::StreamArguments(program).status());
  return Kernel::Compile(std::move(program), options.translate);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LayoutKernels>> LayoutKernels::Create(
    loop::Program program, const KernelOptions& first) {
  std::shared_ptr<const LayoutKernels> kernels =
      absl::WrapUnique<const LayoutKernels>(new LayoutKernels(std::move(program)));
  NESTOR_RETURN_IF_ERROR(kernels->For(first).status());
  return kernels;
}

// One kernel for each combination of options that changes the code.
absl::StatusOr<std::shared_ptr<const Kernel>> LayoutKernels::For(const KernelOptions& given) const {
  const KernelOptions options = WithoutIdleConstants(program_, given);
  std::string key = KeyOf(options);
  {
    absl::MutexLock lock(&mutex_);
    const auto it = kernels_.find(key);
    if (it != kernels_.end()) return Share(*it->second);
  }
  // Compiles outside the lock; the first kernel is kept.
  NESTOR_ASSIGN_OR_RETURN(std::unique_ptr<const Kernel> kernel, CompileFor(program_, options));
  absl::MutexLock lock(&mutex_);
  return Share(*kernels_.emplace(std::move(key), std::move(kernel)).first->second);
}

std::vector<std::shared_ptr<const Kernel>> LayoutKernels::All() const {
  std::vector<std::shared_ptr<const Kernel>> kernels;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, kernel] : kernels_) kernels.push_back(Share(*kernel));
  return kernels;
}

KernelOptions CompactArguments(const loop::Program& program, Isa isa) {
  KernelOptions options;
  options.translate.isa = isa;
  for (const auto* list : {&program.inputs, &program.outputs}) {
    for (loop::TensorId tensor : *list)
      options.translate.layouts.push_back(CompactLayout(program[tensor].shape.size()));
  }
  return options;
}

bool AreCompact(const std::vector<Layout>& layouts) {
  return absl::c_all_of(
      layouts, [](const Layout& layout) { return layout == CompactLayout(layout.size()); });
}

}  // namespace nestor::jit
