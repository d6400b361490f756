// A program ready to run: compiled code, and everything that a call needs to check and
// to place.
//
//   NESTOR_ASSIGN_OR_RETURN(auto softmax, jit::Executable::Create(program, options));
//   jit::Workspace workspace;
//   NESTOR_RETURN_IF_ERROR(softmax->Run({{x}, {y}}, &workspace));
//
// nestor::Compile (nestor.h) makes one from an op, and nestor::Run binds arguments by name.
#ifndef NESTOR_JIT_EXECUTABLE_H_
#define NESTOR_JIT_EXECUTABLE_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/bound_inputs.h"
#include "jit/kernel.h"
#include "jit/size_classes.h"
#include "jit/variants.h"
#include "loop_ir/intervals.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"

namespace nestor::jit {

class CallArguments;

// Sizes in bytes are those of all arguments of a call together.
struct ExecutableOptions {
  Isa isa = kLeastIsa;
  // Where parallel loops run; null: on the caller's thread. Must outlive the executable.
  Executor* executor = nullptr;
  // A parallel loop runs on one thread where the program's arguments have fewer bytes
  // than this, and it computes fewer scalar operations (WorkAt) than that.
  int64_t least_parallel_bytes = int64_t{256} << 10;
  int64_t least_parallel_work = int64_t{1} << 21;
  // From so many bytes of arguments on, these are prefetched, and, for the second limit, outputs
  // are also written past the caches; 0: never.
  int64_t prefetching_bytes = 0;
  int64_t streaming_bytes = 0;
  SizeClassOptions size_classes;
};

// The arguments of one call, in the order of the program's signature. Strides may be negative, and
// those of inputs 0. What the views point at must stay valid during the call.
struct Arguments {
  absl::Span<const TensorView> inputs;   // those of Executable::inputs()
  absl::Span<const TensorView> outputs;  // memory to write
  // By Program::params; empty: their defaults.
  absl::Span<const Scalar> params = {};
  // Dimensions that no input's shape determines, by name.
  const absl::flat_hash_map<std::string, int64_t>* dims = nullptr;
};

// Memory of one thread's calls: sized at the first run of a shape; later runs of it allocate
// nothing. May serve several executables in turn, and outlive them. Not thread-safe; movable.
// A call with the executable, shapes, strides and $params of the call before finds all prepared.
// Any other is bound and checked anew: so keep a workspace for each kind of call that is repeated.
// Memory grows to the largest call that it has served, and is freed with the workspace.
class Workspace {
 public:
  Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  ~Workspace();

 private:
  friend class Executable;
  struct State;
  std::unique_ptr<State> state_;
};

// Immutable and thread-safe, if each thread has a workspace of its own. Whatever
// floating-point settings the host has, results are those of the default ones.
class Executable {
 public:
  // Compiles the general code for compact arguments. The Statuses of Kernel::Compile;
  // FailedPrecondition where the CPU lacks options.isa. REQUIRES: Verify accepts the
  // scheduled program.
  // `origin`: the program that passes began with. Calls that compute much have code of their
  // own for small sizes, and those with legal sizes at which index arithmetic of the
  // scheduled program may overflow run code of the unfused one (see jit/variants.h); both are
  // compiled then. Null: the former run the general code, the latter are an InvalidArgument.
  static absl::StatusOr<std::unique_ptr<const Executable>> Create(
      loop::Program program, const ExecutableOptions& options,
      std::shared_ptr<const Origin> origin = nullptr);
  ~Executable();

  // This executable with the input `name` frozen to the values of `tensor`, which are copied: later
  // calls leave that input out. The two share code if they can; neither needs to outlive the other.
  // Values that depend on bound inputs alone, above all packed weights, are computed in a
  // workspace's first call with these shapes, and kept there until the workspace is used for other
  // calls. InvalidArgument if no input that calls give has the name, or if its type or rank
  // differs; sizes are checked by the calls.
  absl::StatusOr<std::unique_ptr<const Executable>> Bind(absl::string_view name,
                                                         const TensorView& tensor) const;

  // This executable for these sizes alone, dimensions and integer $params ("$k") by name: passes
  // see numbers in their place, however little a call computes. Calls with other sizes are an
  // InvalidArgument that names the symbol; $params that calls leave out have the given values.
  // InvalidArgument where a name is unknown or no call could have the size; FailedPrecondition
  // where this was created without an origin; the Statuses of Create.
  absl::StatusOr<std::unique_ptr<const Executable>> Specialize(
      const absl::flat_hash_map<std::string, int64_t>& sizes) const;

