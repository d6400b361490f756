// Which code calls run: callers notice only its speed.
#include "jit/variants.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/runtime/executor.h"
#include "loop_ir/text.h"
#include "tensor/tensor.h"

namespace nestor::jit {
namespace {

using Sizes = absl::flat_hash_map<std::string, int64_t>;

// A convolution: its index arithmetic has the window and the stride.
constexpr char kWindows[] =
    R"(program windows(x: f32[N], w: f32[K]; $s: i64 = 1 in [1, 100], $f: f32 = 1.0)
    -> (y: f32[(N - K)/$s + 1]) {
  domain d < (N - K)/$s + 1, d_2 < K: d*$s + d_2
  for i in [0, (N - K)/$s + 1) {
    acc a: f32 = sum
    for k in [0, K) { a += x[i*$s + k] * w[k] }
    y[i] = a * $f
  }
})";

CompileOptions Forced(int variants = 16) {
  CompileOptions options;
  options.executor = &InlineExecutor();
  options.size_classes.least_work = 0;
  options.size_classes.variants = variants;
  return options;
}

std::unique_ptr<const Executable> MustCompile(const std::string& text,
                                              const CompileOptions& options) {
  auto executable = Compile(loop::ParseProgram(text).value(), options);
  EXPECT_TRUE(executable.ok()) << executable.status();
  return *std::move(executable);
}

Tensor Drawn(int64_t n) {
  Tensor tensor = *Tensor::Create(DType::kF32, {n});
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(tensor.data())[i] = static_cast<float>(i * i % 17) / 7.0f - 1.0f;
  return tensor;
}

// A call of windows.
struct Call {
  int64_t n, k, s;

