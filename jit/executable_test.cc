// The contract of Run and Bind: what they refuse, by a Status that names it and before
// anything is written, and what a workspace carries from call to call.
#include "jit/executable.h"

#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/cpu_features.h"
#include "jit/runtime/cpu_features_testing.h"
#include "jit/runtime/executor.h"
#include "loop_ir/text.h"
#include "tensor/tensor.h"

namespace nestor::jit {
namespace {

using Dimensions = absl::flat_hash_map<std::string, int64_t>;

std::unique_ptr<const Executable> MustCompile(const std::string& text) {
  CompileOptions options;
  options.executor = &InlineExecutor();
  auto executable = CompileScheduled(loop::ParseProgram(text).value(), options);
  EXPECT_TRUE(executable.ok()) << executable.status();
  return *std::move(executable);
}

void ExpectSaid(const absl::Status& status, absl::StatusCode code,
                const std::vector<const char*>& words, const std::string& where) {
  EXPECT_EQ(status.code(), code) << where << ": " << status;
  for (const char* word : words) {
    EXPECT_TRUE(absl::StrContains(status.message(), word))
        << where << ": lacks '" << word << "': " << status;
  }
}

// ---- What Run refuses

constexpr char kAffine[] = R"(program affine(
    a: f32[N, C], b: f64[C], i: i64[C], s: shape f32[2*D]; $k: f32 = 1.0, $m: i64 = 1 in [1, 8])
    -> (y: f32[N, C], z: f64[D]) {
  for n in [0, N) { for c in [0, C) { y[n, c] = a[n, c] * $k + f32(b[c]) } }
  for d in [0, D) { z[d] = b[i[0]] }
})";

// A correct call of affine: N = 2, C = 3, D = 5.
struct Call {
  std::vector<double> memory = std::vector<double>(200, 1.0);
  std::vector<TensorView> inputs, outputs;
  std::vector<Scalar> params = {Scalar::Float(DType::kF32, 1.0), Scalar::I64(1)};
  Dimensions dims = {{"D", 5}};

  Call() {
    std::memset(&memory[32], 0, 8 * 3);  // of i
    inputs = {View(DType::kF32, 0, {2, 3}), View(DType::kF64, 16, {3}), View(DType::kI64, 32, {3}),
              View(DType::kF32, 48, {10})};
    outputs = {View(DType::kF32, 64, {2, 3}), View(DType::kF64, 80, {5})};
  }
  TensorView View(DType type, int place, const Dims& shape) {
    return ViewOf(type, &memory[place], shape);
  }
  char* At(int place) { return reinterpret_cast<char*>(&memory[place]); }
  absl::Status Run(const Executable& executable, Workspace* workspace) const {
    return executable.Run({inputs, outputs, params, &dims}, workspace);
  }
};

