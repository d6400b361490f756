// Several threads change no bit: parallel loops on a pool, with the threshold so low
// that all of them are cut, and many callers of one executable at once.
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/variant.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "loop_ir/lower.h"
#include "loop_ir/program.h"
#include "loop_ir/text.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

jit::Executor& Pool() {
  static jit::Executor* const pool = jit::NewThreadPool(2).release();
  return *pool;
}

jit::CompileOptions OptionsOf(uint64_t seed) {
  jit::CompileOptions options;
  options.executor = &Pool();
  options.least_parallel_bytes = 0;
  if (seed % 2 == 0) options.streaming_bytes = 1;
  return options;
}

// Several runs: a race shows in some of them.
const JitRunOptions kRuns[] = {
    {}, {}, {GuardedMemory::Side::kBegin, Arrangement::kCompact, /*in_place=*/true}, {}};

Finding CheckSmall(const Op& op, uint64_t seed, Counts& counts) {
  const RandomInputsResult made = RandomInputs(op, seed);
  return CheckCompiled(Lower(op), made.inputs, OptionsOf(seed), kRuns, /*bounded=*/false, counts);
}

Finding CheckLarge(const Op& op, uint64_t seed, Counts& counts) {
  const auto made = DrawLargeInputs(op, seed, 129);
  if (!made) return absl::nullopt;
  return CheckCompiled(Lower(op), made->inputs, OptionsOf(seed), kRuns, /*bounded=*/false, counts);
}

TEST(JitThreads, RandomPrograms) {
  GeneratorOptions options;
  options.nodes = 14;
  TestPrograms("programs on threads", 400, options, CheckSmall);
}

TEST(JitThreads, MacroOps) {
  Counts counts;
  for (const std::string& name : MacroLibrary().OpNames()) {
    SetCurrentCase(name, 1);
    const Op op = LibraryOp(name).value();
    Finding finding = CheckLarge(op, 1, counts);
    EXPECT_FALSE(finding.has_value()) << name << ": " << *finding;
    const auto gradient = Gradient(op);
    if (!gradient.ok()) continue;
    finding = CheckLarge(gradient->op, 1, counts);
    EXPECT_FALSE(finding.has_value()) << name << ", gradient: " << *finding;
  }
  EXPECT_GT(counts.programs, 20);
}

// A pool of each size gives the same bits, in fast mode, too.
TEST(JitThreads, TheNumberOfThreadsChangesNothing) {
  for (const char* const text : {
           "op f(x: f32[M, N]) -> (y) { y[i] = sum[k](x[i, k] * x[i, k]) }",
           "op f(x: f32[M, N]) -> (y) { y[k] = sum[i](x[i, k]) }",
           "op f(x: f32[M, N]) -> (y) { y = sum[i, k](x[i, k]) }",
           "op f(x: f32[M, N]) -> (y) { m[i] = max[k](x[i, k])\n y[i, k] = exp(x[i, k] - m[i]) }",
       }) {
    const Op op = Parse(text).value();
    std::mt19937_64 random(1);
    for (const Dims& shape : {Dims{1, 1000}, Dims{33, 65}, Dims{1000, 3}}) {
      const Tensor x = DrawTensor(DType::kF32, shape, random);
      RunInputs inputs;
      inputs.tensors["x"] = x;
      absl::optional<std::vector<Tensor>> first;
      for (const int threads : {1, 2, 3, 7}) {
        const std::unique_ptr<jit::Executor> pool = jit::NewThreadPool(threads);
        jit::CompileOptions options = OptionsOf(1);
        options.executor = pool.get();
        const auto executable = jit::Compile(Lower(op), options).value();
        for (int run = 0; run < 3; ++run) {
          const Results got = RunJit(*executable, inputs);
          ASSERT_TRUE(got.ok()) << got.status();
          if (!first) first = *got;
          EXPECT_EQ(FirstDifference((*got)[0], (*first)[0]).value_or(""), "")
              << text << ", " << threads << " threads";
        }
      }
    }
  }
}

bool MultipliesAndAdds(const loop::Program& program, const loop::Item& item) {
  const auto* statement = item.As<loop::Statement>();
  bool found = false;
  if (statement == nullptr) return found;
  VisitValues(program, statement->value, [&](loop::ValueId, const loop::Value& value) {
    const auto* apply = absl::get_if<loop::ApplyValue>(&value.node);
    found = found || (apply != nullptr && apply->op == ScalarOp::kFma);
  });
  return found;
}