  absl::StatusOr<Tensor> Run(const Executable& executable, Workspace* workspace = nullptr) const {
    const Tensor x = Drawn(n), w = Drawn(k);
    Tensor y = *Tensor::Create(DType::kF32, {(n - k) / s + 1});
    const std::vector<Scalar> params = {Scalar::I64(s), Scalar::Float(DType::kF32, 3.0)};
    Workspace own;
    const absl::Status status =
        executable.Run({{x, w}, {y}, params}, workspace != nullptr ? workspace : &own);
    if (!status.ok()) return status;
    return y;
  }
};

void ExpectSame(const absl::StatusOr<Tensor>& got, const absl::StatusOr<Tensor>& want,
                const std::string& where) {
  ASSERT_TRUE(got.ok()) << where << ": " << got.status();
  ASSERT_TRUE(want.ok()) << where << ": " << want.status();
  EXPECT_EQ(FirstDifference(*got, *want).value_or(""), "") << where;
}

size_t NumKernels(const Executable& executable) { return executable.kernels().size(); }

// ---- When

TEST(Variants, OfClassesOfSizes) {
  const auto windows = MustCompile(kWindows, Forced());
  EXPECT_EQ(NumKernels(*windows), 1u);
  const struct {
    Call call;
    size_t kernels;  // all that there are after it
  } kCalls[] = {
      {{100, 3, 1}, 2},  {{200, 3, 1}, 2}, {{100, 3, 2}, 3},   {{100, 20, 2}, 4},
      {{100, 30, 2}, 4}, {{100, 3, 1}, 4}, {{100, 30, 20}, 4}, {{16, 3, 1}, 5},
  };
  for (const auto& c : kCalls) {
    ASSERT_TRUE(c.call.Run(*windows).ok());
    EXPECT_EQ(NumKernels(*windows), c.kernels) << c.call.n << " " << c.call.k << " " << c.call.s;
  }
}

// A call that computes little is not worth compiling for, and neither is one with long windows.
TEST(Variants, OfCallsThatComputeMuch) {
  CompileOptions options;
  options.executor = &InlineExecutor();
  // No call has code of its own just for being large.
  options.prefetching_bytes = int64_t{1} << 40;
  const auto windows = MustCompile(kWindows, options);
  for (const Call& call : {Call{100, 3, 1}, Call{5000, 3, 1}, Call{400000, 17, 17}}) {
    ASSERT_TRUE(call.Run(*windows).ok());
    EXPECT_EQ(NumKernels(*windows), 1u);
  }
  ASSERT_TRUE((Call{25000, 3, 1}.Run(*windows).ok()));
  EXPECT_EQ(NumKernels(*windows), 2u);
}

TEST(Variants, AreNoneOfScheduledPrograms) {
  const auto windows = CompileScheduled(loop::ParseProgram(kWindows).value(), Forced()).value();
  ASSERT_TRUE((Call{100, 3, 1}.Run(*windows).ok()));
  EXPECT_EQ(NumKernels(*windows), 1u);
}

TEST(Variants, KernelAtIsWhatRuns) {
  const auto windows = MustCompile(kWindows, Forced());
  const auto at = [&](const Sizes& sizes) {
    return windows
        ->KernelAt([&](const std::string& name) { return absl::make_optional(sizes.at(name)); })
        .value();
  };
  EXPECT_EQ(at({{"N", 100}, {"K", 30}, {"$s", 20}}).get(), &windows->kernel());
  const auto variant = at({{"N", 100}, {"K", 3}, {"$s", 2}});
  EXPECT_NE(variant.get(), &windows->kernel());
  const std::string text = loop::ToText(variant->program());
  EXPECT_TRUE(absl::StrContains(text, "x: f32[N], w: f32[3]")) << text;
  ASSERT_TRUE((Call{100, 3, 2}.Run(*windows).ok()));
  EXPECT_EQ(NumKernels(*windows), 2u) << "another one ran";
  EXPECT_EQ(windows->code_bytes(), windows->kernel().code_bytes() + variant->code_bytes());
}

// Large arguments have code of their own at the same sizes.
TEST(Variants, KernelAtKnowsWhereArgumentsLie) {
  CompileOptions options = Forced();
  options.prefetching_bytes = 8000;
  options.streaming_bytes = 80000;
  const auto doubled = MustCompile(
      "program doubled(x: f32[N]) -> (y: f32[N]) { for i in [0, N) { y[i] = x[i] + x[i] } }",
      options);
  const auto text_at = [&](int64_t length) {
    return loop::ToText(
        doubled->KernelAt([&](const std::string&) { return absl::make_optional(length); })
            .value()
            ->program());
  };
  EXPECT_FALSE(absl::StrContains(text_at(999), "prefetch"));
  EXPECT_TRUE(absl::StrContains(text_at(1000), "prefetch")) << text_at(1000);
  EXPECT_FALSE(absl::StrContains(text_at(9999), "stream"));
  EXPECT_TRUE(absl::StrContains(text_at(10000), "stream")) << text_at(10000);
}

// ---- Merged axes

// All points of an image are computed alike.
constexpr char kPoints[] = R"(program points(x: f32[N, H, W], s: f32[N]) -> (y: f32[N, H, W]) {
  for n in [0, N) { for h in [0, H) { for w in [0, W) { y[n, h, w] = x[n, h, w] * s[n] } } }
})";

Tensor DrawnImages(const Dims& dims) {
  Tensor images = *Tensor::Create(DType::kF32, dims);
  const Tensor drawn = Drawn(dims[0] * dims[1] * dims[2]);
  std::memcpy(images.data(), drawn.data(), static_cast<size_t>(4 * dims[0] * dims[1] * dims[2]));
  return images;
}

TEST(Variants, MergeShortRows) {
  const auto points = MustCompile(kPoints, Forced());
  const auto at = [&](const Sizes& sizes) {
    return points
        ->KernelAt([&](const std::string& name) { return absl::make_optional(sizes.at(name)); })
        .value();
  };
  EXPECT_EQ(at({{"N", 3}, {"H", 4}, {"W", 256}}).get(), &points->kernel());
  const auto variant = at({{"N", 3}, {"H", 4}, {"W", 255}});
  const std::string text = loop::ToText(variant->program());
  EXPECT_TRUE(absl::StrContains(text, "x: f32[N, H*W], s: f32[N]) -> (y: f32[N, H*W])")) << text;
}