struct BadCall {
  const char* name;
  std::function<void(Call&)> break_it;
  std::vector<const char*> words;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

const BadCall kBadCalls[] = {
    // clang-format off
    {"an input less", [](Call& c) { c.inputs.pop_back(); }, {"affine", "3 inputs given, 4 wanted"}},
    {"an input more", [](Call& c) { c.inputs.push_back(c.inputs[0]); }, {"5 inputs given"}},
    {"no inputs", [](Call& c) { c.inputs.clear(); }, {"0 inputs given"}},
    {"an output less", [](Call& c) { c.outputs.pop_back(); }, {"1 outputs given, 2 wanted"}},
    {"an output more", [](Call& c) { c.outputs.push_back(c.outputs[1]); }, {"3 outputs given"}},
    {"an output as an input",
     [](Call& c) { c.inputs.push_back(c.outputs[0]); c.outputs.erase(c.outputs.begin()); }, {"5 inputs given"}},
    {"a $param less", [](Call& c) { c.params.pop_back(); }, {"1 $params given, 2 wanted"}},
    {"a $param that does not fit",
     [](Call& c) { c.params[1] = Scalar::Float(DType::kF64, 1.0); }, {"$m", "i64"}},
    {"a $param out of range", [](Call& c) { c.params[1] = Scalar::I64(9); }, {"$m", "9"}},
    {"a dimension missing", [](Call& c) { c.dims.clear(); }, {"D"}},
    {"an unknown dimension", [](Call& c) { c.dims["Q"] = 1; }, {"Q"}},
    {"a negative dimension", [](Call& c) { c.dims["D"] = -5; }, {"D", "-5"}},
    {"a dimension that contradicts", [](Call& c) { c.dims["C"] = 4; }, {"C", "3", "4"}},
    {"an output beyond memory",
     [](Call& c) { c.dims["D"] = int64_t{1} << 62; c.outputs[1].shape = {int64_t{1} << 62}; }, {"D", "exceeds"}},
    {"an input's type", [](Call& c) { c.inputs[1].type = DType::kF32; }, {"b", "f32", "f64"}},
    {"an input's rank", [](Call& c) { c.inputs[1] = c.View(DType::kF64, 16, {1, 3}); }, {"b"}},
    {"an input's size", [](Call& c) { c.inputs[1].shape = {4}; }, {"b", "C", "3", "4"}},
    {"an input's negative extent", [](Call& c) { c.inputs[0].shape = {-2, 3}; }, {"a", "-2"}},
    {"an input's strides", [](Call& c) { c.inputs[0].strides = {1}; }, {"a", "strides"}},
    {"an input whose size overflows",
     [](Call& c) { c.inputs[0].shape = {int64_t{1} << 62, 3}; }, {"a", "overflow"}},
    {"an input whose offsets overflow",
     [](Call& c) { c.inputs[0].strides = {int64_t{1} << 62, 1}; }, {"a", "overflow"}},
    {"an input without memory", [](Call& c) { c.inputs[0].data = nullptr; }, {"a", "no memory"}},
    {"an input at an odd address",
     [](Call& c) { c.inputs[0].data = c.At(0) + 2; }, {"input a", "multiple of 4"}},
    {"a wider input at an odd address",
     [](Call& c) { c.inputs[1].data = c.At(16) + 4; }, {"input b", "multiple of 8"}},
    {"an output's type",
     [](Call& c) { c.outputs[0].type = DType::kI32; }, {"output y", "i32", "f32"}},
    {"an output's rank",
     [](Call& c) { c.outputs[0] = c.View(DType::kF32, 64, {6}); }, {"output y", "[6]", "[2, 3]"}},
    {"an output's size", [](Call& c) { c.outputs[1].shape = {4}; }, {"output z", "[4]", "[5]"}},
    {"an output's strides", [](Call& c) { c.outputs[0].strides = {}; }, {"output y", "strides"}},
    {"an output without memory",
     [](Call& c) { c.outputs[0].data = nullptr; }, {"output y", "no memory"}},
    {"an output at an odd address",
     [](Call& c) { c.outputs[1].data = c.At(80) + 1; }, {"output z", "multiple of 8"}},
    {"an output in one place",
     [](Call& c) { c.outputs[1].strides = {0}; }, {"output z", "share memory"}},
    {"an output whose rows meet",
     [](Call& c) { c.outputs[0].strides = {2, 1}; }, {"output y", "share memory"}},
    {"an output over an input",
     [](Call& c) { c.outputs[1].data = c.At(17); }, {"output z", "overlaps", " b"}},
    {"an output over one that may not be in place",
     [](Call& c) { c.outputs[1].data = c.At(32); }, {"output z", "overlaps", " i"}},
    {"an output over part of what it may replace",
     [](Call& c) { c.outputs[0].data = c.At(0) + 4; }, {"output y", "overlaps", " a"}},
    {"an output over what it may replace, of other strides",
     [](Call& c) { c.outputs[0].data = c.At(0); c.outputs[0].strides = {1, 2}; }, {"output y", "overlaps", " a"}},
    {"outputs over each other",
     [](Call& c) { c.outputs[1].data = c.At(66); }, {"output z", "overlaps", " y"}},
    {"an index out of range",
     [](Call& c) { c.memory[32] = 1e300; }, {"affine", "z[d] = b[i[0] checked loads checked]"}, absl::StatusCode::kOutOfRange},
    // clang-format on
};

TEST(Executable, RefusesWhatDoesNotFitAndWritesNothing) {
  const auto affine = MustCompile(kAffine);
  for (const bool prepared : {false, true}) {
    for (const BadCall& bad : kBadCalls) {
      const std::string where = absl::StrCat(bad.name, prepared ? ", behind a good call" : "");
      Workspace workspace;
      Call call;
      if (prepared) {
        EXPECT_TRUE(call.Run(*affine, &workspace).ok()) << where;
      }
      bad.break_it(call);
      const std::vector<double> before = call.memory;
      ExpectSaid(call.Run(*affine, &workspace), bad.code, bad.words, where);
      if (bad.code != absl::StatusCode::kOutOfRange) {
        EXPECT_EQ(std::memcmp(before.data(), call.memory.data(), before.size() * sizeof(double)), 0)
            << where;
      }
      // A failed call leaves no trace.
      const absl::Status again = Call().Run(*affine, &workspace);
      EXPECT_TRUE(again.ok()) << where << ": " << again;
    }
  }
}

TEST(Executable, RunsInPlaceWhereItSays) {
  const auto affine = MustCompile(kAffine);
  ASSERT_EQ(affine->aliases().size(), 1u);
  EXPECT_EQ(affine->aliases()[0], std::make_pair(0, 0));
  Workspace workspace;
  Call call;
  call.outputs[0].data = call.inputs[0].data;
  for (int i = 0; i < 6; ++i) static_cast<float*>(call.inputs[0].data)[i] = static_cast<float>(i);
  ASSERT_TRUE(call.Run(*affine, &workspace).ok());
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(static_cast<float*>(call.outputs[0].data)[i], static_cast<float>(i + 1));
}

TEST(Executable, TemporariesBeyondMemoryAreAStatus) {
  const auto wide = MustCompile(R"(program wide(x: f32[A], s: shape f32[B]) -> (y: f32[A]) {
    temp t: f32[A, 1073741824*B]
    for i in [0, A) { t[i, 0] = x[i] }
    for i in [0, A) { y[i] = t[i, 0] }
  })");
  const Tensor x = Tensor::Of<float>({2}, {1, 2});
  const Tensor small = Tensor::Of<float>({0}, {});
  for (const int64_t extent : {int64_t{1} << 16, int64_t{1} << 30, int64_t{1} << 40}) {
    Tensor y = x;
    TensorView shape_only = small.view();
    shape_only.shape = {extent};
    shape_only.data = y.data();
    Workspace workspace;
    const absl::Status status = wide->Run({{x, shape_only}, {y}}, &workspace);
    EXPECT_FALSE(status.ok()) << extent;
    EXPECT_TRUE(BitEqual(x, y)) << extent;
  }
}