// The loops around products are parallel, however the results' rows lie: in place, merged in a
// temporary that a product reads, with others between them, or in strips with
// several products each.
TEST(JitThreads, ProductsRunOnAllThreads) {
  constexpr absl::string_view kWindows =
      "  z[n, o, h, v] = sum[c, q, r](x[n, c, h + q - 1, v + r - 1 | 0] * w[o, c, q, r]) where o < O, h < H, v < W\n";
  constexpr absl::string_view kArguments =
      "op f(x: f32[1, C, H, W], w: f32[O, C, 3, 3], u: f32[K, O], t: f32[L, K]) -> (y) {\n";
  const auto of_windows = [&](absl::string_view rest) {
    return absl::StrCat(kArguments, kWindows, rest);
  };
  for (
      const std::string& text : {
          of_windows("  y[n, o, h, v] = max(z[n, o, h, v], 0.0)\n}\n"),
          of_windows("  p[n, k, h, v] = sum[o](u[k, o] * z[n, o, h, v])\n"
                     "  y[n, l, h, v] = sum[k](t[l, k] * p[n, k, h, v])\n}\n"),
          of_windows("  p[n, k, h, v] = sum[o](u[k, o] * z[n, o, h, v])\n"
                     "  y[n, k, 2*h, 2*v]: f32[1, K, 2*H, 2*W] += p[n, k, h, v]\n}\n"),
          // A single head: strips of rows.
          std::string(
              "op f(q: f32[L, D], k: f32[S, D], v: f32[S, E]) -> (y) { y = attention(q, k, v) }"),
          std::string(
              "op f(q: f32[1, L, D], k: f32[1, S, D], v: f32[1, S, E]) -> (y) { y = causal_attention(q, k, v) }"),
      }) {
    const loop::Program program = jit::Schedule(Lower(Parse(text).value()), {}).value();
    int products = 0;
    for (const loop::Item& item : program.body) {
      bool found = false;
      VisitItems(
          item, [&](const loop::Item& each) { found = found || MultipliesAndAdds(program, each); });
      if (!found) continue;
      ++products;
      EXPECT_TRUE(item.As<loop::Loop>()->attributes.parallel) << text << ToText(program);
    }
    EXPECT_GT(products, 0) << text;
  }
}

// Each caller has its own workspace, shapes and layouts, some of them new to all.
TEST(JitThreads, ManyCallersOfOneExecutable) {
  const Op op =
      Parse("op f(x: f32[M, N], w: f32[N]) -> (y) { y[i, k] = x[i, k] * w[k] + w[0] }").value();
  const auto executable =
      std::shared_ptr<const jit::Executable>(jit::Compile(Lower(op), OptionsOf(0)).value());
  const auto call = [&](int caller) -> Finding {
    std::mt19937_64 random(static_cast<uint64_t>(caller));
    jit::Workspace workspace;
    for (int i = 0; i < 40; ++i) {
      const Dims shape = {static_cast<int64_t>(1 + random() % 9),
                          static_cast<int64_t>(1 + random() % 40)};
      const Tensor x = DrawTensor(DType::kF32, shape, random),
                   w = DrawTensor(DType::kF32, {shape[1]}, random);
      std::vector<GuardedMemory> memory;
      const Arrangement arrangement = kArrangements[random() % std::size(kArrangements)];
      RunInputs inputs;
      inputs.tensors["x"] = Arranged(x, arrangement, memory);
      inputs.tensors["w"] = w;
      JitRunOptions run;
      run.workspace = &workspace;
      Counts counts;
      const Results want = nestor::Run(executable->program(), inputs),
                    got = RunJit(*executable, inputs, run);
      const Finding finding = Compare(want, got, Name(arrangement), counts);
      if (finding) return absl::StrCat("caller ", caller, ", call ", i, ": ", *finding);
    }
    return absl::nullopt;
  };
  std::vector<Finding> findings(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { findings[t] = call(t); });
  for (std::thread& thread : threads) thread.join();
  for (const Finding& finding : findings) EXPECT_FALSE(finding.has_value()) << *finding;
}

class CountingExecutor : public jit::Executor {
 public:
  int NumThreads() const override { return 2; }
  void Run(int64_t count, absl::FunctionRef<void(int, int64_t)> task) override {
    ++runs_;
    for (int64_t i = 0; i < count; ++i) task(static_cast<int>(i % 2), i);
  }
  int runs() const { return runs_; }

 private:
  int runs_ = 0;
};

// Even work on few bytes is shared out, if it computes much with them.
TEST(JitThreads, WorkIsSharedOutWhereItPays) {
  const struct {
    const char* text;
    Dims shape;
    bool shared;
  } kCases[] = {
      {"op f(x: f32[M, K]) -> (y) { y[i, j] = sum[k](x[i, k] * x[j, k]) }", {100, 128}, true},
      {"op f(x: f32[M, K]) -> (y) { y[i, j] = sum[k](x[i, k] * x[j, k]) }", {30, 128}, false},
      {"op f(x: f32[M, K]) -> (y) { y[i, k] = 2*x[i, k] }", {100, 128}, false},
      {"op f(x: f32[M, K]) -> (y) { y[i, k] = 2*x[i, k] }", {1000, 128}, true},
  };
  for (const auto& c : kCases) {
    CountingExecutor executor;
    jit::CompileOptions options;
    options.executor = &executor;
    const auto executable = jit::Compile(Lower(Parse(c.text).value()), options).value();
    std::mt19937_64 random(1);
    RunInputs inputs;
    inputs.tensors["x"] = DrawTensor(DType::kF32, c.shape, random);
    ASSERT_TRUE(RunJit(*executable, inputs, {}).ok());
    EXPECT_EQ(executor.runs() > 0, c.shared) << c.text << " of " << c.shape[0];
  }
}

}  // namespace
}  // namespace nestor
