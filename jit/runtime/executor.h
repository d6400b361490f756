// Where parallel loops run: a small interface, so that a host can give its own pool.
#ifndef NESTOR_JIT_RUNTIME_EXECUTOR_H_
#define NESTOR_JIT_RUNTIME_EXECUTOR_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace nestor::jit {

class Executor {
 public:
  virtual ~Executor() = default;

  // How many tasks can run at once, the caller's thread included; at least 1.
  virtual int NumThreads() const = 0;
  // Calls task(worker, i) once for every i in [0, count), some at once, and returns when all have
  // returned. `worker` is in [0, NumThreads()) and differs between any two tasks of this call
  // that run at the same time. Thread-safe. Tasks do not throw and may not call Run: a worker
  // that waited in there could begin another task of this call in the middle of its own, under
  // the same number.
  virtual void Run(int64_t count, absl::FunctionRef<void(int worker, int64_t i)> task) = 0;
};

// Runs all on the caller's thread.
Executor& InlineExecutor();
// oneTBB with `threads` threads (0: as many as the process may use), whose tasks compute
// under the caller's MXCSR and are not cancelled with any task group of the caller's.
// Where `threads` exceeds what oneTBB would start in this process, its limit is raised while the
// pool lives. If the system does not let so many start, there are fewer: NumThreads() says how
// many. The default pool is made at first use and kept.
std::unique_ptr<Executor> NewThreadPool(int threads);
Executor& DefaultExecutor();

}  // namespace nestor::jit

#endif  // NESTOR_JIT_RUNTIME_EXECUTOR_H_
