// Properties of a kernel besides its results: faults are located, and the host's floating-point
// settings do not matter.
#include "jit/kernel.h"

#include <signal.h>

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/disassemble.h"
#include "jit/runtime/cpu_features.h"
#include "jit/runtime/crash_report.h"
#include "jit/runtime/executor.h"
#include "loop_ir/text.h"
#include "tensor/tensor.h"

namespace nestor::jit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

loop::Program Parse(const std::string& text) { return loop::ParseProgram(text).value(); }

// Both steps keep their own loop, and so their own function.
constexpr char kTwoLoops[] = R"(program two(a: f32[N], b: f32[M]) -> (y: f32[N], z: f32[M]) {
  for i in [0, N) parallel { y[i] = sqrt(a[i]) }
  for j in [0, M) parallel { z[j] = b[j] * 3.0 }
})";

// Runs two on good memory except for the tensor that `bad` names, whose address is unmapped.
void RunOnBadMemory(char bad, bool report) {
  if (report) InstallCrashReport();
  const auto executable = CompileScheduled(Parse(kTwoLoops)).value();
  void* const nowhere = reinterpret_cast<void*>(uintptr_t{64});
  std::vector<Tensor> good(4, Tensor::Of<float>({3}, {1, 2, 3}));
  const auto view = [&](int i) {
    return ViewOf(DType::kF32, "abyz"[i] == bad ? nowhere : good[i].data(), {3});
  };
  Workspace workspace;
  const absl::Status status = executable->Run({{view(0), view(1)}, {view(2), view(3)}}, &workspace);
  std::exit(status.ok() ? 0 : 1);
}

class KernelDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(KernelDeathTest, AFaultNamesKernelFunctionAndStatement) {
  const struct {
    char bad;
    const char* place;
  } cases[] = {
      {'a', "nestor: fault in kernel two, function two.0, statement 0: y[i] = sqrt(a[i])\n"},
      {'y', "nestor: fault in kernel two, function two.0, statement 0: y[i] = sqrt(a[i])\n"},
      {'b', "nestor: fault in kernel two, function two.1, statement 1: z[j] = b[j] * 3.0\n"},
      {'z', "nestor: fault in kernel two, function two.1, statement 1: z[j] = b[j] * 3.0\n"},
  };
  for (const auto& c : cases) {
    EXPECT_EXIT(RunOnBadMemory(c.bad, true), testing::KilledBySignal(SIGSEGV), HasSubstr(c.place))
        << c.bad;
  }
  EXPECT_EXIT(RunOnBadMemory('a', false), testing::KilledBySignal(SIGSEGV),
              Not(HasSubstr("nestor: fault")));
}

TEST_F(KernelDeathTest, TheEnvironmentTurnsReportsOn) {
  const auto run = [] {
    setenv("NESTOR_CRASH_REPORT", "1", 1);
    RunOnBadMemory('b', false);
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGSEGV),
              HasSubstr("function two.1, statement 1: z[j] = b[j] * 3.0"));
}

// ---- The host's settings

constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZero = 1u << 6, kTruncate = 3u << 13,
                   kUsual = 0x1f80;
constexpr unsigned kStickyFlags = 0x3f;

// A host with settings of its own, for as long as this lives.
class HostSettings {
 public:
  explicit HostSettings(unsigned mxcsr) : before_(_mm_getcsr()) { _mm_setcsr(mxcsr); }
  ~HostSettings() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
};

// A pool whose threads do not take their caller's settings.
class PoolWithSettings : public Executor {
 public:
  explicit PoolWithSettings(unsigned mxcsr) : mxcsr_(mxcsr) {}
  int NumThreads() const override { return 2; }
  void Run(int64_t count, absl::FunctionRef<void(int worker, int64_t i)> task) override {
    std::thread thread([&] {
      const HostSettings settings(mxcsr_);
      for (int64_t i = 0; i < count; ++i) task(1, i);
      kept_ = kept_ && (_mm_getcsr() & ~kStickyFlags) == (mxcsr_ & ~kStickyFlags);
    });
    thread.join();
    ++runs_;
  }
  bool kept() const { return kept_; }
  int runs() const { return runs_; }

