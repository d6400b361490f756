// The system provides memory only as it is written, so that too large an amount would not fail when
// it is requested, but end the process in the middle of the run: so it is added up before.
#include "cli/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "loop_ir/intervals.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/sized_program.h"
#include "uops/index/index_expr.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

// Then nothing runs.
bool ResultsAreEmpty(const loop::Program& program, loop::SymbolValue symbol) {
  const auto value_of = [&](const IndexNode& node, absl::Span<const int64_t>) {
    return node.kind == IndexKind::kSymbol ? symbol(program.pool.SymbolNameAt(node.value))
                                           : absl::nullopt;
  };
  return absl::c_all_of(program.outputs, [&](loop::TensorId id) {
    return absl::c_any_of(program[id].shape, [&](IndexId extent) {
      return EvaluateIndex(program.pool, extent, value_of) == int64_t{0};
    });
  });
}

}  // namespace

int64_t MaxBytes() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  std::ifstream group("/sys/fs/cgroup/memory.max");
  int64_t limit;
  if (group >> limit) bytes = std::min(bytes, limit);
  return bytes / 2;
}

// Outputs, the shared arena, and a private one for each thread, by the plan of the kernel that will
// run.
absl::Status CheckMemory(const jit::Executable& executable, const SymbolValues& sizes,
                         int64_t max_bytes) {
  const auto symbol = [&](const std::string& name) -> absl::optional<int64_t> {
    const auto known = sizes.find(name);
    return known == sizes.end() ? absl::nullopt : absl::optional<int64_t>(known->second);
  };
  NESTOR_RETURN_IF_ERROR(loop::CheckDomains(executable.program(), symbol));
  if (ResultsAreEmpty(executable.program(), symbol)) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(const std::shared_ptr<const jit::Kernel> kernel,
                          executable.KernelAt(symbol));
  const loop::Program& program = kernel->program();
  NESTOR_ASSIGN_OR_RETURN(const loop::SizedProgram sized,
                          loop::SizedProgram::Create(program, sizes));
  int64_t left = max_bytes;
  for (loop::TensorId id : program.outputs) {
    NESTOR_ASSIGN_OR_RETURN(const int64_t bytes, sized.Bytes(id));
    if (bytes > left) {
      return absl::ResourceExhaustedError(
          absl::StrCat("program ", program.name, ": tensor ", program[id].name, " of ", bytes,
                       " bytes exceeds the limit of ", max_bytes, " bytes"));
    }
    left -= bytes;
  }
  const jit::Executor* executor = executable.options().executor;
  const int64_t workers = executor == nullptr ? 1 : executor->NumThreads();
  NESTOR_ASSIGN_OR_RETURN(const loop::Arena arena, EvaluatePlan(sized, kernel->plan()));
  if (arena.total <= left && arena.private_total <= (left - arena.total) / workers)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("program ", program.name, ": temporaries of ", arena.total, " bytes, and ",
                   arena.private_total, " for each of ", workers, " threads: exceeds the limit of ",
                   max_bytes, " bytes"));
}

}  // namespace nestor::cli
