// Which code a call runs, by its sizes.
//
// There is the general code, for all sizes at which its index arithmetic is proven not to
// overflow; the plain code, of the program that passes began with, for the others; and a
// variant for each class of sizes (size_classes.h) whose calls compute much: passes made it
// from the unfused program with the class's constants in it, so that fusion, proofs and
// schedule see them. All compute the same but for rounding, and take the same arguments.
//
// The choice follows from the sizes alone, never from what ran before: equal calls give equal
// bits. So what is forgotten to keep the number of variants bounded is compiled again, not
// replaced.
#ifndef NESTOR_JIT_VARIANTS_H_
#define NESTOR_JIT_VARIANTS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "jit/kernel.h"
#include "jit/layout_kernels.h"
#include "jit/least_recently_used.h"
#include "jit/size_classes.h"
#include "loop_ir/intervals.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// What a scheduled program was made from.
struct Origin {
  loop::Program unfused;
  // Fuses and schedules, as it was done for the program.
  std::function<absl::StatusOr<loop::Program>(loop::Program unfused)> schedule;
};

// Thread-safe.
class Variants {
 public:
  // Compiles the general code, for compact arguments. Without `origin` there is no other.
  // The Statuses of Kernel::Compile.
  static absl::StatusOr<std::unique_ptr<const Variants>> Create(loop::Program scheduled, Isa isa,
                                                                const SizeClassOptions& options,
                                                                std::shared_ptr<const Origin> origin);

  // Of the general code, for compact arguments.
  const Kernel& general() const { return *compact_; }
  const std::shared_ptr<const Origin>& origin() const { return origin_; }

  // The kernel for these sizes and layouts, which is compiled if need be. Whoever holds it
  // keeps it alive. The Statuses of Kernel::Compile, and of ProveNoOverflow where the sizes are
  // legal for no code. REQUIRES: `symbol` knows all, and CheckDomains accepts them.
  absl::StatusOr<std::shared_ptr<const Kernel>> For(loop::SymbolValue symbol, const KernelOptions& options) const;
  // All that are kept now.
  std::vector<std::shared_ptr<const Kernel>> All() const;

 private:
  using Code = std::shared_ptr<const LayoutKernels>;
  Variants(Code general, std::shared_ptr<const Kernel> compact, const SizeClassOptions& options,
           std::shared_ptr<const Origin> origin);

  absl::StatusOr<std::shared_ptr<const Kernel>> PlainFor(loop::SymbolValue symbol,
                                                         const KernelOptions& options) const;
  // Null where the general code is to run.
  absl::StatusOr<std::shared_ptr<const Kernel>> VariantFor(loop::SymbolValue symbol,
                                                           const KernelOptions& options) const;
  // Null where the class has no variant, as it cannot be compiled.
  Code CodeOf(const SizeClass& constants, const KernelOptions& options) const;
  absl::StatusOr<Code> Compile(const SizeClass& constants, const KernelOptions& options) const;
  absl::optional<Code> Find(const SizeClass& constants) const;
  Code Keep(const SizeClass& constants, Code code) const;

  const Code general_;
  const std::shared_ptr<const Kernel> compact_;
  const std::shared_ptr<const Origin> origin_;
  const absl::optional<SizeClasses> classes_;
  const size_t most_;

  mutable absl::Mutex mutex_;
  mutable Code plain_ ABSL_GUARDED_BY(mutex_);
  // Null: the class runs the general code.
  mutable LeastRecentlyUsed<SizeClass, Code> by_class_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_VARIANTS_H_
