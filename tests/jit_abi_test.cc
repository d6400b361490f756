// Every kernel keeps the calling convention: the functions of all macro ops and their
// gradients, called by a caller that checks it.
#include <string>

#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/kernel.h"
#include "jit/runtime/abi_harness.h"
#include "jit/runtime/executor.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

// Calls each function of the op's kernels. The results mean nothing: the harness calls a function
// four times, and it need not give the same twice.
int CheckKernels(const std::string& what, const Op& op, uint64_t seed) {
  const auto made = DrawLargeInputs(op, seed, 33);
  if (!made) return 0;
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  const auto compiled = CompiledVariants::Compile(Lower(op), options);
  EXPECT_TRUE(compiled.ok()) << what << ": " << compiled.status();
  if (!compiled.ok()) return 0;
  int calls = 0;
  for (const CompiledVariants::Variant& variant : compiled->variants()) {
    JitRunOptions run;
    const auto check = [&](jit::Kernel::Function function, const int64_t* table, int64_t begin,
                           int64_t end, char* private_memory) -> int64_t {
      ++calls;
      const auto kernel =
          reinterpret_cast<jit::KernelFunction>(reinterpret_cast<uintptr_t>(function));
      const auto result = jit::CallCheckingAbi(kernel, table, begin, end,
                                               reinterpret_cast<int64_t>(private_memory));
      EXPECT_TRUE(result.ok()) << what << ", " << Describe(variant.options, run) << ": "
                               << result.status();
      return result.value_or(0);
    };
    const jit::Kernel::Caller caller = check;
    run.caller = &caller;
    const Results results = RunJit(*variant.executable, made->inputs, run);
    (void)results;
  }
  return calls;
}

TEST(JitAbi, EveryMacroOpAndGradient) {
  int ops = 0, calls = 0;
  for (const std::string& name : MacroLibrary().OpNames()) {
    SetCurrentCase(name, 1);
    const Op op = LibraryOp(name).value();
    const int own = CheckKernels(name, op, 1);
    const auto gradient = Gradient(op);
    calls += own + (gradient.ok() ? CheckKernels(name + ", gradient", gradient->op, 1) : 0);
    ops += own > 0 ? 1 : 0;
  }
  EXPECT_GE(ops, static_cast<int>(MacroLibrary().OpNames().size()) * 9 / 10);
  EXPECT_GT(calls, 2 * ops);
}

}  // namespace
}  // namespace nestor