// The rows of all batches are rows of one product, where they are few in each. The last axes are
// long.
TEST(Variants, MergeFewRowsOfBatches) {
  CompileOptions options = Forced();
  options.prefetching_bytes = int64_t{1} << 40;  // one kernel for all sizes of arguments
  const auto layer = MustCompile(
      R"(program layer(x: f32[B, T, K], w: f32[K, N]) -> (y: f32[B, T, N]) {
    for b in [0, B) { for t in [0, T) { for j in [0, N) {
      acc s: f32 = sum
      for k in [0, K) { s += x[b, t, k] * w[k, j] }
      y[b, t, j] = s
    } } }
  })",
      options);
  const auto at = [&](int64_t rows) {
    const Sizes sizes = {{"B", 9}, {"T", rows}, {"K", 300}, {"N", 300}};
    return layer
        ->KernelAt([&](const std::string& name) { return absl::make_optional(sizes.at(name)); })
        .value();
  };
  const std::string text = loop::ToText(at(20)->program());
  EXPECT_TRUE(absl::StrContains(text, "x: f32[B*T, K]")) << text;
  EXPECT_EQ(at(300).get(), &layer->kernel());
}

// Calls with arguments that are not compact run the same code as before.
TEST(Variants, MergeAxesOfCompactArguments) {
  const auto points = MustCompile(kPoints, Forced()),
             general = MustCompile(kPoints, Forced(/*variants=*/0));
  const Tensor x = DrawnImages({3, 5, 7}), s = Drawn(3);
  TensorView turned = x.view();
  std::swap(turned.strides[1], turned.strides[2]);
  std::swap(turned.shape[1], turned.shape[2]);
  const struct {
    TensorView x;
    size_t kernels;  // all that there are after it
  } kCalls[] = {{x.view(), 2}, {turned, 3}};
  for (const auto& call : kCalls) {
    Tensor got = *Tensor::Create(DType::kF32, call.x.shape),
           want = *Tensor::Create(DType::kF32, call.x.shape);
    Workspace workspace, other;
    ASSERT_TRUE(points->Run({{call.x, s}, {got}}, &workspace).ok());
    ASSERT_TRUE(general->Run({{call.x, s}, {want}}, &other).ok());
    ExpectSame(got, want, ShapeText(call.x.shape));
    EXPECT_EQ(NumKernels(*points), call.kernels);
  }
}

// Nothing is compiled for short rows if there are no axes to merge.
TEST(Variants, MergeNothing) {
  const auto rows = MustCompile(R"(program rows(x: f32[N, C], w: f32[C]) -> (y: f32[N, C]) {
    for n in [0, N) { for c in [0, C) { y[n, c] = x[n, c] * w[c] } }
  })",
                                Forced());
  const Sizes sizes = {{"N", 100}, {"C", 10}};
  const auto kernel =
      rows->KernelAt([&](const std::string& name) { return absl::make_optional(sizes.at(name)); });
  EXPECT_EQ(kernel.value().get(), &rows->kernel());
}

// ---- Which bits

// They do so whatever was called before, by whom, and whether its code is still kept.
TEST(Variants, EqualCallsGiveEqualBits) {
  const auto bounded = MustCompile(kWindows, Forced(/*variants=*/2));
  Workspace kept;  // of the first class, whose code is dropped
  const Call first{1000, 2, 1};
  const absl::StatusOr<Tensor> before = first.Run(*bounded, &kept);
  for (int round = 0; round < 2; ++round) {
    for (int64_t k = 2; k < 20; ++k) {
      for (int64_t s : {1, 3, 20}) {
        const Call call{1000, k, s};
        const auto fresh = MustCompile(kWindows, Forced());
        ExpectSame(call.Run(*bounded), call.Run(*fresh), absl::StrCat("K = ", k, ", $s = ", s));
        EXPECT_LE(NumKernels(*bounded), 3u);
        ExpectSame(first.Run(*bounded, &kept), before, "kept");
      }
    }
  }
  ExpectSame(first.Run(*bounded), before, "compiled again");
}

