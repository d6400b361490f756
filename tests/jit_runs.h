// Every variant of a compiled program, held against the interpreter.
#ifndef NESTOR_TESTS_JIT_RUNS_H_
#define NESTOR_TESTS_JIT_RUNS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "check/engines/engines.h"
#include "check/engines/finding.h"
#include "check/engines/guarded_run.h"
#include "check/engines/large_inputs.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/kernel.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"

namespace nestor {

// ---- Checking

// The instruction sets that run here; missing ones are reported, once.
absl::Span<const jit::Isa> TestedSets();

// Assembles the scheduled program for options.isa, which the CPU may lack, and decodes it:
// Internal where some instruction does not belong to the set (jit/codegen/foreign_instructions.h).
// The Statuses of jit::Schedule and Kernel::Compile.
absl::Status CheckAssembled(loop::Program unfused, const jit::CompileOptions& options);

inline constexpr jit::Mode kModes[] = {jit::Mode::kFast, jit::Mode::kStrict};

// A program compiled for every instruction set, fast and strict. For those that do not
// run here it is still assembled and checked.
class CompiledVariants {
 public:
  struct Variant {
    jit::CompileOptions options;
    std::shared_ptr<const jit::Executable> executable;
  };

  // `options` but for set and mode. The Statuses of jit::Compile and CheckAssembled.
  static absl::StatusOr<CompiledVariants> Compile(loop::Program unfused,
                                                  const jit::CompileOptions& options,
                                                  absl::Span<const jit::Mode> modes = kModes);

  const loop::Program& unfused() const { return unfused_; }
  const std::vector<Variant>& variants() const { return variants_; }

  // Holds each run of each variant, bit for bit, against the interpreter on the program that runs
  // at these sizes, and the interpreter's results of a strict variant against the unfused
  // program's. If `bounded` (which takes long), holds fast variants also against the proven bounds.
  // A run must be refused where the interpreter refuses it, unless that exceeds the interpreter's
  // limits. Then checks the instructions of all layouts.
  Finding Check(const RunInputs& inputs, absl::Span<const JitRunOptions> runs, bool bounded,
                Counts& counts) const;

 private:
  // As CheckAssembled, for the kernels that the executable has compiled since the last call.
  absl::Status CheckInstructions(const jit::Executable& executable) const;

  loop::Program unfused_;
  std::vector<Variant> variants_;
  mutable absl::flat_hash_set<std::shared_ptr<const jit::Kernel>> checked_;
};
Finding CheckCompiled(const loop::Program& unfused, const RunInputs& inputs,
                      const jit::CompileOptions& options, absl::Span<const JitRunOptions> runs,
                      bool bounded, Counts& counts);

// "avx2 fast, outputs reversed, in place": which run of which variant.
std::string Describe(const jit::CompileOptions& options, const JitRunOptions& run);

}  // namespace nestor

#endif  // NESTOR_TESTS_JIT_RUNS_H_
