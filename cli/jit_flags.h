// The JIT as the flags --mode, --threads, --isa and --schedules want it.
#ifndef NESTOR_CLI_JIT_FLAGS_H_
#define NESTOR_CLI_JIT_FLAGS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/arguments.h"
#include "jit/compile.h"
#include "jit/runtime/cpu_features.h"
#include "jit/runtime/executor.h"

namespace nestor::cli {

struct JitSetup {
  std::unique_ptr<jit::Executor> pool;  // of --threads; `options` may point to it
  jit::CompileOptions options;

  int threads() const;
};

// An error names the flag, or what the CPU lacks.
absl::StatusOr<JitSetup> JitSetupFor(const Arguments& arguments);

// --isa, or the best that the CPU has. Code that is only printed need not run: --isa may be one
// that the CPU lacks.
absl::StatusOr<jit::Isa> IsaFor(const Arguments& arguments);

// A help text with all names that --isa knows: "{isa, isa}" in it becomes their list with the best
// set first, and "{isa or isa}" the list with the least one first and "or" between them.
std::string WithIsaNames(absl::string_view help);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_JIT_FLAGS_H_
