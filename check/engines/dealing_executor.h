// An executor under which faults of parallel loops show every time.
#ifndef NESTOR_CHECK_ENGINES_DEALING_EXECUTOR_H_
#define NESTOR_CHECK_ENGINES_DEALING_EXECUTOR_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "jit/runtime/executor.h"

namespace nestor {

// Runs tasks one after the other on the caller's thread, the last one first, and deals them to
// two workers in turn. Not for calls of several threads at once.
class DealingExecutor : public jit::Executor {
 public:
  int NumThreads() const override { return 2; }
  void Run(int64_t count, absl::FunctionRef<void(int worker, int64_t i)> task) override {
    for (int64_t i = count; i-- > 0;) {
      worker_ = static_cast<int>(i % 2);
      task(worker_, i);
    }
    worker_ = 0;
  }

  // The worker of the task that runs now; 0 between tasks, as the caller's thread is worker 0.
  int worker() const { return worker_; }

 private:
  int worker_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_DEALING_EXECUTOR_H_