TEST(Executable, SaysWhatTheCpuLacks) {
  const LackForTesting lack("AVX512VL");
  CompileOptions options;
  options.isa = Isa::kAvx512;
  ExpectSaid(CompileScheduled(loop::ParseProgram(kAffine).value(), options).status(),
             absl::StatusCode::kFailedPrecondition, {"avx512", "lacks", "AVX512VL"}, "avx512");
}

// A sum of gated products that becomes NaN starts again with the gates (docs/jit.md), even if its
// terms are copied beside it, but not if they are overwritten.
TEST(Executable, SumsOfGatedProductsStartAgain) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto run = [&](const std::string& beside) {
    const auto executable = MustCompile(
        absl::StrCat(R"(program p(a: f32[2], b: f32[2, 8]) -> (y: f32[8], z: f32[2, 8]) {
  temp d: f32[2, 8] temp e: f32[2, 8]
  for m in [0, 2) { for l in [0, 8) vector { d[m, l] = b[m, l] e[m, l] = 7.0 } }
  for p in [0, 1) {
    temp tile: f32[1, 8] register
    for l in [0, 8) vector { tile[0, l] = 0.0 }
    for m in [0, 2) {
      for l in [0, 8) vector { tile[0, l] = tile[0, l] + mulz(a[m], d[m, l]) }
      for l in [0, 8) vector { )",
                     beside, R"( }
    }
    for l in [0, 8) vector { y[l] = tile[0, l] }
  }
  for m in [0, 2) { for l in [0, 8) vector { z[m, l] = e[m, l] } }
})"));
    Tensor a = Tensor::Of<float>({2}, {0, 2}),
           b = Tensor::Of<float>({2, 8}, std::vector<float>(16, 3));
    b.values<float>()[0] = kInf;
    Tensor y = Tensor::Of<float>({8}, std::vector<float>(8)),
           z = Tensor::Of<float>({2, 8}, std::vector<float>(16));
    Workspace workspace;
    const absl::Status status = executable->Run({{a, b}, {y, z}}, &workspace);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(FirstDifference(y, Tensor::Of<float>({8}, std::vector<float>(8, 6))).value_or(""), "")
        << beside;
    return z.values<float>()[8];
  };
  EXPECT_EQ(run("e[m, l] = d[m, l]"), 3);
  EXPECT_EQ(run("d[m, l] = e[m, l]"), 7);
}

