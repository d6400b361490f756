// The key is the program's text with the options behind it. The text says all of a
// program but the numbering of its parts, so equal keys mean equal code, without a hash
// that could collide; and it is made in a small part of the time that compilation takes.
//
// Entries lie in a list by last use, which a map finds by their keys.
#include "jit/cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

std::string Text(const absl::optional<int64_t>& number) { return number ? absl::StrCat(*number) : "-"; }

std::string KeyOf(const loop::Program& program, const CompileOptions& options) {
  // An option that is added does not compile until it is part of the key.
  const auto& [mode, isa, executor, accumulators, memory_order, contractions, strips, least_parallel_bytes, streaming_bytes] =
      options;
  const auto& [columns, rows] = memory_order;
  const auto& [tile_isa, tile_rows, tile_vectors, sum_block, row_block, column_block] = contractions;
  const auto& [strip_rows] = strips;
  static_cast<void>(tile_isa);  // is `isa`
  const std::string numbers =
      absl::StrJoin({int64_t{accumulators}, int64_t{columns}, int64_t{rows}, int64_t{tile_rows}, int64_t{tile_vectors},
                     sum_block, row_block, column_block, strip_rows},
                    " ");
  return absl::StrCat(loop::ToText(program), "\n", static_cast<int>(mode), " ", Name(*isa), " ",
                      reinterpret_cast<uintptr_t>(executor), " ", numbers, " ", Text(least_parallel_bytes), " ",
                      Text(streaming_bytes));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Executable>> ExecutableCache::Compile(loop::Program program,
                                                                           const CompileOptions& options) {
  CompileOptions resolved = options;
  if (!resolved.isa) {
    NESTOR_ASSIGN_OR_RETURN(resolved.isa, BestIsa());
  }
  std::string key = KeyOf(program, resolved);
  if (std::shared_ptr<const Executable> found = Find(key)) return found;
  // Outside the lock: others need not wait.
  NESTOR_ASSIGN_OR_RETURN(std::shared_ptr<const Executable> executable, jit::Compile(std::move(program), resolved));
  return Keep(std::move(key), std::move(executable));
}

std::shared_ptr<const Executable> ExecutableCache::Find(absl::string_view key) {
  absl::MutexLock lock(&mutex_);
  const auto it = by_key_.find(key);
  ++(it == by_key_.end() ? misses_ : hits_);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->executable;
}

std::shared_ptr<const Executable> ExecutableCache::Keep(std::string key, std::shared_ptr<const Executable> executable) {
  absl::MutexLock lock(&mutex_);
  const auto it = by_key_.find(key);
  if (it != by_key_.end()) return it->second->executable;  // another thread was faster
  entries_.push_front({std::move(key), std::move(executable)});
  by_key_[entries_.front().key] = entries_.begin();
  Shrink();
  return entries_.front().executable;
}

int64_t ExecutableCache::CodeBytes() const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.executable->code_bytes();
  return bytes;
}

void ExecutableCache::Shrink() {
  int64_t bytes = CodeBytes();
  while (entries_.size() > 1 &&
         (static_cast<int64_t>(entries_.size()) > limits_.executables || bytes > limits_.code_bytes)) {
    bytes -= entries_.back().executable->code_bytes();
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

ExecutableCache::Statistics ExecutableCache::statistics() const {
  absl::MutexLock lock(&mutex_);
  return {hits_, misses_, static_cast<int64_t>(entries_.size()), CodeBytes()};
}

void ExecutableCache::Clear() {
  absl::MutexLock lock(&mutex_);
  by_key_.clear();
  entries_.clear();
}

}  // namespace nestor::jit
