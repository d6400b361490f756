// Each index runs once, on one worker at a time, for executors of Nestor and of a host.
#include "jit/runtime/executor.h"

#include <sys/resource.h>
#include <tbb/task_group.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

// A host's own pool, as simple as possible: fresh threads that draw numbers.
class HostPool : public Executor {
 public:
  explicit HostPool(int threads) : threads_(threads) {}
  int NumThreads() const override { return threads_; }
  void Run(int64_t count, absl::FunctionRef<void(int, int64_t)> task) override {
    std::atomic<int64_t> next{0};
    const auto work = [&](int worker) {
      for (int64_t i; (i = next.fetch_add(1)) < count;) task(worker, i);
    };
    std::vector<std::thread> others;
    for (int worker = 1; worker < threads_; ++worker) others.emplace_back(work, worker);
    work(0);
    for (std::thread& other : others) other.join();
  }

 private:
  const int threads_;
};

struct Case {
  std::string name;
  std::unique_ptr<Executor> owned;
  Executor& executor;
  int threads;
};

Case Owned(std::string name, std::unique_ptr<Executor> executor, int threads) {
  Executor& reference = *executor;
  return {std::move(name), std::move(executor), reference, threads};
}

std::vector<Case> AllExecutors() {
  std::vector<Case> cases;
  cases.push_back({"inline", nullptr, InlineExecutor(), 1});
  cases.push_back({"default", nullptr, DefaultExecutor(), DefaultExecutor().NumThreads()});
  for (const int threads : {1, 2, 5}) {
    cases.push_back(Owned("pool " + std::to_string(threads), NewThreadPool(threads), threads));
  }
  cases.push_back(Owned("host", std::make_unique<HostPool>(2), 2));
  return cases;
}

// Runs `count` tasks and checks that each ran once, in a worker that ran no other task at the
// same time.
void CheckRun(Executor& executor, int64_t count) {
  std::vector<std::atomic<int>> calls(count);
  std::vector<std::atomic<bool>> busy(executor.NumThreads());
  std::atomic<int> wrong_workers{0};
  executor.Run(count, [&](int worker, int64_t i) {
    const bool exists = worker >= 0 && worker < static_cast<int>(busy.size());
    if (!exists || busy[worker].exchange(true)) return void(++wrong_workers);
    ++calls[i];
    busy[worker] = false;
  });
  EXPECT_EQ(wrong_workers, 0) << count;
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(calls[i], 1) << i << " of " << count;
}

TEST(Executor, RunsEachOnceAndNoWorkerTwiceAtATime) {
  for (const Case& c : AllExecutors()) {
    SCOPED_TRACE(c.name);
    ASSERT_EQ(c.executor.NumThreads(), c.threads);
    for (const int64_t count : {0, 1, 2, 3, 7, 64, 1000, 300000}) CheckRun(c.executor, count);
    for (int round = 0; round < 200; ++round) CheckRun(c.executor, 5);
  }
}

TEST(Executor, AHugeCountIsNoList) {
  constexpr int64_t kCount = 20'000'000;
  for (const int threads : {1, 2}) {
    const std::unique_ptr<Executor> pool = NewThreadPool(threads);
    struct alignas(64) Sum {
      int64_t value = 0;
    };
    std::vector<Sum> sums(threads);
    pool->Run(kCount, [&](int worker, int64_t i) { sums[worker].value += i; });
    int64_t total = 0;
    for (const Sum& sum : sums) total += sum.value;
    EXPECT_EQ(total, kCount * (kCount - 1) / 2);
  }
}

// Two tasks that wait for each other end only if both run at once.
TEST(Executor, TwoThreadsAreTwo) {
  const std::unique_ptr<Executor> pool = NewThreadPool(2);
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  std::set<int> workers;
  std::mutex mutex;
  pool->Run(2, [&](int worker, int64_t) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (++arrived; arrived < 2; std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() > deadline) return void(met = false);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    workers.insert(worker);
  });
  EXPECT_TRUE(met);
  EXPECT_EQ(workers, (std::set<int>{0, 1}));
}

TEST(Executor, ManyCallersShareOne) {
  for (const Case& c : AllExecutors()) {
    SCOPED_TRACE(c.name);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&c] {
        for (int round = 0; round < 50; ++round) CheckRun(c.executor, 40);
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
}

TEST(Executor, ReturnsWhenAllHaveReturned) {
  const std::unique_ptr<Executor> pool = NewThreadPool(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> done{0};
    pool->Run(8, [&](int, int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      ++done;
    });
    EXPECT_EQ(done, 8);
  }
}

// Runs in its own process, whose memory has room for the stacks of only some threads.
TEST(ExecutorDeathTest, StartsNoMoreThanTheSystemLets) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what a sanitizer maps exceeds the limit";
#endif
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    const rlimit limit = {rlim_t{1} << 30, rlim_t{1} << 30};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(1);
    const std::unique_ptr<Executor> pool = NewThreadPool(1000);
    if (pool->NumThreads() < 2 || pool->NumThreads() >= 1000) _exit(2);
    CheckRun(*pool, 100000);
    _exit(testing::Test::HasFailure() ? 3 : 0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST(Executor, AHostsCancelledGroupLosesNothing) {
  const std::unique_ptr<Executor> pool = NewThreadPool(2);
  tbb::task_group_context context;
  tbb::task_group group(context);
  group.run_and_wait([&] {
    context.cancel_group_execution();
    CheckRun(*pool, 1000);
  });
}

// Rounding and flushing are the caller's in every task, whoever made the pool.
TEST(Executor, TasksComputeUnderTheCallersSettings) {
  constexpr uint32_t kUsual = 0x1f80, kFlushAndTruncate = 0xffc0, kStickyFlags = 0x3f;
  const std::unique_ptr<Executor> pool = NewThreadPool(2);
  for (const uint32_t settings : {kFlushAndTruncate, kUsual, kFlushAndTruncate}) {
    std::atomic<int> others{0};
    _mm_setcsr(settings);
    pool->Run(1000, [&](int, int64_t) { others += (_mm_getcsr() & ~kStickyFlags) != settings; });
    const uint32_t after = _mm_getcsr() & ~kStickyFlags;
    _mm_setcsr(kUsual);
    EXPECT_EQ(others, 0) << std::hex << settings;
    EXPECT_EQ(after, settings);
  }
}

}  // namespace
}  // namespace nestor::jit
