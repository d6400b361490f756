// Running compiled programs on memory that shows every stray access: outputs are
// poisoned, and all buffers end (or begin) at a page that may not be touched.
#ifndef NESTOR_TESTS_JIT_RUNS_H_
#define NESTOR_TESTS_JIT_RUNS_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "check/arrangement.h"
#include "check/guarded_memory.h"
#include "check/program_generator.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/kernel.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "tests/random_programs.h"
#include "uops/dtype.h"
#include "uops/op.h"

namespace nestor {

struct JitRunOptions {
  GuardedMemory::Side side = GuardedMemory::Side::kEnd;
  // REQUIRES: no broadcast.
  Arrangement outputs = Arrangement::kCompact;
  // Each output takes the memory of an input wherever the executable allows it.
  bool in_place = false;
  jit::Workspace* workspace = nullptr;
  // See Executable::TestHooks.
  const jit::Kernel::Caller* caller = nullptr;
  bool poison_dead = false;
};

// The results on copies of the inputs, laid out as they are, in guarded memory. Internal
// where memory beside an output's elements is written, or an input.
Results RunJit(const jit::Executable& executable, const RunInputs& inputs, const JitRunOptions& options = {});

// ---- Checking

// The instruction sets that run here; what is missing is said, once.
absl::Span<const jit::Isa> TestedSets();

// Assembles the scheduled program for options.isa, which the CPU may lack, and decodes it:
// Internal where something of the code does not belong to the set
// (jit/codegen/foreign_instructions.h). The Statuses of jit::Schedule and Kernel::Compile.
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
  static absl::StatusOr<CompiledVariants> Compile(loop::Program unfused, const jit::CompileOptions& options,
                                                  absl::Span<const jit::Mode> modes = kModes);

  const loop::Program& unfused() const { return unfused_; }
  const std::vector<Variant>& variants() const { return variants_; }

  // Holds each run of each variant against the interpreter's on the program that runs at
  // these sizes, and that, of a strict variant, against the unfused program's: bit for bit. Of a fast
  // one, where `bounded` (which takes long), also against the proven bounds. What the
  // interpreter refuses must be refused, but for what exceeds its limits. Then checks the instructions of all layouts.
  Finding Check(const RunInputs& inputs, absl::Span<const JitRunOptions> runs, bool bounded, Counts& counts) const;

 private:
  // As CheckAssembled, of what the executable has compiled since the last time.
  absl::Status CheckInstructions(const jit::Executable& executable) const;

  loop::Program unfused_;
  std::vector<Variant> variants_;
  mutable absl::flat_hash_set<std::shared_ptr<const jit::Kernel>> checked_;
};
Finding CheckCompiled(const loop::Program& unfused, const RunInputs& inputs, const jit::CompileOptions& options,
                      absl::Span<const JitRunOptions> runs, bool bounded, Counts& counts);

// "avx2 fast, outputs reversed, in place": which run of which variant.
std::string Describe(const jit::CompileOptions& options, const JitRunOptions& run);

// ---- Inputs

// Elements of every kind: specials, any bits, moderate ones; a bool is any byte.
Tensor DrawTensor(DType type, const Dims& shape, std::mt19937_64& random);

// Inputs of extents up to `max_extent` (see RandomInputs for small ones): those on both
// sides of a vector's and a tile's size, equal ones where the op asks for that. nullopt
// where no draw fits the op.
absl::optional<RandomInputsResult> DrawLargeInputs(const Op& op, uint64_t seed, int64_t max_extent);

}  // namespace nestor

#endif  // NESTOR_TESTS_JIT_RUNS_H_
