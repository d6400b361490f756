// Running compiled programs on memory that shows every stray access: outputs are
// poisoned, and all buffers end (or begin) at a page that may not be touched.
#ifndef NESTOR_CHECK_ENGINES_GUARDED_RUN_H_
#define NESTOR_CHECK_ENGINES_GUARDED_RUN_H_

#include <memory>

#include "check/arrangement.h"
#include "check/engines/finding.h"
#include "check/guarded_memory.h"
#include "jit/executable.h"
#include "jit/kernel.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"

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

// What runs with these inputs, the general program where they are refused, under the
// executable's own signature: it takes the same inputs, though numbers stand for some sizes in it.
loop::Program ProgramOf(const jit::Executable& executable, const RunInputs& inputs);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_GUARDED_RUN_H_
