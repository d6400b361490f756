// Which code a call runs, by its sizes.
//
// There is the general code, for all sizes at which its index arithmetic is proven not to
// overflow; the plain code, of the program that passes began with, for the others; and a variant
// for each class of sizes (size_classes.h) whose calls compute much: it is made by passes from the
// unfused program with the class's constants in it, so that fusion, proofs and schedule see them,
// and in the version of its loops that is fast at the sizes (Program::version).
// If arguments are compact and have short rows, axes that it only walks together are also merged
// into one (fusion/merge_axes.h). A schedule that a search has found for the sizes (schedules.h)
// makes a variant, too, however little it computes. All compute the same but for rounding, and take
// the same memory.
//
// The choice follows from sizes and layouts alone, never from what ran before: equal calls
// give equal bits. Hence a variant that was dropped to bound their number is compiled again,
// not replaced.
#ifndef NESTOR_JIT_VARIANTS_H_
#define NESTOR_JIT_VARIANTS_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "jit/kernel.h"
#include "jit/layout_kernels.h"
#include "jit/least_recently_used.h"
#include "jit/schedules.h"
#include "jit/size_classes.h"
#include "loop_ir/intervals.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// The differences between the schedules of one program.
struct Variation {
  std::vector<bool> bound = {};  // by input; empty: none is. See ContractionTileOptions
  ChosenValues choices = {};     // of a search
  // Values of the tests of Program::version (IsVersionFor in schedule/loop_maker.h), without those
  // at the end that are false; empty: the loops for all sizes.
  std::vector<bool> version = {};

  friend bool operator==(const Variation& a, const Variation& b) {
    return a.bound == b.bound && a.choices == b.choices && a.version == b.version;
  }
  template <class H>
  friend H AbslHashValue(H h, const Variation& v) {
    return H::combine(std::move(h), v.bound, v.choices, v.version);
  }
};

// The source of a scheduled program.
struct Origin {
  loop::Program unfused;
  // Fuses and schedules as was done for the program.
  std::function<absl::StatusOr<loop::Program>(loop::Program unfused, const Variation& variation)>
      schedule;
  ProgramSchedules tuned = {};
};

// The origin of the program with these constants, with the schedule that a search has found for
// them if they are all sizes.
Origin Specialized(const Origin& origin, const SizeClass& constants);

// Thread-safe.
// Compiling one class holds up no call of another.
class Variants {
 public:
  // Compiles the general code, for compact arguments. Without `origin` there is no other.
  // The Statuses of Kernel::Compile.
  static absl::StatusOr<std::unique_ptr<const Variants>> Create(
      loop::Program scheduled, Isa isa, const SizeClassOptions& options,
      std::shared_ptr<const Origin> origin);

  // The kernel of the general code for compact arguments.
  const Kernel& general() const { return *compact_; }
  const std::shared_ptr<const Origin>& origin() const { return origin_; }

  // The kernel for these sizes and layouts, which is compiled if need be. Whoever holds it keeps it
  // alive. The Statuses of Kernel::Compile, and of ProveNoOverflow if the sizes are legal for no
  // code. REQUIRES: `symbol` knows all symbols, and CheckDomains accepts them.
  absl::StatusOr<std::shared_ptr<const Kernel>> For(loop::SymbolValue symbol,
                                                    const KernelOptions& options) const;
  // All that are kept now.
  std::vector<std::shared_ptr<const Kernel>> All() const;

 private:
  using Code = std::shared_ptr<const LayoutKernels>;
  // The calls that the code of a variant is made for.
  struct Class {
    SizeClass constants;
    bool merges_axes = false;
    Variation variation = {};

    bool IsGeneral() const { return *this == Class(); }
    friend bool operator==(const Class& a, const Class& b) {
      return a.constants == b.constants && a.merges_axes == b.merges_axes &&
             a.variation == b.variation;
    }
    template <class H>
    friend H AbslHashValue(H h, const Class& c) {
      return H::combine(std::move(h), c.constants, c.merges_axes, c.variation);
    }
  };

  Variants(Code general, std::shared_ptr<const Kernel> compact, const SizeClassOptions& options,
           std::shared_ptr<const Origin> origin);

  absl::StatusOr<std::shared_ptr<const Kernel>> PlainFor(loop::SymbolValue symbol,
                                                         const KernelOptions& options) const;
  // Null where the general code is to run.
  absl::StatusOr<std::shared_ptr<const Kernel>> VariantFor(loop::SymbolValue symbol,
                                                           const KernelOptions& options) const;
  // The version of the program for these sizes, as a Variation has it; the one for all sizes if
  // another does not pay. REQUIRES: there are classes.
  std::vector<bool> VersionFor(const loop::Program& program, loop::SymbolValue symbol) const;
  // The code for `of`, or for another version of its loops if those are the ones for the sizes;
  // null if there is none, or the indices of its program may overflow.
  Code CodeAt(loop::SymbolValue symbol, Class of, const KernelOptions& options) const;
  // Null if the class has no variant, because it cannot be compiled, or none of its axes can be
  // merged, or nothing depends on bound inputs alone.
  Code CodeOf(const Class& of, const KernelOptions& options) const;
  absl::StatusOr<Code> Compile(const Class& of, const KernelOptions& options) const;
  absl::optional<Code> Find(const Class& of) const;
  Code Keep(const Class& of, Code code) const;

  const Code general_;
  const std::shared_ptr<const Kernel> compact_;
  const std::shared_ptr<const Origin> origin_;
  const absl::optional<SizeClasses> classes_;
  const size_t most_;

  mutable absl::Mutex mutex_;
  mutable Code plain_ ABSL_GUARDED_BY(mutex_);
  // Null: the class runs the general code.
  mutable LeastRecentlyUsed<Class, Code> by_class_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_VARIANTS_H_