// A workspace may outlive the code that it has run.
TEST(Variants, LiveAsLongAsTheirUsers) {
  auto windows = MustCompile(kWindows, Forced(/*variants=*/1));
  Workspace workspace;
  ASSERT_TRUE((Call{100, 3, 1}.Run(*windows, &workspace).ok()));
  const auto kernels = windows->kernels();
  ASSERT_TRUE((Call{100, 4, 1}.Run(*windows).ok()));
  windows.reset();
  for (const auto& kernel : kernels) EXPECT_GT(kernel->code_bytes(), 0);
  const auto other = MustCompile(kWindows, Forced());
  ExpectSame(Call{100, 3, 1}.Run(*other, &workspace), Call{100, 3, 1}.Run(*other), "in turn");
}

TEST(Variants, FirstCallsOfManyThreads) {
  const auto windows = MustCompile(kWindows, Forced(/*variants=*/3));
  std::vector<Tensor> wants;
  for (int64_t k = 1; k <= 6; ++k)
    wants.push_back(Call{500, k, 2}.Run(*MustCompile(kWindows, Forced())).value());
  std::atomic<int> wrong{0};
  const auto calls = [&](int64_t thread) {
    Workspace workspace;
    for (int64_t i = 0; i < 60; ++i) {
      const int64_t k = 1 + (i / 3 * (thread + 1)) % 6;
      const auto got = Call{500, k, 2}.Run(*windows, &workspace);
      wrong += !got.ok() || !BitEqual(*got, wants[static_cast<size_t>(k - 1)]);
    }
  };
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) threads.emplace_back(calls, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(NumKernels(*windows), 4u);
}

// ---- Legal calls

// A Status does not say which code would have run.
TEST(Variants, RefuseWhatTheGeneralCodeRefuses) {
  const auto general = MustCompile(kWindows, Forced(/*variants=*/0)),
             forced = MustCompile(kWindows, Forced());
  const Tensor x = Drawn(8), w = Drawn(3), y = Drawn(6);
  const Tensor wrong = Drawn(5), longer = Drawn(9);
  const auto params = [](int64_t s) {
    return std::vector<Scalar>{Scalar::I64(s), Scalar::Float(DType::kF32, 1.0)};
  };
  TensorView odd = y.view();
  odd.data = static_cast<char*>(odd.data) + 1;
  const Sizes contradiction = {{"K", 4}}, unknown = {{"Q", 1}};
  const struct {
    std::vector<TensorView> inputs, outputs;
    std::vector<Scalar> params;
    const Sizes* dims = nullptr;
  } kCalls[] = {
      {{x}, {y}, params(1)},         {{x, w, w}, {y}, params(1)},
      {{x, w}, {wrong}, params(1)},  {{x, w}, {y}, params(2)},
      {{x, w}, {y}, params(0)},      {{x, w}, {y}, params(101)},
      {{w, longer}, {y}, params(1)}, {{x, w}, {odd}, params(1)},
      {{x, w}, {w}, params(1)},      {{x, y}, {w}, params(1)},
      {{x, w}, {y}, {}, &unknown},   {{x, w}, {y}, {}, &contradiction},
      {{x, w}, {x}, params(1)},      {{x, w}, {y}, {Scalar::I64(1)}},
      {{x, x}, {x}, params(1)},
  };
  int refused = 0;
  for (const auto& c : kCalls) {
    Workspace one, other;
    const absl::Status want = general->Run({c.inputs, c.outputs, c.params, c.dims}, &one);
    ASSERT_TRUE((Call{8, 3, 1}.Run(*forced, &other).ok()));  // if its class is known
    EXPECT_EQ(forced->Run({c.inputs, c.outputs, c.params, c.dims}, &other), want);
    refused += !want.ok();
  }
  EXPECT_EQ(refused, 14);
  EXPECT_EQ(forced->aliases(), general->aliases());
  EXPECT_EQ(forced->OutputShapes({x, w}, params(2)).value(),
            general->OutputShapes({x, w}, params(2)).value());
}

