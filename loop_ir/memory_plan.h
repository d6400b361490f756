// Where temporaries live: in arenas, in which tensors whose lifetimes do not meet
// share bytes.
//
// PlanMemory looks at the program alone; EvaluatePlan gives offsets for sizes. The
// code that runs, the interpreter and `nestor stats` use this plan.
#ifndef NESTOR_LOOP_IR_MEMORY_PLAN_H_
#define NESTOR_LOOP_IR_MEMORY_PLAN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "loop_ir/program.h"
#include "loop_ir/sized_program.h"

namespace nestor::loop {

// Steps number the statements of a program, and the declarations in its loops, in the order of the
// text (a loop without any is a step, too). A tensor lives from the first step to the last of the
// items that touch it in the scope that declares it: a tensor that is touched in a loop inside that
// scope lives as long as the loop. An accumulator of a loop's body lives from its declaration on;
// one of the program is filled just before the first item that touches it.
struct Lifetime {
  int first = -1, last = -1;  // -1: nothing touches it
};

// The memory of one or more tensors, in turn: each but the first takes the place
// of the one before it, in place, with the same shape and element size.
struct PlannedBuffer {
  std::vector<TensorId> tensors;
  int first = 0, last = 0;  // the steps that need the buffer; first is -1 for what is kept
  // The buffer is of a tensor that a loop's body declares: each worker has one for the iteration
  // that it runs.
  bool is_private = false;
  // Valid where the buffer is the memory of this output and not in an arena.
  TensorId output;
};

// Offsets are not part of it: they follow from the sizes of a run (EvaluatePlan).
struct MemoryPlan {
  std::vector<PlannedBuffer> buffers;  // in order of first
  std::vector<Lifetime> lifetimes;     // by tensor, of all that the program touches
  // The first step of each item at the top, and one more.
  std::vector<int> first_steps;
  // (output, input): a caller may pass the same memory for both, if both are compact. Several of
  // these pairs may be used at once if no output and no input occurs twice among them.
  std::vector<std::pair<TensorId, TensorId>> aliases;
};

// Which tensors may share memory.
struct MemoryOptions {
  bool in_place = true;
  // Lets a temporary live in the memory of an output that takes its place. Then
  // `aliases` is empty: an input there would be overwritten too early.
  bool use_outputs = false;
  // Temporaries of the program that one run may leave to the next ones: their memory is never
  // shared. Null: none.
  const std::vector<TensorId>* kept = nullptr;
  // The temporaries that live in memory; null: the program's, and what loops' bodies declare
  // that LivesInMemory().
  const std::vector<TensorId>* in_memory = nullptr;
};

// REQUIRES: Verify accepts the program.
MemoryPlan PlanMemory(const Program& program, const MemoryOptions& options = {});

// For an item at the top: the program's temporaries that need memory from it on, each after the
// one whose memory it takes, and all temporaries that need none after it, including those of
// its scopes.
struct ItemLives {
  std::vector<TensorId> born, dying;
};
std::vector<ItemLives> LivesOfItems(const Program& program, const MemoryPlan& plan);

// Offsets are multiples of kArenaAlignment.
struct Arena {
  std::vector<int64_t> offsets;  // by buffer, in its arena; -1: in an output
  std::vector<int64_t> bytes;    // by buffer
  int64_t total = 0;             // size of the arena of the program's temporaries
  int64_t private_total = 0;     // size of each worker's arena
  // The largest sums of the bytes that are needed in one step.
  int64_t lower_bound = 0, private_lower_bound = 0;
};

// `bytes` gives the size of a tensor: see BytesOf. InvalidArgument where a sum
// overflows; the Statuses of `bytes`.
absl::StatusOr<Arena> EvaluatePlan(const MemoryPlan& plan,
                                   absl::FunctionRef<absl::StatusOr<int64_t>(TensorId)> bytes);
// REQUIRES: `plan` is of the sized program. InvalidArgument where a size is
// negative or overflows.
absl::StatusOr<Arena> EvaluatePlan(const SizedProgram& program, const MemoryPlan& plan);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_MEMORY_PLAN_H_