 private:
  const unsigned mxcsr_;
  bool kept_ = true;
  int runs_ = 0;
};

constexpr char kDelicate[] = R"(program delicate(x: f32[N], w: f64[N]) -> (y: f32[N], z: f64[N]) {
  for i in [0, N) parallel vector { y[i] = x[i] * 0.3 }
  for i in [0, N) parallel vector { z[i] = f64(1.0) / w[i] + sqrt(w[i]) }
})";

// Subnormals, and numbers that underflow, are inexact, or are divided by zero.
std::vector<Tensor> DelicateInputs() {
  constexpr int64_t kCount = 100;
  std::vector<Tensor> inputs = {*Tensor::Create(DType::kF32, {kCount}),
                                *Tensor::Create(DType::kF64, {kCount})};
  for (int i = 0; i < kCount; ++i) {
    inputs[0].values<float>()[i] = static_cast<float>(i) * (i % 2 == 0 ? 0x1p-149f : 0x1p-126f);
    inputs[1].values<double>()[i] = i % 3 == 0 ? 0.0 : i * 0x1p-1060;
  }
  return inputs;
}

struct Outcome {
  absl::Status status;
  std::vector<Tensor> results;
  unsigned mxcsr_after = 0;
};

// Runs on a host with these settings.
Outcome RunUnder(unsigned mxcsr, const Executable& executable) {
  const std::vector<Tensor> inputs = DelicateInputs();
  Outcome outcome;
  outcome.results = inputs;
  Workspace workspace;
  const HostSettings settings(mxcsr);
  outcome.status = executable.Run(
      {{inputs[0], inputs[1]}, {outcome.results[0], outcome.results[1]}}, &workspace);
  outcome.mxcsr_after = _mm_getcsr() & ~kStickyFlags;
  return outcome;
}

void ExpectSame(const Outcome& got, const Outcome& want, const char* name) {
  ASSERT_TRUE(got.status.ok()) << name << ": " << got.status;
  for (size_t i = 0; i < want.results.size(); ++i) {
    EXPECT_EQ(FirstDifference(got.results[i], want.results[i]).value_or(""), "")
        << name << ", result " << i;
  }
}

TEST(KernelSettings, TheHostsDoNotChangeResultsAndAreKept) {
  const struct {
    const char* name;
    unsigned mxcsr;
  } cases[] = {
      {"flush to zero", kUsual | kFlushToZero},
      {"denormals are zero", kUsual | kDenormalsAreZero},
      {"truncate", kUsual | kTruncate},
      {"all of them", kUsual | kFlushToZero | kDenormalsAreZero | kTruncate},
      {"traps", 0},
  };
  CompileOptions options;
  options.least_parallel_bytes = 0;
  options.executor = &InlineExecutor();
  const auto on_caller = CompileScheduled(Parse(kDelicate), options).value();
  const Outcome want = RunUnder(kUsual, *on_caller);
  ASSERT_TRUE(want.status.ok());
  EXPECT_GT(want.results[0].values<float>()[4], 0.0f);  // a subnormal
  for (const auto& c : cases) {
    const Outcome got = RunUnder(c.mxcsr, *on_caller);
    ExpectSame(got, want, c.name);
    EXPECT_EQ(got.mxcsr_after, c.mxcsr) << c.name;
    PoolWithSettings pool(c.mxcsr);
    options.executor = &pool;
    const auto on_pool = CompileScheduled(Parse(kDelicate), options).value();
    ExpectSame(RunUnder(kUsual, *on_pool), want, absl::StrCat(c.name, ", on a pool").c_str());
    EXPECT_TRUE(pool.kept()) << c.name;
    EXPECT_GT(pool.runs(), 0) << c.name;
  }
}

// ---- Proofs

