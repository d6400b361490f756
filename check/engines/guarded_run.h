// Running compiled programs on memory that shows every stray access: outputs are
// poisoned, and all buffers end (or begin) at a page that may not be touched.
#ifndef NESTOR_CHECK_ENGINES_GUARDED_RUN_H_
#define NESTOR_CHECK_ENGINES_GUARDED_RUN_H_

#include <list>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "check/arrangement.h"
#include "check/engines/finding.h"
#include "check/guarded_memory.h"
#include "jit/executable.h"
#include "jit/kernel.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"

namespace nestor {

struct JitRunOptions {
  GuardedMemory::Side side = GuardedMemory::Side::kEnd;
  // REQUIRES: no broadcast.
  Arrangement outputs = Arrangement::kCompact;
  // Each output reuses the memory of an input wherever the executable allows it.
  bool in_place = false;
  jit::Workspace* workspace = nullptr;
  // See Executable::Hooks.
  const jit::Kernel::Caller* caller = nullptr;
  bool poison_dead = false;
};

// The results on copies of the inputs, laid out as they are, in guarded memory; inputs that are
// bound are not read. Internal where an input, or memory outside of an output's elements, is
// written.
Results RunJit(const jit::Executable& executable, const RunInputs& inputs,
               const JitRunOptions& options = {});

// Whether the inputs, and outputs in that arrangement, are compact: then axes may be merged in the
// program that runs (jit/variants.h). False where the inputs are refused.
bool IsCompactCall(const jit::Executable& executable, const RunInputs& inputs, Arrangement outputs);

// The program that runs with these inputs, for compact arguments or others; the general program
// where they are refused.
class RunningProgram {
 public:
  RunningProgram(const jit::Executable& executable, const RunInputs& inputs, bool compact);

  // It has the executable's own signature, so that it takes the same inputs, though some sizes in
  // it are numbers. With merged axes it is for one call, and all sizes are numbers.
  const loop::Program& program() const { return program_; }
  // The results that `interpret` gives for it, with the inputs in the shapes that it takes; the
  // results have the executable's shapes.
  Results Interpreted(
      absl::FunctionRef<Results(const loop::Program&, const RunInputs&)> interpret) const;

 private:
  void PutNumbers(const Binding& binding);

  loop::Program program_;
  RunInputs inputs_;
  std::list<Tensor> copies_;  // of inputs, in merged shapes
  std::vector<Dims> shapes_;  // of results; empty: they have them
};

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_GUARDED_RUN_H_