// ---- Bind

constexpr char kThree[] = R"(program three(a: f32[N], b: f32[N], c: f32[N]) -> (y: f32[N]) {
  for i in [0, N) { y[i] = a[i] + 10.0 * b[i] + 100.0 * c[i] }
})";

TEST(Executable, BindLeavesInputsOut) {
  const Tensor a = Tensor::Of<float>({2}, {1, 2}), b = Tensor::Of<float>({2}, {3, 4});
  const Tensor c = Tensor::Of<float>({2}, {5, 6});
  const Tensor want = Tensor::Of<float>({2}, {531, 642});
  auto three = MustCompile(kThree);
  const auto run = [&](const Executable& executable, const std::vector<TensorView>& inputs) {
    Workspace workspace;
    for (int i = 0; i < 2; ++i) {
      Tensor y = Tensor::Of<float>({2}, {-1, -1});
      const absl::Status status = executable.Run({inputs, {y}}, &workspace);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(FirstDifference(y, want).value_or(""), "");
    }
    EXPECT_EQ(executable.OutputShapes(inputs).value(), (std::vector<Dims>{{2}}));
  };
  const char* const names[] = {"a", "b", "c"};
  const Tensor* const values[] = {&a, &b, &c};
  for (int first = 0; first < 3; ++first) {
    auto one = three->Bind(names[first], *values[first]).value();
    EXPECT_EQ(one->inputs().size(), 2u);
    std::vector<TensorView> two_left;
    for (int i = 0; i < 3; ++i) {
      if (i != first) two_left.push_back(*values[i]);
    }
    run(*one, two_left);
    for (int second = 0; second < 3; ++second) {
      if (second == first) continue;
      const auto two = one->Bind(names[second], *values[second]).value();
      const int last = 3 - first - second;
      run(*two, {*values[last]});
      run(*two->Bind(names[last], *values[last]).value(), {});
    }
  }
  run(*three, {a, b, c});
  // It outlives the executable that it came from.
  const auto bound = three->Bind("b", b).value();
  three.reset();
  run(*bound, {a, c});
}

TEST(Executable, BindCopiesAnyLayout) {
  float memory[] = {4, 9, 3, 9, 9};
  TensorView reversed{DType::kF32, {2}, {-2}, memory + 2};
  const auto bound = MustCompile(kThree)->Bind("b", reversed).value();
  std::memset(memory, 0, sizeof memory);
  const Tensor zero = Tensor::Of<float>({2}, {0, 0});
  Tensor y = zero;
  Workspace workspace;
  ASSERT_TRUE(bound->Run({{zero, zero}, {y}}, &workspace).ok());
  EXPECT_EQ(FirstDifference(y, Tensor::Of<float>({2}, {30, 40})).value_or(""), "");
}

// The memory of `t` could be that of `v` if it were not kept for the next run.
constexpr char kPacked[] = R"(program packed(x: f32[N], w: f32[N]; $k: f32 = 1.0) -> (y: f32[N]) {
  temp t: f32[N]
  temp u: f32[N]
  temp v: f32[N]
  for i in [0, N) { t[i] = w[i] * w[i] + $k }
  for i in [0, N) { u[i] = t[i] * x[i] }
  for i in [0, N) { v[i] = u[N - 1 - i] + 1.0 }
  for i in [0, N) { y[i] = v[i] + u[i] }
})";

// The same, with an accumulator that is filled before its loop.
const std::string& Summed() {
  static const auto& text = *new std::string(absl::StrReplaceAll(
      kPacked, {{"temp t: f32[N]", "acc t: f32[N] = sum"}, {"{ t[i] =", "parallel { t[i] +="}}));
  return text;
}

