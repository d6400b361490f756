// The state of a workspace from call to call: the memory of the last call, and everything computed
// from its shapes.
#ifndef NESTOR_JIT_WORKSPACE_STATE_H_
#define NESTOR_JIT_WORKSPACE_STATE_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "jit/executable.h"
#include "jit/kernel.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/sized_program.h"
#include "tensor/tensor.h"

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

struct Workspace::State {
  using NamedDims = absl::flat_hash_map<std::string, int64_t>;

  int64_t owner = 0;                     // id of the executable that was prepared; 0: none
  std::shared_ptr<const Kernel> kernel;  // the one to run: the executable may have dropped it
  std::vector<int64_t> key;              // the prepared call, with `dims`: see SameCall
  NamedDims dims;
  std::vector<int64_t> table;
  std::vector<std::pair<int, int>> addresses;  // (slot, argument)
  std::vector<ByteRange> footprints;           // by argument
  std::vector<size_t> sorted_outputs;          // numbers of arguments, by address at the last call
  int64_t bytes = 0;                           // of all arguments
  bool has_results = false;                    // some output has elements
  bool is_parallel = false;                    // it is worth other threads
  bool has_constants = false;                  // values from bound inputs alone are in the arena
  Buffer memory, private_memory;
  loop::Arena arena;  // as the plan places the kernel's temporaries
  char* arena_memory = nullptr;
  std::vector<char*> workers;  // the arena of each
  // An input that the kernel reads after it wrote the output that may take its memory.
  struct Overwritten {
    int output, input;
    Buffer memory;  // of a copy
  };
  std::vector<Overwritten> overwritten;

  // Whether the call has the types, shapes, strides, $params and dimensions that were
  // prepared.
  bool SameCall(int64_t executable, const Arguments& arguments) {
    next_.clear();
    for (size_t count :
         {arguments.inputs.size(), arguments.outputs.size(), arguments.params.size()}) {
      next_.push_back(static_cast<int64_t>(count));
    }
    const auto add = [&](const TensorView& view) {
      next_.push_back(static_cast<int64_t>(view.type));
      next_.push_back(static_cast<int64_t>(view.shape.size()));
      next_.push_back(static_cast<int64_t>(view.strides.size()));
      next_.insert(next_.end(), view.shape.begin(), view.shape.end());
      next_.insert(next_.end(), view.strides.begin(), view.strides.end());
    };
    for (const TensorView& view : arguments.inputs) add(view);
    for (const TensorView& view : arguments.outputs) add(view);
    for (const Scalar& param : arguments.params) {
      next_.push_back(static_cast<int64_t>(param.type));
      next_.push_back(static_cast<int64_t>(param.bits));
    }
    const bool same_dims = arguments.dims == nullptr ? dims.empty() : *arguments.dims == dims;
    return owner == executable && same_dims && next_ == key;
  }
  // Records that the call of the last SameCall is prepared now.
  void Remember(int64_t executable, const Arguments& arguments) {
    owner = executable;
    key = next_;  // next_ keeps its room for the next call
    dims = arguments.dims == nullptr ? NamedDims() : *arguments.dims;
  }

 private:
  std::vector<int64_t> next_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_WORKSPACE_STATE_H_
