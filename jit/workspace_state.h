// The state of a workspace from call to call: the memory of the last call, and everything computed
// from its shapes.
#ifndef NESTOR_JIT_WORKSPACE_STATE_H_
#define NESTOR_JIT_WORKSPACE_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "jit/argument_memory.h"
#include "jit/executable.h"
#include "jit/prepared_kernel.h"
#include "tensor/tensor.h"

namespace nestor::jit {

struct Workspace::State {
  using NamedDims = absl::flat_hash_map<std::string, int64_t>;

  int64_t owner = 0;         // id of the executable that was prepared; 0: none
  std::vector<int64_t> key;  // the prepared call, with `dims`: see SameCall
  NamedDims dims;
  ArgumentMemory memory;
  PreparedKernel kernel;     // prepared if some output has elements
  bool is_parallel = false;  // it is worth other threads

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