  // Computes the outputs; if none has an element, only checks the call. An InvalidArgument Status,
  // before anything is written, names the argument that does not fit: types, ranks, sizes (see
  // tensor/binding.h), an element at an odd address, an output with two elements in one place, or
  // memory of an output that overlaps that of another argument (whose elements are used), unless
  // `aliases` allows it. OutOfRange where an access that the program does not mask leaves its
  // tensor: outputs are then unspecified. A layout that was not seen before is compiled first, and
  // so is a class of sizes. Equal calls give equal bits.
  absl::Status Run(const Arguments& arguments, Workspace* workspace) const;
  // nestor::Run (nestor.h): inputs by name, and new results. The Statuses of Run; InvalidArgument
  // also where an input is missing, unknown or bound. `workspace` may be null.
  absl::StatusOr<std::vector<Tensor>> RunByName(const RunInputs& inputs,
                                                Workspace* workspace) const;
  // Called before each function of the kernel that runs, with the number of the top-level item of
  // its program that the function begins with.
  using Watcher = absl::FunctionRef<void(const Kernel& kernel, int first_item)>;
  // For tests and measuring only.
  struct Hooks {
    // Calls every function of the kernel, on this thread; null: they are just called.
    const Kernel::Caller* caller = nullptr;
    // Before each function, overwrites all bytes of the arenas that, by the plan, hold no value
    // that is read later.
    bool poison_dead = false;
    const Watcher* watcher = nullptr;
  };
  // Run with hooks, for measuring and tests.
  absl::Status RunWatched(const Arguments& arguments, Workspace* workspace,
                          const Hooks& hooks) const;

  // The shapes that outputs must have, from the arguments as in a call; elements are not read, but
  // views must have memory. InvalidArgument as from Run.
  absl::StatusOr<std::vector<Dims>> OutputShapes(
      absl::Span<const TensorView> inputs, absl::Span<const Scalar> params = {},
      const absl::flat_hash_map<std::string, int64_t>* dims = nullptr) const;

  // Scheduled, as the general code runs it; its arguments and checks are those of calls.
  const loop::Program& program() const;
  // Those of Create; an executable of Bind or Specialize has the same.
  const ExecutableOptions& options() const;
  // The inputs that a call gives, in order: those of the program that are not bound.
  std::vector<loop::TensorId> inputs() const;
  // The tensor to which input `number` of the program is bound; null: calls give the input.
  const TensorView* bound(size_t number) const {
    const BoundInputs::Input& input = inputs_.all()[number];
    return input.is_bound() ? &input.View({}) : nullptr;
  }
  // The general code, for compact arguments. It runs at all sizes, and lives as long as this.
  const Kernel& kernel() const;
  // The kernel that runs at these sizes, for compact arguments (see Create) or for strided ones,
  // compiled if need be. The Statuses of Run for such sizes. REQUIRES: they are legal. `symbol`
  // gives the size of a dimension, or the value of an integer $param, by its name.
  absl::StatusOr<std::shared_ptr<const Kernel>> KernelAt(loop::SymbolValue symbol,
                                                         bool compact = true) const;
  // All kernels compiled so far, except those of sizes that were dropped for others. Executables
  // that Bind made share them with the one that it was called on.
  std::vector<std::shared_ptr<const Kernel>> kernels() const;
  // (output, input), by their numbers in the program's signature, that may share memory, at
  // all sizes: the output may begin where the input does, if both are compact. Sorted.
  absl::Span<const std::pair<int, int>> aliases() const;
  // Bytes of machine code in all kernels().
  int64_t code_bytes() const;

 private:
  // The part that executables bound to different tensors share.
  struct Code;

  // `inputs`: those of the program.
  Executable(std::shared_ptr<const Code> code, BoundInputs inputs);

  // The steps of a call; see executable_call.cc for their order.
  absl::Status RunBound(const Arguments& arguments, const Binding* binding, Workspace* workspace,
                        const Hooks& hooks) const;
  absl::Status Prepare(const CallArguments& arguments, const Binding& binding,
                       Workspace::State& state) const;
  bool ComputesMuch(const Binding& binding) const;
  absl::StatusOr<std::shared_ptr<const Kernel>> KernelFor(const CallArguments& arguments,
                                                          const Binding& binding,
                                                          int64_t bytes) const;

  const int64_t id_;  // unique for ever: a workspace recognizes the executable by it
  const std::shared_ptr<const Code> code_;
  const BoundInputs inputs_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_EXECUTABLE_H_