// A call of the first N elements, and how many functions it ran.
class CallsOfPacked {
 public:
  int Run(const Executable& executable, int n, float param, bool poison) {
    int functions = 0;
    const auto count = [&](Kernel::Function function, const int64_t* table, int64_t begin,
                           int64_t end, char* memory) {
      ++functions;
      return function(table, begin, end, memory);
    };
    const Kernel::Caller caller(count);
    std::vector<TensorView> inputs;
    const auto view = [&](std::vector<float>& values) {
      return TensorView{DType::kF32, {n}, {1}, values.data()};
    };
    for (loop::TensorId input : executable.inputs())
      inputs.push_back(view(executable.program()[input].name == "x" ? x : w));
    std::vector<float> y(x.size(), -1);
    const Scalar params[] = {Scalar::Of<float>(DType::kF32, param)};
    const TensorView outputs[] = {view(y)};
    const absl::Status status =
        executable.RunWatched({inputs, outputs, params}, &workspace, {&caller, poison});
    EXPECT_TRUE(status.ok()) << status;
    const auto u = [&](int i) { return (w_now[i] * w_now[i] + param) * x[i]; };
    for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], u(n - 1 - i) + 1 + u(i)) << i << " of " << n;
    return functions;
  }

  std::vector<float> x = {1, 2, 3, 4, 5}, w = {3, 1, 4, 1, 6}, w_now = w;
  Workspace workspace;
};

TEST(Executable, WhatFollowsFromBoundInputsIsKept) {
  for (const auto& [text, poison] : {std::make_pair(std::string(kPacked), false),
                                     {kPacked, true},
                                     {Summed(), false},
                                     {Summed(), true}}) {
    SCOPED_TRACE(text);
    CallsOfPacked calls;
    const auto free = MustCompile(text);
    const auto with_w = [&] {
      return free->Bind("w", TensorView{DType::kF32, {5}, {1}, calls.w_now.data()}).value();
    };
    const auto bound = with_w();
    const int all = calls.Run(*bound, 5, 1, poison);
    const int kept = calls.Run(*bound, 5, 1, poison);
    EXPECT_LT(kept, all);
    calls.x = {6, 7, 8, 9, 1};
    EXPECT_EQ(calls.Run(*bound, 5, 1, poison), kept);
    // A different $param, a different executable in the workspace, different weights.
    EXPECT_EQ(calls.Run(*bound, 5, 2, poison), all);
    EXPECT_EQ(calls.Run(*bound, 5, 2, poison), kept);
    calls.Run(*free, 3, 1, poison);
    EXPECT_EQ(calls.Run(*bound, 5, 2, poison), all);
    calls.w_now = {2, 7, 1, 8, 2};
    const auto other = with_w();
    EXPECT_EQ(calls.Run(*other, 5, 2, poison), all);
    EXPECT_EQ(calls.Run(*other, 5, 2, poison), kept);
    // Inputs that are not bound may change.
    calls.w = calls.w_now;
    const int unbound = calls.Run(*free, 5, 1, poison);
    calls.w = calls.w_now = {5, 5, 5, 1, 1};
    EXPECT_EQ(calls.Run(*free, 5, 1, poison), unbound);
  }
}

TEST(Executable, BindRefusesWhatDoesNotFit) {
  const auto three = MustCompile(kThree);
  const Tensor b = Tensor::Of<float>({2}, {3, 4});
  const auto bound = three->Bind("b", b).value();
  const auto invalid = absl::StatusCode::kInvalidArgument;
  ExpectSaid(three->Bind("d", b).status(), invalid, {"three", "d"}, "unknown");
  ExpectSaid(three->Bind("y", b).status(), invalid, {"three", "y"}, "an output");
  ExpectSaid(bound->Bind("b", b).status(), invalid, {"three", "b"}, "bound");
  ExpectSaid(three->Bind("b", Tensor::Of<double>({2}, {3, 4})).status(), invalid,
             {"b", "f64", "f32"}, "type");
  ExpectSaid(three->Bind("b", Tensor::Of<float>({2, 1}, {3, 4})).status(), invalid, {"b", "[2, 1]"},
             "rank");
  const TensorView nothing{DType::kF32, {2}, {1}, nullptr};
  ExpectSaid(three->Bind("b", nothing).status(), invalid, {"b", "no memory"}, "null");
  Workspace workspace;
  Tensor y = b;
  ExpectSaid(bound->Run({{b, b, b}, {y}}, &workspace), invalid, {"3 inputs given, 2 wanted"},
             "count");
  const Tensor longer = Tensor::Of<float>({3}, {1, 2, 3});
  ExpectSaid(bound->Run({{longer, longer}, {longer}}, &workspace), invalid, {"N", "b", "2", "3"},
             "size");
}

