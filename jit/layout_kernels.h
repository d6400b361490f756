// The kernels of one scheduled program: one for each layout of its arguments, small or large.
#ifndef NESTOR_JIT_LAYOUT_KERNELS_H_
#define NESTOR_JIT_LAYOUT_KERNELS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "jit/codegen/translate.h"
#include "jit/kernel.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// Where a call's arguments lie, by their size: in a core's own caches, in the last cache, or beyond
// (schedule/streaming.h).
enum class Residence { kCore, kLastCache, kMemory };

// The key of a kernel among those of a program.
struct KernelOptions {
  TranslateOptions translate;
  Residence residence = Residence::kCore;
};

// Thread-safe. Kernels live as long as this, and keep it alive if they are shared.
class LayoutKernels : public std::enable_shared_from_this<LayoutKernels> {
 public:
  // Compiles the kernel for the first layout that is asked for. The Statuses of
  // Kernel::Compile.
  static absl::StatusOr<std::shared_ptr<const LayoutKernels>> Create(loop::Program program,
                                                                     const KernelOptions& first);

  const loop::Program& program() const { return program_; }

  // The kernel for `options`, compiled if they are new.
  absl::StatusOr<std::shared_ptr<const Kernel>> For(const KernelOptions& options) const;
  // All so far.
  std::vector<std::shared_ptr<const Kernel>> All() const;

 private:
  explicit LayoutKernels(loop::Program program) : program_(std::move(program)) {}
  std::shared_ptr<const Kernel> Share(const Kernel& kernel) const {
    return {shared_from_this(), &kernel};
  }

  const loop::Program program_;
  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<std::string, std::unique_ptr<const Kernel>> kernels_
      ABSL_GUARDED_BY(mutex_);
};

// The options that translate `program` for compact arguments.
KernelOptions CompactArguments(const loop::Program& program, Isa isa);
// Whether all layouts are compact, whatever the number of axes.
bool AreCompact(const std::vector<Layout>& layouts);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_LAYOUT_KERNELS_H_
