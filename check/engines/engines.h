// The engines that run a program: the interpreter and machine code, behind any number of
// passes, in each mode, for each instruction set, on one thread or two.
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
    kInterpreter,  // of what the first `passes` make
    kCode,         // machine code of that
    kExecutable,   // what jit::Compile gives: all passes, with code of its own for small sizes
  };
  Backend backend = Backend::kInterpreter;
  int passes = 0;  // of fusion, then of the schedule; 0: the unfused program
  int threads = 1;
  bool dealt = false;  // two threads in turn, on one: see DealingExecutor
  // But for the executor. Its set is that of the schedule for an interpreter, too.
  jit::CompileOptions options;

  // Of an interpreter: the order of loops without dependences (InterpreterOptions).
  absl::optional<uint64_t> shuffle_seed;
  // Of machine code: see JitRunOptions.
  GuardedMemory::Side side = GuardedMemory::Side::kEnd;
  Arrangement outputs = Arrangement::kCompact;
  bool in_place = false;
  bool poison_dead = false;
  bool checks_abi = false;  // also calls each function as jit/runtime/abi_harness.h does
  bool from_cache = false;  // of an executable: from a cache that holds it for all sets
  int calls = 1;            // with one workspace, all of which must give the same
};

// "code, avx512 strict, 2 threads, after pass 12 (merge_2), in place": what reproduces it.
std::string Describe(const Engine& engine);

// The instruction sets that run here.
absl::Span<const jit::Isa> AvailableSets();

// Thresholds from a few elements up to those that are used, so that small sizes reach
// tiles, packed panels, blocks, strips, classes of sizes, streaming stores and threads.
jit::CompileOptions DrawCompileOptions(Random& random);
// For a set that runs here; where there is none, an interpreter.
Engine DrawEngine(Random& random, jit::Mode mode, Engine::Backend backend);

// An engine with the program that it runs.
class BuiltEngine {
 public:
  // `unfused` is lowered. Whatever a pass leaves must verify and compile: else Internal.
  static absl::StatusOr<BuiltEngine> Build(const loop::Program& unfused, const Engine& engine);

  const Engine& engine() const { return engine_; }
  // No pass that reorders rounding changed anything: the bits of the unfused program.
  bool keeps_bits() const { return keeps_bits_; }
  // Whether its loops are for these sizes, which the unfused program runs at: index arithmetic
  // that passes made may overflow at extreme ones, where an executable runs other code.
  bool Fits(const RunInputs& inputs) const;

  // With a workspace that may have run other sizes before. Internal where calls with the same
  // inputs differ, or code breaks the rules of the machine.
  Results Run(const RunInputs& inputs, jit::Workspace& workspace) const;
  // What the interpreter, in the order of the program, makes of the program that Run runs.
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
  loop::Program program_;  // behind the passes
  std::shared_ptr<const jit::Executable> executable_;
  mutable std::vector<std::shared_ptr<const jit::Kernel>> decoded_;  // nothing in them is foreign
  bool keeps_bits_ = true;
};

// Decodes the code: Internal where something does not belong to the instruction set, or no
// fence orders streaming stores (jit/codegen/foreign_instructions.h).
absl::Status CheckInstructions(const jit::Kernel& kernel, jit::Isa isa);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_ENGINES_H_
