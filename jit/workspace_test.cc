// The costs of a call: no memory after the first of a shape, and little time.
//
// Allocations are counted by standing in for the allocator's functions.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/runtime/executor.h"
#include "jit/variants.h"
#include "loop_ir/text.h"
#include "tensor/tensor.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

#ifndef __SANITIZE_ADDRESS__
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) { return ++allocations, __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return ++allocations, __libc_calloc(count, bytes); }
void* realloc(void* memory, size_t bytes) { return ++allocations, __libc_realloc(memory, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) {
  return ++allocations, __libc_memalign(alignment, bytes);
}
}
#endif

namespace nestor::jit {
namespace {

std::unique_ptr<const Executable> MustCompile(const std::string& text) {
  CompileOptions options;
  options.executor = &InlineExecutor();
  auto executable = CompileScheduled(loop::ParseProgram(text).value(), options);
  EXPECT_TRUE(executable.ok()) << executable.status();
  return *std::move(executable);
}

TEST(Workspace, AllocatesNothingForAShapeThatItKnows) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer has the allocator";
#endif
  const auto chain =
      MustCompile(R"(program chain(x: f32[N], s: shape f32[2*D]; $k: f32 = 1.0) -> (y: f32[N, D]) {
    temp t: f32[N]
    for n in [0, N) { t[n] = x[n] * $k }
    for n in [0, N) { for d in [0, D) { y[n, d] = t[N - 1 - n] } }
  })");
  const absl::flat_hash_map<std::string, int64_t> dims = {{"D", 3}};
  const std::vector<Scalar> params = {Scalar::Float(DType::kF32, 2)};
  Workspace workspace;
  for (const int64_t n : {100, 10, 100, 1000}) {
    Tensor x = *Tensor::Create(DType::kF32, {n}), y = *Tensor::Create(DType::kF32, {n, 3});
    const std::vector<TensorView> inputs = {x, ViewOf(DType::kF32, x.data(), {6})}, outputs = {y};
    for (int run = 0; run < 4; ++run) {
      const int64_t before = allocations;
      const absl::Status status = chain->Run({inputs, outputs, params, &dims}, &workspace);
      const int64_t after = allocations;
      ASSERT_TRUE(status.ok()) << status;
      if (run == 0) {
        EXPECT_GT(after, before) << "nothing is counted";
      } else {
        EXPECT_EQ(after, before) << "N = " << n << ", run " << run;
      }
    }
  }
}

// In place, with code that needs a copy of the input.
TEST(Workspace, AllocatesNothingForAClassOfSizesThatItKnows) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer has the allocator";
#endif
  constexpr char kScale[] = R"(program scale(x: f32[N]; $k: i64 = 2) -> (y: f32[N]) {
    for i in [0, N) { y[i] = x[i] * f32(index($k)) }
  })";
  const auto schedule = [](loop::Program, const Variation&) {
    return loop::ParseProgram(R"(program scale(x: f32[N]; $k: i64 = 2) -> (y: f32[N]) {
      for i in [0, N) { y[i] = 0.0 }
      for i_2 in [0, N) { y[i_2] += x[i_2] * 2.0 }
    })");
  };
  ExecutableOptions options;
  options.size_classes.least_work = 0;
  const auto origin =
      std::make_shared<const Origin>(Origin{loop::ParseProgram(kScale).value(), schedule});
  const auto scale =
      Executable::Create(loop::ParseProgram(kScale).value(), options, origin).value();
  Tensor x = *Tensor::Create(DType::kF32, {100});
  const std::vector<TensorView> arguments = {x};
  Workspace workspace;
  ASSERT_TRUE(scale->Run({arguments, arguments}, &workspace).ok());
  ASSERT_EQ(scale->kernels().size(), 2u);
  const int64_t before = allocations;
  for (int run = 0; run < 3; ++run)
    ASSERT_TRUE(scale->Run({arguments, arguments}, &workspace).ok());
  EXPECT_EQ(allocations, before);
}

// A program of `count` arguments, of which the last is the output.
std::string SumOf(int count) {
  std::string inputs, sum = "0.0";
  for (int i = 0; i + 1 < count; ++i) {
    absl::StrAppend(&inputs, i == 0 ? "" : ", ", "x", i, ": f32[N]");
    absl::StrAppend(&sum, " + x", i, "[i]");
  }
  return absl::StrCat("program total(", inputs, ") -> (y: f32[N]) { for i in [0, N) { y[i] = ", sum,
                      " } }");
}

double NanosecondsOfACall(int arguments) {
  const auto executable =
      MustCompile(arguments == 1 ? "program one() -> (y: f32[2]) { for i in [0, 2) { y[i] = 1.0 } }"
                                 : SumOf(arguments));
  std::vector<Tensor> tensors(arguments, Tensor::Of<float>({2}, {1, 2}));
  std::vector<TensorView> inputs(tensors.begin(), tensors.end() - 1), outputs = {tensors.back()};
  Workspace workspace;
  double best = 1e9;
  constexpr int kCalls = 2000;
  for (int round = 0; round < 20; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) {
      if (!executable->Run({inputs, outputs}, &workspace).ok()) return -1;
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count() / kCalls);
  }
  return best;
}

// The aim is 300 ns, and 20 ns for each argument; a machine may be busy or slow.
TEST(Workspace, ACallTakesLittleTime) {
  for (const int arguments : {1, 3, 10}) {
    const double nanoseconds = NanosecondsOfACall(arguments);
    std::printf("%d arguments: %.0f ns a call\n", arguments, nanoseconds);
    EXPECT_GT(nanoseconds, 0) << "does not run";
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__)
    EXPECT_LT(nanoseconds, 3 * (300 + 20 * arguments)) << arguments;
#endif
  }
}

}  // namespace
}  // namespace nestor::jit