TEST(Variants, AreSharedByBoundExecutables) {
  const auto windows = MustCompile(kWindows, Forced());
  const Tensor w = Drawn(3), x = Drawn(50);
  const auto bound = windows->Bind("w", w).value();
  Tensor y = *Tensor::Create(DType::kF32, {48});
  const std::vector<Scalar> params = {Scalar::I64(1), Scalar::Float(DType::kF32, 3.0)};
  Workspace workspace;
  ASSERT_TRUE(bound->Run({{x}, {y}, params}, &workspace).ok());
  EXPECT_EQ(NumKernels(*windows), 2u);
  ExpectSame(y, Call{50, 3, 1}.Run(*windows), "bound");
  EXPECT_EQ(NumKernels(*windows), 2u);
}

// Kernels in which tiles copy the columns that they read.
size_t NumWithPanels(const Executable& executable) {
  const auto has_panel = [](const std::shared_ptr<const Kernel>& kernel) {
    return absl::c_any_of(kernel->program().tensors,
                          [](const loop::TensorInfo& info) { return info.name == "panel"; });
  };
  const auto kernels = executable.kernels();
  return static_cast<size_t>(absl::c_count_if(kernels, has_panel));
}

// Weights that are bound are copied once, others as they are used: there is separate code, with the
// same bits.
TEST(Variants, OfBoundInputsKeepTheirCopies) {
  const auto product =
      MustCompile(R"(program product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {
    for i in [0, M) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += a[i, k] * b[k, j] } c[i, j] = s } }
  })",
                  Forced());
  const int64_t m = 40, k = 30, n = 330;
  Tensor a = *Tensor::Create(DType::kF32, {m, k}), b = *Tensor::Create(DType::kF32, {k, n});
  absl::c_copy(Drawn(m * k).values<float>(), a.values<float>().begin());
  absl::c_copy(Drawn(k * n).values<float>(), b.values<float>().begin());
  Tensor want = *Tensor::Create(DType::kF32, {m, n}), c = *Tensor::Create(DType::kF32, {m, n});
  Workspace workspace;
  ASSERT_EQ(product->Run({{a, b}, {want}}, &workspace), absl::OkStatus());
  const size_t before = NumKernels(*product), with_panels = NumWithPanels(*product);
  EXPECT_GT(with_panels, 0u);
  const auto bound = product->Bind("b", b).value();
  for (int call = 0; call < 2; ++call) {
    ASSERT_EQ(bound->Run({{a}, {c}}, &workspace), absl::OkStatus());
    EXPECT_EQ(FirstDifference(c, want).value_or(""), "");
    EXPECT_EQ(NumKernels(*product), before + 1);
    EXPECT_EQ(NumWithPanels(*product), with_panels);
  }
}

// Axes are merged though the layout of an argument of which nobody reads an element
// would forbid it.
TEST(Variants, MergeAxesWhateverLayoutAnUnreadArgumentHas) {
  const auto twice =
      MustCompile(R"(program twice(x: f32[M, N], s: shape f32[M, N]) -> (y: f32[M, N]) {
    for i in [0, M) { for j in [0, N) { y[i, j] = 2.0 * x[i, j] } }
  })",
                  Forced());
  Tensor x = *Tensor::Create(DType::kF32, {7, 9}), y = *Tensor::Create(DType::kF32, {7, 9});
  const TensorView nothing{DType::kF32, {7, 9}, {0, 0}, x.view().data};
  Workspace workspace;
  ASSERT_EQ(twice->Run({{x, x.view()}, {y}}, &workspace), absl::OkStatus());
  const size_t before = NumKernels(*twice);
  ASSERT_EQ(twice->Run({{x, nothing}, {y}}, &workspace), absl::OkStatus());
  EXPECT_EQ(NumKernels(*twice), before);
}