// Plain, masked and checked accesses, in lanes and without.
constexpr char kAccesses[] =
    R"(program accesses(a: f32[N, M], b: f32[N, M], g: i64[N]) -> (y: f32[N, M], z: f32[N, M]) {
  for i in [0, N) parallel {
    for j in [0, M) vector { y[i, j] = a[i, j] + b[i, j | 0.0 if i > 0] }
    for k in [0, M) { z[i, k] = a[g[i], k] * b[i, k - 1 | 0.0 if k > 0] }
  }
})";

int64_t Count(const Kernel& kernel, const std::string& instruction) {
  const std::string text = Disassemble(kernel);
  int64_t count = 0;
  for (size_t at = text.find(instruction); at != std::string::npos;
       at = text.find(instruction, at + 1))
    ++count;
  return count;
}

// A program that states no facts runs with all its accesses checked, and without lanes.
TEST(KernelTest, CodeRestsOnWhatTheProgramSays) {
  const loop::Program silent = Parse(kAccesses);
  loop::Program proven = silent;
  ASSERT_TRUE(ProveForCode(proven, Isa::kAvx2).ok());
  const auto plain = Kernel::Compile(silent, {}).value(),
             code = Kernel::Compile(proven, {}).value();
  EXPECT_EQ(Count(*plain, "ymm"), 0);
  EXPECT_GT(Count(*code, "ymm"), 0);
  // By statement: only a[g[i], k] is checked before it is read.
  EXPECT_EQ(Count(*code, "mov eax, 0x2") + Count(*code, "mov eax, 0x02"), 1) << Disassemble(*code);
  EXPECT_GT(Count(*plain, "cmp"), Count(*code, "cmp"));
}

// Says it has three threads, and runs all itself.
class ThreeInTurn : public Executor {
 public:
  int NumThreads() const override { return 3; }
  void Run(int64_t count, absl::FunctionRef<void(int worker, int64_t i)> task) override {
    for (int64_t i = 0; i < count; ++i) task(0, i);
  }
};

// No thread waits for another with more work: pieces cover a loop's iterations, none is longer than
// another by more than one, and there are eight for each thread or as many as there are iterations.
TEST(KernelTest, PiecesAreEqual) {
  const auto kernel =
      Kernel::Compile(
          Parse("program f(x: f32[N]) -> (y: f32[N]) { for i in [0, N) parallel { y[i] = x[i] } }"),
          {})
          .value();
  ThreeInTurn executor;
  for (int64_t n = 0; n < 100; ++n) {
    int64_t next = 0, longest = 0, shortest = n, pieces = 0;
    const auto piece = [&](Kernel::Function, const int64_t*, int64_t begin, int64_t end,
                           char*) -> int64_t {
      EXPECT_EQ(begin, next) << n;
      next = end;
      longest = std::max(longest, end - begin);
      shortest = std::min(shortest, end - begin);
      ++pieces;
      return 0;
    };
    const Kernel::Caller caller = piece;
    std::vector<int64_t> table(kernel->table().slots.size(), n);
    char* const memory[] = {nullptr, nullptr, nullptr};
    Kernel::RunOptions options;
    options.executor = &executor;
    options.caller = &caller;
    EXPECT_EQ(kernel->Run(table.data(), memory, options), 0);
    EXPECT_EQ(next, n);
    EXPECT_EQ(pieces, std::min<int64_t>(n, 24));
    EXPECT_LE(longest - shortest, n == 0 ? 0 : 1) << n;
  }
}

TEST(KernelTest, MoreLanesThanTheVectorsHaveAreRefused) {
  const auto kernel = Kernel::Compile(
      Parse("program f(x: f32[N]) -> (y: f32[N]) { for i in [0, N) vector(16) { y[i] = x[i] } }"),
      {});
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(kernel.status().message().find(
                "`for i in [0, N) vector(16)`: so many lanes do not fit in the vectors of avx2"),
            std::string::npos)
      << kernel.status();
}

}  // namespace
}  // namespace nestor::jit
