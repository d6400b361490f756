// A compiled program for one instruction set and one layout of its arguments: sealed machine code
// and the contents of its table.
#ifndef NESTOR_JIT_KERNEL_H_
#define NESTOR_JIT_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "jit/codegen/table.h"
#include "jit/codegen/translate.h"
#include "jit/runtime/code_memory.h"
#include "jit/runtime/crash_report.h"
#include "jit/runtime/executor.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/program.h"
#include "loop_ir/text.h"

namespace nestor::jit {

// Immutable and thread-safe.
class Kernel {
 public:
  // The Statuses of Translate, Emit and CodeMemory. A fault in the code is reported
  // with its statement where CrashReportIsOn(). REQUIRES: Verify accepts the program,
  // which is scheduled: loops without lanes run one iteration after the other, and in a
  // program that is not proven all accesses are checked.
  static absl::StatusOr<std::unique_ptr<const Kernel>> Compile(loop::Program program,
                                                               const TranslateOptions& options);

  // The program as given, with the expressions of the table's slots added to its pool.
  const loop::Program& program() const { return program_; }
  // The slots that a caller fills, in order; see SlotValues.
  const Table& table() const { return table_; }
  // Where the temporaries that need memory live.
  const loop::MemoryPlan& plan() const { return plan_; }

  using Function = int64_t (*)(const int64_t* table, int64_t begin, int64_t end,
                               char* private_memory);
  // Calls the function for a kernel, and returns its result: a way for tests to see how it behaves.
  using Caller = absl::FunctionRef<int64_t(Function, const int64_t* table, int64_t begin,
                                           int64_t end, char* private_memory)>;
  // Called before each function, with the number of the top-level item of the program that it
  // begins with, and whether it runs that item as a parallel loop.
  using Observer = absl::FunctionRef<void(int first_item, bool parallel)>;
  // The options of one run; all pointers are borrowed for its time.
  struct RunOptions {
    Executor* executor = nullptr;  // null: the caller's thread
    // A parallel loop with fewer iterations than this for each thread is not divided.
    int64_t least_iterations = 1;
    const Caller* caller = nullptr;  // calls each function; null: it is called directly
    const Observer* before = nullptr;
    // Skips computations on constant inputs (TranslateOptions) alone: their results are where the
    // previous run left them.
    bool constants_are_there = false;
  };
  // Runs the code under the default floating-point settings, whatever the caller's are. Returns 0,
  // or 1 + the number of the statement that left its bounds.
  // REQUIRES: `table` is filled; `private_memory` has one address for each worker.
  // Outputs are unspecified then. Thread-safe, with other tables and memory in each thread.
  int64_t Run(const int64_t* table, absl::Span<char* const> private_memory,
              const RunOptions& options) const;

  // The text of statement `number`, and of all of them.
  std::string StatementText(int64_t number) const;
  std::vector<std::string> StatementTexts() const { return loop::ToTexts(program_, statements_); }

  int64_t code_bytes() const { return code_bytes_; }  // without constants
  int64_t spilled() const { return spilled_; }

  // For `print --stage=asm`: a function's name and its code.
  struct FunctionView {
    std::string name;
    absl::Span<const uint8_t> code;
    std::vector<std::pair<int32_t, int32_t>> statements;
  };
  std::vector<FunctionView> Functions() const;

 private:
  // See Step in codegen/translate.h; `function` is sealed code.
  struct Step {
    std::string name;
    int first_item;
    Function function;
    int64_t code_bytes;
    bool parallel, constant;
    Operand begin, end;
    int64_t stride, granularity;
    std::vector<std::pair<int32_t, int32_t>> statements;
  };
  Kernel() = default;
  void RegisterForCrashReport();
  int64_t Call(const Step& step, const int64_t* table, int64_t begin, int64_t end,
               char* private_memory, const RunOptions& options) const;
  int64_t RunParallel(const Step& step, const int64_t* table,
                      absl::Span<char* const> private_memory, const RunOptions& options) const;

  loop::Program program_;
  Table table_;
  loop::MemoryPlan plan_;
  std::vector<Step> steps_;
  CodeMemory code_;
  CodeRegistration registration_;  // ends before the code does
  std::vector<loop::Statement> statements_;
  int64_t code_bytes_ = 0, spilled_ = 0;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_KERNEL_H_
