// The default executor is a oneTBB arena of its own: a call enters it, splits the range
// there, and takes part in the work. The worker's number is the thread's slot in the
// arena, which no other thread has while it is in there. oneTBB splits the range as
// threads get idle, so that a thousand empty tasks cost a few microseconds.
//
// Two things a plain parallel_for would take from its surroundings, and this one does
// not. A host that cancels a task group around the call would silently leave iterations
// out; the arena and the context are outside all of the host's groups. And workers would
// compute with the floating-point settings of the thread that first used the arena; the
// context takes those of the caller instead, so that a result never depends on which
// thread computed it.
//
// oneTBB starts threads when there is work for them, and one that cannot be started ends the
// process: nobody can catch what a worker throws. So a pool tries first how many start.
#include "uops/cpp20.h"

#include "jit/runtime/executor.h"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdlib>
#include <exception>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace nestor::jit {
namespace {

// Says to ThreadSanitizer that work goes from thread to thread: Debian's oneTBB, which passes it
// on, is not instrumented.
class HandOver {
 public:
#ifdef __SANITIZE_THREAD__
  static void Give() { __tsan_release(&place_); }
  static void Take() { __tsan_acquire(&place_); }

 private:
  static inline char place_ = 0;
#else
  static void Give() {}
  static void Take() {}
#endif
};

// The first allocation of a thread reserves address space for all its later ones, tens
// of megabytes.
void TakeHeap() {
  void* volatile memory = std::malloc(64);  // so that it is not optimized away
  std::free(memory);
}

// How many of `threads` the system lets start now, all at once. Each gets its heap before the next
// one starts: otherwise there would seem to be room for more.
int CountStarted(int threads) {
  std::promise<void> tried;
  const std::shared_future<void> is_tried(tried.get_future());
  std::vector<std::thread> started;
  try {
    started.reserve(threads);
    while (static_cast<int>(started.size()) < threads) {
      std::promise<void> taken;
      const std::future<void> has_heap = taken.get_future();
      started.emplace_back([is_tried, taken = std::move(taken)]() mutable {
        TakeHeap();
        taken.set_value();
        is_tried.wait();
      });
      has_heap.wait();
    }
  } catch (const std::exception&) {
    // No more threads, or no memory for them.
  }
  tried.set_value();
  for (std::thread& thread : started) thread.join();
  return static_cast<int>(started.size());
}

// As many as wanted; if fewer start, half of those, including the caller's, so that the process can
// start others, too.
int ThreadsThatStart(int wanted) {
  const int others = CountStarted(wanted - 1);
  return others == wanted - 1 ? wanted : 1 + others / 2;
}

void RunInline(int64_t count, absl::FunctionRef<void(int, int64_t)> task) {
  for (int64_t i = 0; i < count; ++i) task(0, i);
}

class Inline : public Executor {
 public:
  int NumThreads() const override { return 1; }
  void Run(int64_t count, absl::FunctionRef<void(int, int64_t)> task) override {
    RunInline(count, task);
  }
};

class ThreadPool : public Executor {
 public:
  explicit ThreadPool(int threads) : threads_(threads), arena_(threads) {
    constexpr auto kLimit = tbb::global_control::max_allowed_parallelism;
    // oneTBB starts no more threads than there are processors, unless it is told to.
    const size_t wanted = static_cast<size_t>(threads);
    if (tbb::global_control::active_value(kLimit) < wanted) more_threads_.emplace(kLimit, wanted);
  }

  int NumThreads() const override { return threads_; }

  // The context is isolated, so that a caller who cancels tasks of its own does not cancel these,
  // and hands this thread's float settings to the workers.
  void Run(int64_t count, absl::FunctionRef<void(int, int64_t)> task) override {
    if (count <= 1 || threads_ == 1) return RunInline(count, task);
    using tbb::task_group_context;
    task_group_context context(task_group_context::isolated, task_group_context::default_traits |
                                                                 task_group_context::fp_settings);
    const auto part = [task](const tbb::blocked_range<int64_t>& range) {
      HandOver::Take();
      const int worker = tbb::this_task_arena::current_thread_index();
      for (int64_t i = range.begin(); i < range.end(); ++i) task(worker, i);
      HandOver::Give();
    };
    const auto run = [&] {  // may run on another thread, if there are many callers
      HandOver::Take();
      tbb::parallel_for(tbb::blocked_range<int64_t>(0, count), part, context);
      HandOver::Give();
    };
    HandOver::Give();
    arena_.execute(run);
    HandOver::Take();
  }

 private:
  const int threads_;
  std::optional<tbb::global_control> more_threads_;
  tbb::task_arena arena_;
};

}  // namespace

Executor& InlineExecutor() {
  static Inline& executor = *new Inline;
  return executor;
}

std::unique_ptr<Executor> NewThreadPool(int threads) {
  return std::make_unique<ThreadPool>(
      ThreadsThatStart(threads > 0 ? threads : tbb::info::default_concurrency()));
}

Executor& DefaultExecutor() {
  static Executor& executor = *NewThreadPool(0).release();
  return executor;
}

}  // namespace nestor::jit
