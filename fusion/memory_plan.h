// Where temporaries live: one arena for a run, in which tensors whose lifetimes do
// not meet share bytes.
//
// PlanMemory looks at the program alone; EvaluatePlan gives offsets for sizes.
#ifndef NESTOR_FUSION_MEMORY_PLAN_H_
#define NESTOR_FUSION_MEMORY_PLAN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/statistics_sizes.h"
#include "loop_ir/program.h"

namespace nestor::fusion {

constexpr int64_t kArenaAlignment = 64;

// The memory of one or more tensors, in turn: each but the first takes the place
// of the one before it, in place, with the same shape and element size.
struct PlannedBuffer {
  std::vector<loop::TensorId> tensors;
  // The first and the last step that needs the buffer. Steps number the items at
  // the top of the program's blocks, in order.
  int first = 0, last = 0;
  // Of a tensor that a loop's body declares: there is room for one private copy.
  bool in_loop = false;
  // Valid where the buffer is the memory of this output and not in the arena.
  loop::TensorId output;
};

struct MemoryPlan {
  std::vector<PlannedBuffer> buffers;  // in order of first
  // (output, input): a caller may pass one memory for both, if both are compact.
  // Any of these at once in which no output and no input stands twice.
  std::vector<std::pair<loop::TensorId, loop::TensorId>> aliases;
};

struct MemoryOptions {
  bool in_place = true;
  // Lets a temporary live in the memory of an output that takes its place. Then
  // `aliases` is empty: an input there would be overwritten too early.
  bool use_outputs = false;
};

// Planned is what lives in memory and is neither input nor output: program temps
// of any rank, and what a scope declares that LivesInMemory(). What a loop's body
// declares has one place, for one private copy at a time, while the item around
// the loop runs: whoever runs iterations at once needs as many arenas.
//
// REQUIRES: Verify accepts the program.
MemoryPlan PlanMemory(const loop::Program& program, const MemoryOptions& options = {});

struct Arena {
  std::vector<int64_t> offsets;  // by buffer, multiples of kArenaAlignment; -1: in an output
  std::vector<int64_t> bytes;    // by buffer
  int64_t total = 0;             // size of the arena
  // The largest sum of bytes that are needed in one step.
  int64_t lower_bound = 0;
};

// REQUIRES: `plan` is of the sized program. InvalidArgument where a size is
// negative or overflows.
absl::StatusOr<Arena> EvaluatePlan(const SizedProgram& program, const MemoryPlan& plan);

}  // namespace nestor::fusion

#endif  // NESTOR_FUSION_MEMORY_PLAN_H_