// ---- Effects of scheduling

constexpr char kScale[] = R"(program scale(x: f32[N]; $k: i64 = 2) -> (y: f32[N]) {
  for i in [0, N) { y[i] = x[i] * f32(index($k)) }
})";

std::unique_ptr<const Executable> ScaleWith(
    std::function<absl::StatusOr<loop::Program>(loop::Program, const Variation&)> schedule) {
  ExecutableOptions options;
  options.isa = Isa::kAvx2;
  options.size_classes.least_work = 0;
  auto origin = std::make_shared<const Origin>(
      Origin{loop::ParseProgram(kScale).value(), std::move(schedule)});
  return Executable::Create(loop::ParseProgram(kScale).value(), options, std::move(origin)).value();
}

absl::Status RunScale(const Executable& scale, Tensor& x, Tensor& y, int64_t k,
                      Workspace* workspace) {
  const std::vector<Scalar> params = {Scalar::I64(k)};
  return scale.Run({{x}, {y}, params}, workspace);
}

// The general code reads each element before it writes it, this variant reads them later.
TEST(Variants, RunInPlaceWhereTheGeneralCodeDoes) {
  const auto scale = ScaleWith([](loop::Program, const Variation&) {
    return loop::ParseProgram(R"(program scale(x: f32[N]; $k: i64 = 2) -> (y: f32[N]) {
      for i in [0, N) { y[i] = 0.0 }
      for i_2 in [0, N) { y[i_2] += x[i_2] * 3.0 }
    })");
  });
  ASSERT_EQ(scale->aliases().size(), 1u);
  Workspace workspace;
  for (const int64_t k : {3, 3, 200, 3}) {
    for (const int64_t n : {5, 40, 40, 0}) {
      Tensor x = Drawn(n), want = Drawn(n);
      for (float& value : want.values<float>()) value *= static_cast<float>(k);
      ASSERT_EQ(RunScale(*scale, x, x, k, &workspace), absl::OkStatus());
      EXPECT_EQ(FirstDifference(x, want).value_or(""), "") << k << ", " << n;
      Tensor apart = Drawn(n), y = Drawn(n);
      ASSERT_EQ(RunScale(*scale, apart, y, k, &workspace), absl::OkStatus());
      EXPECT_EQ(FirstDifference(y, want).value_or(""), "") << k << ", " << n << ", apart";
      EXPECT_EQ(FirstDifference(apart, Drawn(n)).value_or(""), "") << "an input is written";
    }
  }
}

TEST(Variants, ThatCannotBeCompiledRunTheGeneralCode) {
  int calls = 0;
  const auto scale = ScaleWith([&](loop::Program, const Variation&) {
    ++calls;
    return absl::UnimplementedError("no");
  });
  for (const int64_t n : {5, 6, 7}) {
    Workspace workspace;
    Tensor x = Drawn(n), y = Drawn(n);
    ASSERT_EQ(RunScale(*scale, x, y, 3, &workspace), absl::OkStatus());
    EXPECT_EQ(y.values<float>()[1], x.values<float>()[1] * 3.0f);
  }
  EXPECT_EQ(calls, 1) << "tried again";
}

// The assumptions of passes may fail in a variant alone.
TEST(Variants, ThatMayOverflowRunTheGeneralCode) {
  const auto scale = ScaleWith([&](loop::Program, const Variation&) {
    return loop::ParseProgram(R"(program scale(x: f32[N]; $k: i64 = 2) -> (y: f32[N]) {
      assume d < N: 4611686018427387904*d
      for i in [0, N) { y[i] = 7.0 }
    })");
  });
  Workspace workspace;
  for (const int64_t n : {2, 9}) {
    Tensor x = Drawn(n), y = Drawn(n);
    ASSERT_EQ(RunScale(*scale, x, y, 3, &workspace), absl::OkStatus());
    EXPECT_EQ(y.values<float>()[1], n == 2 ? 7.0f : x.values<float>()[1] * 3.0f);
  }
}

