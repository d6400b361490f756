// Hits, misses and what is forgotten, by the counters; every option is part of the key.
#include "jit/cache.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/runtime/cpu_features.h"
#include "jit/runtime/cpu_features_testing.h"
#include "jit/runtime/executor.h"
#include "loop_ir/text.h"
#include "tensor/tensor.h"

namespace nestor::jit {
namespace {

using Shared = std::shared_ptr<const Executable>;

loop::Program Scale(int factor) {
  const std::string text =
      absl::StrCat("program scale(x: f32[N]) -> (y: f32[N]) {\n  for i in [0, N) { y[i] = x[i] * ",
                   factor, ".0 }\n}");
  return loop::ParseProgram(text).value();
}

Shared MustCompile(ExecutableCache& cache, int factor, const CompileOptions& options = {}) {
  auto executable = cache.Compile(Scale(factor), options);
  EXPECT_TRUE(executable.ok()) << executable.status();
  return *executable;
}

void ExpectCounts(const ExecutableCache& cache, int64_t hits, int64_t misses, int64_t executables) {
  const ExecutableCache::Statistics statistics = cache.statistics();
  EXPECT_EQ(statistics.hits, hits);
  EXPECT_EQ(statistics.misses, misses);
  EXPECT_EQ(statistics.executables, executables);
}

TEST(ExecutableCache, FindsTheSameProgram) {
  ExecutableCache cache;
  const Shared first = MustCompile(cache, 1), other = MustCompile(cache, 2);
  EXPECT_NE(first, other);
  EXPECT_EQ(MustCompile(cache, 1), first);
  EXPECT_EQ(MustCompile(cache, 2), other);
  ExpectCounts(cache, 2, 2, 2);
  EXPECT_EQ(cache.statistics().code_bytes, first->code_bytes() + other->code_bytes());
  cache.Clear();
  EXPECT_EQ(cache.statistics().code_bytes, 0);
  EXPECT_NE(MustCompile(cache, 1), first);
  ExpectCounts(cache, 2, 3, 1);
}

TEST(ExecutableCache, EveryOptionIsPartOfTheKey) {
  const std::function<void(CompileOptions&)> changes[] = {
      [](CompileOptions& options) { options.mode = Mode::kStrict; },
      [](CompileOptions& options) { options.executor = &InlineExecutor(); },
      [](CompileOptions& options) { options.schedule.accumulators = 2; },
      [](CompileOptions& options) { options.schedule.memory_order.columns = 8; },
      [](CompileOptions& options) { options.schedule.memory_order.rows = 2; },
      [](CompileOptions& options) { options.schedule.strips.rows = 8; },
      [](CompileOptions& options) { options.schedule.parallel_sums.least_steps = 64; },
      [](CompileOptions& options) { options.schedule.contractions.panels = false; },
      [](CompileOptions& options) { options.schedule.contractions.columns_outside = true; },
      [](CompileOptions& options) {
        options.schedules = std::make_shared<const Schedules>(
            *Schedules::Parse("op=f program=1 cpu=c isa=avx2 mode=fast sizes=- accumulators=2"));
      },
      [](CompileOptions& options) { options.least_parallel_bytes = 0; },
      [](CompileOptions& options) { options.prefetching_bytes = 0; },
      [](CompileOptions& options) { options.streaming_bytes = 0; },
      [](CompileOptions& options) { options.size_classes.largest_constant = 4; },
      [](CompileOptions& options) { options.size_classes.short_row = 0; },
      [](CompileOptions& options) { options.size_classes.least_work = 0; },
      [](CompileOptions& options) { options.size_classes.variants = 3; },
  };
  ExecutableCache cache;
  std::vector<Shared> all = {MustCompile(cache, 1)};
  for (const auto& change : changes) {
    CompileOptions options;
    change(options);
    all.push_back(MustCompile(cache, 1, options));
    EXPECT_EQ(MustCompile(cache, 1, options), all.back());
  }
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << i << " and " << j;
  }
  // The default instruction set is the best one by its name.
  CompileOptions best;
  best.isa = BestIsa().value();
  EXPECT_EQ(MustCompile(cache, 1, best), all[0]);
}

TEST(ExecutableCache, ForgetsTheLeastRecentlyUsed) {
  ExecutableCache::Limits limits;
  limits.executables = 2;
  ExecutableCache cache(limits);
  const Shared one = MustCompile(cache, 1), two = MustCompile(cache, 2);
  EXPECT_EQ(MustCompile(cache, 1), one);
  MustCompile(cache, 3);  // 2 is dropped
  EXPECT_EQ(MustCompile(cache, 1), one);
  ExpectCounts(cache, 2, 3, 2);
  EXPECT_NE(MustCompile(cache, 2), two);
  ExpectCounts(cache, 2, 4, 2);
  // A dropped executable still works.
  const Tensor x = Tensor::Of<float>({3}, {1, 2, 3});
  Tensor y = Tensor::Of<float>({3}, {0, 0, 0});
  Workspace workspace;
  ASSERT_TRUE(two->Run({{x}, {y}}, &workspace).ok());
  EXPECT_TRUE(BitEqual(y, Tensor::Of<float>({3}, {2, 4, 6})));
}

TEST(ExecutableCache, IsBoundedByCode) {
  ExecutableCache measure;
  ExecutableCache::Limits limits;
  limits.code_bytes = 2 * MustCompile(measure, 3)->code_bytes();
  ExecutableCache cache(limits);
  for (int factor = 3; factor <= 7; ++factor) MustCompile(cache, factor);  // all of the same length
  ExpectCounts(cache, 0, 5, 2);
  EXPECT_LE(cache.statistics().code_bytes, limits.code_bytes);
  // The newest stays, whatever its size.
  limits.code_bytes = 1;
  ExecutableCache small(limits);
  const Shared kept = MustCompile(small, 1);
  EXPECT_EQ(MustCompile(small, 1), kept);
  ExpectCounts(small, 1, 1, 1);
}

TEST(ExecutableCache, DoesNotKeepFailures) {
  ExecutableCache cache;
  CompileOptions options;
  options.isa = Isa::kAvx512;
  {
    const LackForTesting lack("AVX512BW");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cache.Compile(Scale(1), options).status().code(),
                absl::StatusCode::kFailedPrecondition);
    }
    ExpectCounts(cache, 0, 2, 0);
  }
  EXPECT_EQ(cache.Compile(Scale(1), options).ok(), CheckIsa(Isa::kAvx512).ok());
  ExpectCounts(cache, 0, 3, CheckIsa(Isa::kAvx512).ok() ? 1 : 0);
}

TEST(ExecutableCache, ServesThreads) {
  ExecutableCache::Limits limits;
  limits.executables = 3;
  ExecutableCache cache(limits);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 40; ++i) {
        const int factor = (i + t) % 5;
        const Shared scale = MustCompile(cache, factor);
        const Tensor x = Tensor::Of<float>({1}, {3});
        Tensor y = Tensor::Of<float>({1}, {0});
        Workspace workspace;
        EXPECT_TRUE(scale->Run({{x}, {y}}, &workspace).ok());
        EXPECT_EQ(y.values<float>()[0], 3.0f * static_cast<float>(factor));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const ExecutableCache::Statistics statistics = cache.statistics();
  EXPECT_EQ(statistics.hits + statistics.misses, 160);
  EXPECT_LE(statistics.executables, 3);
}

}  // namespace
}  // namespace nestor::jit
