// The key is the program's text followed by the options. The text says everything about a program
// except the numbering of its parts, so equal keys mean equal code, without a hash that could
// collide; and making it takes a small part of the time of compilation.
#include "jit/cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

std::string Text(const absl::optional<int64_t>& number) {
  return number ? absl::StrCat(*number) : "-";
}

// All that code depends on. An executor counts by its address: it outlives the executables that use
// it.
std::string KeyOf(const loop::Program& program, const CompileOptions& options) {
  // A new option does not compile until it is part of the key.
  const auto& [mode, isa, executor, schedule, schedules, least_parallel_bytes, prefetching_bytes,
               streaming_bytes, size_classes] = options;
  const auto& [accumulators, memory_order, contractions, strips, parallel_sums] = schedule;
  const auto& [columns, rows] = memory_order;
  const auto& [tile_isa, tile_rows, tile_vectors, sum_block, row_block, column_block, many_elements,
               panels, columns_outside, version, bound] = contractions;
  const auto& [strip_rows, strip_version] = strips;
  const auto& [sum_piece, reorders_rounding] = parallel_sums;
  const auto& [largest_constant, short_row, least_work, variants] = size_classes;
  static_cast<void>(tile_isa);  // is `isa`
  static_cast<void>(bound);     // each variant has its own, and so with these:
  static_cast<void>(version);
  static_cast<void>(strip_version);
  static_cast<void>(reorders_rounding);  // is `mode`
  const std::string numbers = absl::StrJoin(
      {accumulators, columns, rows, tile_rows, tile_vectors, sum_block, row_block, column_block,
       many_elements, int64_t{panels}, int64_t{columns_outside}, strip_rows, sum_piece,
       largest_constant, short_row, least_work, int64_t{variants}},
      " ");
  return absl::StrCat(loop::ToText(program), "\n", static_cast<int>(mode), " ",
                      NESTOR_MUTANT("cache_key_without_set") ? "" : Name(*isa), " ",
                      reinterpret_cast<uintptr_t>(executor), " ",
                      schedules == nullptr ? "" : schedules->ToText(), " ", numbers, " ",
                      Text(least_parallel_bytes), " ", Text(prefetching_bytes), " ",
                      Text(streaming_bytes));
}

}  // namespace

// The key is the program's text with the options, the instruction set resolved: two callers that
// compile the same program at once may both do so, and share the first one's result.
absl::StatusOr<std::shared_ptr<const Executable>> ExecutableCache::Compile(
    loop::Program program, const CompileOptions& options) {
  CompileOptions resolved = options;
  if (!resolved.isa) {
    NESTOR_ASSIGN_OR_RETURN(resolved.isa, BestIsa());
  }
  std::string key = KeyOf(program, resolved);
  if (std::shared_ptr<const Executable> found = Find(key)) return found;
  // Outside the lock: others need not wait.
  NESTOR_ASSIGN_OR_RETURN(std::shared_ptr<const Executable> executable,
                          jit::Compile(std::move(program), resolved));
  return Keep(std::move(key), std::move(executable));
}

std::shared_ptr<const Executable> ExecutableCache::Find(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<const Executable>* found = by_key_.Find(key);
  ++(found == nullptr ? misses_ : hits_);
  return found == nullptr ? nullptr : *found;
}

std::shared_ptr<const Executable> ExecutableCache::Keep(
    std::string key, std::shared_ptr<const Executable> executable) {
  absl::MutexLock lock(&mutex_);
  // The executable of another thread, if that was faster.
  executable = by_key_.Keep(std::move(key), std::move(executable));
  Shrink();
  return executable;
}

int64_t ExecutableCache::CodeBytes() const {
  int64_t bytes = 0;
  for (const auto& [key, executable] : by_key_.entries()) bytes += executable->code_bytes();
  return bytes;
}

// The least recently used ones go, down to one.
void ExecutableCache::Shrink() {
  int64_t bytes = CodeBytes();
  const auto& entries = by_key_.entries();
  while (entries.size() > 1 && (static_cast<int64_t>(entries.size()) > limits_.executables ||
                                bytes > limits_.code_bytes)) {
    bytes -= entries.back().value->code_bytes();
    by_key_.ForgetLast();
  }
}

ExecutableCache::Statistics ExecutableCache::statistics() const {
  absl::MutexLock lock(&mutex_);
  return {hits_, misses_, static_cast<int64_t>(by_key_.entries().size()), CodeBytes()};
}

void ExecutableCache::Clear() {
  absl::MutexLock lock(&mutex_);
  by_key_.Clear();
}

}  // namespace nestor::jit