// ---- Versions of the loops

// Few rows run without tiles (jit/schedule/tiled_nest.cc).
TEST(Variants, OfTheVersionForTheSizes) {
  CompileOptions options = Forced();
  options.size_classes.largest_constant = 0;
  options.size_classes.short_row = 0;
  const auto product = MustCompile(
      R"(program product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {
        for i in [0, M) { for j in [0, N) {
          acc s: f32 = sum
          for k in [0, K) { s += a[i, k] * b[k, j] }
          c[i, j] = s
        } }
      })",
      options);
  const auto at = [&](int64_t rows) {
    return product
        ->KernelAt([&](const std::string& name) { return name == "M" ? rows : int64_t{20}; })
        .value();
  };
  EXPECT_EQ(at(4).get(), &product->kernel());
  const auto few = at(3);
  EXPECT_TRUE(
      absl::StrContains(loop::ToText(few->program()), "version min(max(-M + 4, 0), 1) == 1"))
      << loop::ToText(few->program());
  EXPECT_EQ(at(2), few);
  EXPECT_EQ(at(40).get(), &product->kernel());
  EXPECT_EQ(NumKernels(*product), 2u);
}

// Which tests a version has is known once it is made: here the second, for more than 10 elements,
// only where there are more than 5.
TEST(Variants, FindAllTestsOfAVersion) {
  std::vector<std::vector<bool>> made;
  const auto text_of = [](const std::string& tests, int result) {
    return absl::StrCat("program scale(x: f32[N]; $k: i64 = 2) -> (y: f32[N]) { ", tests,
                        " for i in [0, N) { y[i] = ", result, ".0 } }");
  };
  const auto scale = ScaleWith([&](loop::Program, const Variation& variation) {
    made.push_back(variation.version);
    const bool five = !made.back().empty(), ten = made.back().size() > 1;
    return loop::ParseProgram(
        text_of(absl::StrCat("version min(1, N/6) == ", five ? 1 : 0,
                             five ? absl::StrCat(" version min(1, N/11) == ", ten ? 1 : 0) : ""),
                (five ? 1 : 0) + (ten ? 1 : 0)));
  });
  Workspace workspace;
  for (const int64_t n : {20, 3, 10, 11}) {
    Tensor x = Drawn(n), y = Drawn(n);
    ASSERT_EQ(RunScale(*scale, x, y, 3, &workspace), absl::OkStatus());
    EXPECT_EQ(y.values<float>()[1], n > 10 ? 2.0f : n > 5 ? 1.0f : 0.0f) << n;
  }
  EXPECT_EQ(made.size(), 3u) << "each is made once";
}

// A scheduled program has one version, and is run at its sizes only.
TEST(Variants, ScheduledProgramsRefuseOtherVersions) {
  const auto scale = CompileScheduled(loop::ParseProgram(R"(
      program scale(x: f32[N]; $k: i64 = 2) -> (y: f32[N]) {
        version min(1, N/6) == 1
        for i in [0, N) { y[i] = 7.0 }
      })")
                                          .value(),
                                      Forced())
                         .value();
  Workspace workspace;
  Tensor x = Drawn(5), y = Drawn(5), more = Drawn(6), result = Drawn(6);
  const absl::Status refused = RunScale(*scale, x, y, 3, &workspace);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(refused.message(),
                                "program scale: its loops are for sizes at which min(N/6, 1) is 1"))
      << refused;
  EXPECT_EQ(RunScale(*scale, more, result, 3, &workspace), absl::OkStatus());
}

}  // namespace
}  // namespace nestor::jit
