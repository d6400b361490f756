// A kernel with all that its runs at the same sizes need: its table and the memory of its
// temporaries.
#ifndef NESTOR_JIT_PREPARED_KERNEL_H_
#define NESTOR_JIT_PREPARED_KERNEL_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "jit/argument_memory.h"
#include "jit/call_arguments.h"
#include "jit/kernel.h"
#include "loop_ir/memory_plan.h"
#include "tensor/binding.h"

namespace nestor::jit {

// Memory aligned to a cache line, kept while it suffices.
class Buffer {
 public:
  // The memory, at least that large; its contents are unspecified, and earlier pointers are invalid
  // where it grows. Null for 0 bytes of a buffer that never had any.
  absl::StatusOr<char*> Reserve(int64_t bytes) {
    if (bytes > bytes_) {
      const size_t whole = static_cast<size_t>(loop::AlignedForArena(bytes));
      memory_.reset(static_cast<char*>(std::aligned_alloc(loop::kArenaAlignment, whole)));
      bytes_ = memory_ == nullptr ? 0 : bytes;
      if (memory_ == nullptr) {
        return absl::ResourceExhaustedError(
            absl::StrCat("no memory for ", bytes, " bytes of temporaries"));
      }
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory_;
  int64_t bytes_ = 0;
};

// Its memory grows to what the largest preparation needed. Not thread-safe.
class PreparedKernel {
 public:
  // Makes `kernel` ready for these sizes, strides and $params, on so many workers. `aliases`: as of
  // ArgumentMemory; the kernel need not allow them all. ResourceExhausted where there is not that
  // much memory; InvalidArgument where the size of a temporary overflows. After an error, only
  // another Prepare is allowed.
  absl::Status Prepare(std::shared_ptr<const Kernel> kernel, const CallArguments& arguments,
                       const Binding& binding, ArgumentMemory::Aliases aliases, int64_t workers);

  // The one that was prepared last; kept alive.
  const Kernel& kernel() const { return *kernel_; }

  // REQUIRES, of all below: Prepare was for arguments of these shapes and strides.
  // Puts the addresses of a call's arguments into the table. `memory` has accepted the arguments.
  // ResourceExhausted where an input must be copied, and there is no memory for that.
  absl::Status SetAddresses(const CallArguments& arguments, const ArgumentMemory& memory) {
    for (const auto& [slot, argument] : addresses_) {
      table_[slot] = reinterpret_cast<int64_t>(arguments[static_cast<size_t>(argument)].data);
    }
    return overwritten_.empty() ? absl::OkStatus() : CopyOverwritten(arguments, memory);
  }
  // Runs the kernel with the table. Returns what Kernel::Run does. Values that depend on constant
  // inputs alone stay from a run that succeeds to the next one.
  int64_t Run(Kernel::RunOptions options) {
    options.constants_are_there = has_constants_;
    const int64_t result = kernel_->Run(table_.data(), workers_, options);
    // After a failure nothing is known about them: the next run computes them again.
    has_constants_ = result == 0;
    return result;
  }

  // Overwrites the bytes of the arenas that hold no value that is read from here on, before the
  // kernel's function that begins with the item.
  void PoisonDead(int first_item, bool parallel);

 private:
  // An input that the kernel reads after it wrote the output that may take its memory.
  struct Overwritten {
    int output, input;
    Buffer memory;  // of a copy
  };

  void NoteOverwritten(ArgumentMemory::Aliases aliases);
  absl::Status FillTable(const CallArguments& arguments, const Binding& binding);
  absl::Status PlaceTemporaries(const Binding& binding, int64_t workers);
  absl::Status ReserveArenas(int64_t workers);
  absl::Status CopyOverwritten(const CallArguments& arguments, const ArgumentMemory& memory);

  std::shared_ptr<const Kernel> kernel_;  // its executable may have dropped it
  std::vector<int64_t> table_;
  std::vector<std::pair<int, int>> addresses_;  // (slot, argument)
  std::vector<Overwritten> overwritten_;
  bool has_constants_ = false;  // values from bound inputs alone are in the arena
  Buffer memory_, private_memory_;
  loop::Arena arena_;  // as the plan places the kernel's temporaries
  char* arena_memory_ = nullptr;
  std::vector<char*> workers_;  // the arena of each
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_PREPARED_KERNEL_H_