// ---- Workspaces

// One workspace for many executables: some live on, and some are at the address of an earlier one.
TEST(Workspace, KnowsAnExecutableFromTheOneBefore) {
  Workspace workspace;
  const Tensor x = Tensor::Of<float>({3}, {1, 2, 3});
  std::vector<std::unique_ptr<const Executable>> kept;
  for (int factor = 2; factor < 40; ++factor) {
    auto scale = MustCompile(
        absl::StrCat("program scale(x: f32[N]) -> (y: f32[N]) { for i in [0, N) { y[i] = x[i] * ",
                     factor, ".0 } }"));
    Tensor y = x;
    ASSERT_TRUE(scale->Run({{x}, {y}}, &workspace).ok());
    EXPECT_EQ(y.values<float>()[2], 3.0f * static_cast<float>(factor));
    if (factor % 2 == 0) kept.push_back(std::move(scale));
  }
}

TEST(Workspace, FollowsShapesParamsAndDimensions) {
  const auto fill =
      MustCompile(R"(program fill(x: f32[N], s: shape f32[2*D]; $k: f32 = 1.0) -> (y: f32[N, D]) {
    for n in [0, N) { for d in [0, D) { y[n, d] = x[n] * $k } }
  })");
  Workspace workspace;
  for (int round = 0; round < 2; ++round) {
    for (const int64_t n : {1, 2, 3}) {
      for (const int64_t d : {1, 2, 1}) {
        for (const double k : {2.0, 3.0}) {
          const Tensor x = Tensor::Of(DType::kF32, {n}, std::vector<double>(n, 1.0));
          Tensor y = *Tensor::Create(DType::kF32, {n, d});
          const Dimensions dims = {{"D", d}};
          const std::vector<Scalar> params = {Scalar::Float(DType::kF32, k)};
          const TensorView shape = ViewOf(DType::kF32, y.data(), {2 * d});
          ASSERT_TRUE(fill->Run({{x, shape}, {y}, params, &dims}, &workspace).ok());
          EXPECT_TRUE(BitEqual(y, Tensor::Of(DType::kF32, {n, d}, std::vector<double>(n * d, k))));
        }
      }
    }
  }
}

// ---- Parallel loops inside each other

// The product of two negative lengths is positive.
TEST(Executable, RunsNoLoopOfNegativeLength) {
  const auto executable = MustCompile(R"(program p(x: f32[N, M, C]) -> (y: f32[N, M, C]) {
    for i in [0, N) { for j in [0, M) { for k in [0, C) { y[i, j, k] = x[i, j, k] } } }
    for a in [0, N - 5) parallel { for b in [0, M - 5) parallel { for c in [0, C) parallel {
      for d in [0, 1) { y[a, b, c] = 7.0 }
    } } }
  })");
  for (const int64_t n : {2, 5, 6, 7}) {
    for (const int64_t m : {2, 5, 6, 8}) {
      const Tensor x = *Tensor::Create(DType::kF32, {n, m, 3});
      Tensor y = *Tensor::Create(DType::kF32, {n, m, 3});
      const TensorView inputs[] = {x.view()}, outputs[] = {y.view()};
      Workspace workspace;
      ASSERT_TRUE(executable->Run({inputs, outputs}, &workspace).ok());
      for (int64_t i = 0; i < y.num_elements(); ++i) {
        const bool is_changed = i / (3 * m) < n - 5 && i / 3 % m < m - 5;
        EXPECT_EQ(y.values<float>()[static_cast<size_t>(i)], is_changed ? 7 : 0)
            << n << ", " << m << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace nestor::jit
