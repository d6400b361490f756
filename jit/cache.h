// Executables that are kept for programs that come again.
//
//   jit::ExecutableCache cache;
//   NESTOR_ASSIGN_OR_RETURN(auto softmax, cache.Compile(Lower(op)));  // compiles
//   NESTOR_ASSIGN_OR_RETURN(auto same, cache.Compile(Lower(op)));     // finds it
#ifndef NESTOR_JIT_CACHE_H_
#define NESTOR_JIT_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/least_recently_used.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// Thread-safe. Each cache is its own: there is no global one.
class ExecutableCache {
 public:
  // If one of these is exceeded, the least recently used executable is dropped. The newest stays,
  // whatever its size. Whoever holds an executable keeps it alive.
  struct Limits {
    int64_t executables = 256;
    // Bytes of machine code for all layouts that were run, as of the last Compile that missed.
    int64_t code_bytes = int64_t{64} << 20;
  };
  // Counts since the cache was made.
  struct Statistics {
    int64_t hits = 0, misses = 0;  // of Compile; failures are misses
    int64_t executables = 0;       // that are kept now
    int64_t code_bytes = 0;
  };

  ExecutableCache() : ExecutableCache(Limits()) {}
  explicit ExecutableCache(const Limits& limits) : limits_(limits) {}

  // jit::Compile's executable, or one that an equal call gave: same text of the program
  // (loop_ir/text.h), same options, same instruction set. A Status is not kept. If two threads miss
  // at once, both compile, and both get the executable of the first.
  absl::StatusOr<std::shared_ptr<const Executable>> Compile(loop::Program program,
                                                            const CompileOptions& options = {});

  Statistics statistics() const;
  void Clear();  // keeps the counts

 private:
  // Counts a hit, or a miss and returns null.
  std::shared_ptr<const Executable> Find(const std::string& key);
  std::shared_ptr<const Executable> Keep(std::string key,
                                         std::shared_ptr<const Executable> executable);
  int64_t CodeBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops executables until the limits hold.
  void Shrink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  mutable absl::Mutex mutex_;
  LeastRecentlyUsed<std::string, std::shared_ptr<const Executable>> by_key_ ABSL_GUARDED_BY(mutex_);
  int64_t hits_ ABSL_GUARDED_BY(mutex_) = 0, misses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CACHE_H_
