// The engines that run a program: the interpreter and machine code, after any number of passes, in
// each mode, for each instruction set, on one thread or two.
#ifndef NESTOR_CHECK_ENGINES_ENGINES_H_
#define NESTOR_CHECK_ENGINES_ENGINES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "check/arrangement.h"
#include "check/engines/finding.h"
#include "check/engines/guarded_run.h"
#include "check/guarded_memory.h"
#include "check/random.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/kernel.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"

namespace nestor {

struct Engine {
  enum class Backend {
    kInterpreter,  // runs the program after the first `passes`
    kCode,         // machine code of that
    kExecutable,   // what jit::Compile gives: all passes, with code of its own for small sizes
  };
  Backend backend = Backend::kInterpreter;
  int passes = 0;  // of fusion, then of the schedule; 0: the unfused program
  int threads = 1;
  bool dealt = false;  // two threads in turn, on one: see DealingExecutor
  // Its executor is not used. Its instruction set is also that of the schedule for an interpreter.
  jit::CompileOptions options;

  // For an interpreter: the order of loops without dependences (InterpreterOptions).
  absl::optional<uint64_t> shuffle_seed;
  // For machine code: see JitRunOptions.
  GuardedMemory::Side side = GuardedMemory::Side::kEnd;
  Arrangement outputs = Arrangement::kCompact;
  bool in_place = false;
  bool poison_dead = false;
  bool checks_abi = false;  // also calls each function as jit/runtime/abi_harness.h does
  bool from_cache = false;  // an executable is loaded from a cache that holds it for all sets
  // Inputs that it draws by their names are bound: an executable has them frozen (see
  // Executable::Bind), and the schedule of any other engine takes them for frozen.
  absl::optional<uint64_t> bind_seed;
  bool specialized = false;  // an executable is made for the sizes of each case
  int calls = 1;             // with one workspace; all must give the same results
};

// What a reader needs to see which engine it was, thresholds included:
//   code, avx2 strict, after pass 12 (merge_2), 2 threads, outputs compact, in place, to the end
//   of a page (4 accumulators, tiles 0 x 2, ..)
std::string Describe(const Engine& engine);

// The instruction sets that run here.
absl::Span<const jit::Isa> AvailableSets();

// Draws thresholds between a few elements and the defaults, so that small sizes reach tiles, packed
// panels, blocks, strips, classes of sizes, streaming stores and threads.
jit::CompileOptions DrawCompileOptions(Random& random);
// An engine for an instruction set that runs here; where there is none, an interpreter.
Engine DrawEngine(Random& random, jit::Mode mode, Engine::Backend backend);

// An engine with the program that it runs.
class BuiltEngine {
 public:
  // `unfused` is lowered. Internal where the program does not verify or compile after some pass.
  static absl::StatusOr<BuiltEngine> Build(const loop::Program& unfused, const Engine& engine);

  const Engine& engine() const { return engine_; }
  // Whether the results have the bits of the unfused program: no pass that reorders
  // rounding changed anything.
  bool keeps_bits() const { return keeps_bits_; }
  // Whether its loops can run at these sizes, at which the unfused program runs: index arithmetic
  // that passes made may overflow at extreme sizes, where an executable runs other code.
  bool Fits(const RunInputs& inputs) const;

  // This for calls with these inputs: some bound, and the code for their sizes alone, where the
  // engine says so. The Statuses of Executable::Bind and Specialize.
  absl::StatusOr<BuiltEngine> For(const RunInputs& inputs) const;

  // `workspace` may have been used at other sizes before. Internal where calls with the same inputs
  // differ, or where code breaks the ABI, has foreign instructions or shares private memory.
  Results Run(const RunInputs& inputs, jit::Workspace& workspace) const;
  // The results of the program that Run runs, interpreted in the order of the program.
  Results Interpreted(const RunInputs& inputs) const;
  // The text of that program.
  std::string ProgramText(const RunInputs& inputs) const;

 private:
  BuiltEngine(const Engine& engine, loop::Program program)
      : engine_(engine), program_(std::move(program)) {}
  absl::Status Compile(const loop::Program& unfused);
  Results RunOnce(const RunInputs& inputs, const JitRunOptions& options) const;
  absl::Status CheckAllInstructions() const;
  absl::Status CheckAbi(const RunInputs& inputs) const;
  // REQUIRES: the engine is compiled.
  RunningProgram ProgramAt(const RunInputs& inputs) const;

  Engine engine_;
  loop::Program program_;  // after the passes
  std::shared_ptr<const jit::Executable> executable_;
  // Nothing in them is foreign.
  std::shared_ptr<std::vector<std::shared_ptr<const jit::Kernel>>> decoded_ =
      std::make_shared<std::vector<std::shared_ptr<const jit::Kernel>>>();
  bool keeps_bits_ = true;
};

// Decodes the code: Internal where something does not belong to the instruction set, or no
// fence orders streaming stores (jit/codegen/foreign_instructions.h).
absl::Status CheckInstructions(const jit::Kernel& kernel, jit::Isa isa);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_ENGINES_H_
