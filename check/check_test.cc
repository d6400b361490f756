// Kernels with one fault each, which Check must name; right ones, which it must accept; and errors
// of the caller.
#include "check/check.h"

#include <unistd.h>
#include <xmmintrin.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "check/inside_bounds.h"
#include "macro_ops/library.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <class T>
void MatmulOf(const KernelCall& k) {
  const T *a = k.input<T>("a"), *b = k.input<T>("b");
  T* c = k.output<T>("c");
  const int64_t m = k.dim("M"), n = k.dim("N"), depth = k.dim("K");
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < depth; ++p) sum += a[i * depth + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}
void Matmul(const KernelCall& k) { MatmulOf<float>(k); }

// A right scale by two; kernels below break it.
constexpr char kScale[] = "op scale(x: f32[N]) -> (y) { y[i] = 2*x[i] }";
void Scale(const KernelCall& k) {
  const TensorView &x = k.view("x"), &y = k.view("y");
  for (int64_t i = 0; i < k.dim("N"); ++i) {
    static_cast<float*>(y.data)[i * y.strides[0]] =
        2 * static_cast<const float*>(x.data)[i * x.strides[0]];
  }
}

template <class Broken>
CheckReport ReportOn(Broken broken, const CheckOptions& options = {}) {
  absl::StatusOr<CheckReport> report = Check(kScale, broken, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : CheckReport();
}

CheckOptions Few() { return CheckOptions().Trials(200); }

// ---- Right kernels

TEST(Check, AcceptsRightKernels) {
  EXPECT_THAT(Check("matmul", Matmul), IsRight());
  EXPECT_THAT(Check(kScale, Scale, Few().Isolated()), IsRight());
  EXPECT_THAT(Check(kScale, Scale, Few().Layouts(Layouts::kAny)), IsRight());
}

// Softmax of elements of type T that computes in type Wide.
template <class T, class Wide>
void SoftmaxIn(const KernelCall& k) {
  const T* x = k.input<T>("x");
  T* y = k.output<T>("y");
  const auto widened = [&](int64_t i) {
    if constexpr (std::is_same_v<T, BF16>) return static_cast<Wide>(x[i].Widen());
    else return static_cast<Wide>(x[i]);
  };
  const int64_t rows = k.dim("N0"), columns = k.dim("C");
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = row * columns, end = begin + columns;
    Wide largest = -std::numeric_limits<Wide>::infinity(), sum = 0;
    for (int64_t i = begin; i < end; ++i) largest = std::max(largest, widened(i));
    for (int64_t i = begin; i < end; ++i) sum += std::exp(widened(i) - largest);
    for (int64_t i = begin; i < end; ++i) {
      const Wide value = std::exp(widened(i) - largest) / sum;
      if constexpr (std::is_same_v<T, BF16>) y[i] = T::Round(static_cast<float>(value));
      else y[i] = static_cast<T>(value);
    }
  }
}

// Values need not be rounded to the op's own type on the way, even where they overflow there.
TEST(Check, AcceptsKernelsThatComputeInWiderTypes) {
  const auto f32 = Check("softmax", SoftmaxIn<float, double>);
  EXPECT_THAT(f32, IsRight());
  EXPECT_GT(f32->by_wider, 0);
  EXPECT_THAT(f32->ToString(), HasSubstr(" right only as computed in wider types than the op's"));
  EXPECT_THAT(Check("softmax", SoftmaxIn<BF16, float>, Few().Trials(60).Types({DType::kBF16})),
              IsRight());
  constexpr char kNorm[] = "op norm(x: f32[N]) -> (y) { y = sqrt(sum[i](square(x[i]))) }";
  const auto norm = [](const KernelCall& k) {
    double sum = 0;
    for (int64_t i = 0; i < k.dim("N"); ++i)
      sum += std::pow(static_cast<double>(k.input<float>("x")[i]), 2);
    k.output<float>("y")[0] = static_cast<float>(std::sqrt(sum));
  };
  EXPECT_THAT(Check(kNorm, norm), IsRight());
  EXPECT_THAT(Check(kNorm, norm, CheckOptions().Sample(1)), IsRight());
}

// A value that the op itself rounds must be rounded, and computing in narrower types is wrong.
TEST(Check, WiderTypesExcuseNothingElse) {
  constexpr char kRounds[] = "op rounds(x: f32[N]) -> (y) { y[i] = f32(bf16(x[i])) }";
  const auto copies = [](const KernelCall& k) {
    for (int64_t i = 0; i < k.dim("N"); ++i) k.output<float>("y")[i] = k.input<float>("x")[i];
  };
  EXPECT_THAT(Check(kRounds, copies, Few()), Not(IsRight()));
  constexpr char kSum[] = "op total(x: f32[N]) -> (y) { y = sum[i](x[i]) }";
  const auto in_bf16 = [](const KernelCall& k) {
    BF16 sum = BF16::Round(0.0f);
    for (int64_t i = 0; i < k.dim("N"); ++i)
      sum = BF16::Round(sum.Widen() + k.input<float>("x")[i]);
    k.output<float>("y")[0] = sum.Widen();
  };
  EXPECT_THAT(Check(kSum, in_bf16, Few()), Not(IsRight()));
}

TEST(Check, TakesAnyKindOfOp) {
  EXPECT_THAT(Check(*MacroLibrary().Instantiate("matmul", {}), Matmul, Few()), IsRight());
  const absl::StatusOr<GradientResult> gradient =
      Gradient(*ParseOp("op f(x: f32[N]) -> (y) { y[i] = square(x[i]) }"));
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_THAT(Check(
                  *gradient,
                  [](const KernelCall& k) {
                    for (int64_t i = 0; i < k.dim("N"); ++i) {
                      k.output<float>("g_x")[i] =
                          2 * k.input<float>("x")[i] * k.input<float>("g_y")[i];
                    }
                  },
                  Few()),
              IsRight());
}

TEST(Check, DrawsEveryTypeAskedFor) {
  int f32 = 0, f64 = 0;
  const auto report = Check(
      "matmul",
      [&](const KernelCall& k) {
        if (k.view("a").type == DType::kF64) return ++f64, MatmulOf<double>(k);
        return ++f32, MatmulOf<float>(k);
      },
      Few().Types({DType::kF32, DType::kF64}));
  EXPECT_THAT(report, IsRight());
  EXPECT_GT(f32, 50);
  EXPECT_GT(f64, 50);
}

TEST(Check, MeetsTheKernelsConditions) {
  int64_t calls = 0;
  const auto report = Check(
      "matmul",
      [&](const KernelCall& k) {
        ++calls;
        EXPECT_EQ(k.dim("K") % 8, 0);
        EXPECT_LE(k.dim("M"), 2 * k.dim("N"));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(k.input<float>("a")) % 32, 0u);
        Matmul(k);
      },
      Few().Where("K % 8 == 0", "M <= 2*N").Alignment(32));
  EXPECT_THAT(report, IsRight());
  EXPECT_GE(calls, 400);
}

// A kernel may rely on the macro op's conditions; groups divide channels.
TEST(Check, MeetsTheMacroOpsConditions) {
  int64_t several = 0;
  const auto report = Check("conv2d", [&](const KernelCall& k) {
    several += k.param("groups") > 1;
    return k.dim("O") % k.param("groups") == 0 ? absl::UnimplementedError("")
                                               : absl::InternalError("does not divide");
  });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fault, Fault::kNone) << *report;
  EXPECT_GT(several, 100);
  for (const MacroOp& op : MacroOps()) {
    int64_t calls = 0;
    const auto all = Check(
        op.name,
        [&](const KernelCall&) {
          ++calls;
          return absl::UnimplementedError("");
        },
        Few());
    EXPECT_TRUE(op.conditions.empty() || all.ok()) << op.name << ": " << all.status();
    EXPECT_TRUE(op.conditions.empty() || calls > 150) << op.name;
  }
}

TEST(Check, GivesParamsTheValuesThatAreAskedFor) {
  constexpr char kOp[] = "op f(x: f32[N]; $eps: f32 = 0.5 in [0, 2], $on: bool = true) -> (y) { "
                         "y[i] = where($on, x[i] + $eps, x[i]) }";
  const auto add = [](const KernelCall& k) {
    EXPECT_EQ(k.param<float>("eps"), 0.125f);
    EXPECT_FALSE(k.param<bool>("on"));
    for (int64_t i = 0; i < k.dim("N"); ++i) k.output<float>("y")[i] = k.input<float>("x")[i];
  };
  const auto options = [] { return Few().Param("$eps", 0.125).Param("on", 0); };
  EXPECT_THAT(Check(kOp, add, options()), IsRight());
  // A smaller case does not violate them either.
  const auto wrong = Check(
      kOp,
      [&](const KernelCall& k) {
        add(k);
        if (k.dim("N") > 2) k.output<float>("y")[2] = 77;
      },
      options());
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_THAT(wrong->smallest_case, HasSubstr("N=3, $eps=0.125, $on=false"));
  const auto error = [&](const CheckOptions& given) {
    return Check(kOp, add, given).status().ToString();
  };
  EXPECT_THAT(error(Few().Param("esp", 1)), HasSubstr("Param(\"esp\"): there is no such $param"));
  EXPECT_THAT(error(Few().Param("eps", 3)), HasSubstr("3.0 is outside of its range [0.0, 2.0]"));
  EXPECT_THAT(
      Check("op g(x: f32[N]; $k = 1) -> (y) { y[i] = x[i] * f32($k) }", add, Few().Param("k", 2))
          .status()
          .ToString(),
      HasSubstr("an integer: Where(\"$k == ..\") fixes it"));
}

TEST(Check, CountsWhatTheKernelDoesNotDo) {
  const CheckReport report = ReportOn(
      [](const KernelCall& k) {
        if (k.dim("N") % 2 == 1) return absl::UnimplementedError("odd");
        Scale(k);
        return absl::OkStatus();
      },
      Few());
  EXPECT_TRUE(report.IsRight()) << report;
  EXPECT_GT(report.skipped, 20);
  const CheckReport none =
      ReportOn([](const KernelCall&) { return absl::UnimplementedError("nothing"); }, Few());
  EXPECT_FALSE(none.IsRight());
  EXPECT_THAT(none.ToString(), HasSubstr("NOT CHECKED"));
}

TEST(Check, RunsInPlace) {
  int64_t in_place = 0, apart = 0;
  const CheckReport report = ReportOn(
      [&](const KernelCall& k) {
        ++(k.input<float>("x") == k.output<float>("y") ? in_place : apart);
        Scale(k);
      },
      Few().InPlace("x", "y"));
  EXPECT_TRUE(report.IsRight()) << report;
  EXPECT_GT(in_place, 50);
  EXPECT_GT(apart, 50);
}

TEST(Check, DrawsIndicesInsideTheirAxis) {
  const auto lookup = [](const KernelCall& k) {
    const int64_t* ids = k.input<int64_t>("ids");
    const int64_t width = k.dim("D");
    for (int64_t n = 0; n < k.dim("N0"); ++n) {
      ASSERT_GE(ids[n], 0);
      ASSERT_LT(ids[n], k.dim("V"));
      std::copy_n(k.input<float>("table") + ids[n] * width, width,
                  k.output<float>("y") + n * width);
    }
  };
  EXPECT_THAT(Check("embedding", lookup, Few()), IsRight());
}

// What the op itself does with places outside of the axis is exercised.
TEST(Check, DrawsIndicesOutsideWhereTheOpTakesThem) {
  const auto inside_only = [](const KernelCall& k) {
    const int64_t* ids = k.input<int64_t>("k");
    const int64_t n = k.dim("N");
    for (int64_t i = 0; i < k.dim("M"); ++i) {
      const bool is_inside = ids[i] >= 0 && ids[i] < n;
      k.output<float>("y")[i] = is_inside ? k.input<float>("x")[ids[i]] : 12345;
    }
  };
  const auto check = [&](const std::string& place) {
    return Check(absl::StrCat("op f(x: f32[N], k: i64[M]) -> (y) { y[i] = x[", place, "] }"),
                 inside_only, Few());
  };
  EXPECT_THAT(check("k[i]"), IsRight());
  EXPECT_THAT(check("max(k[i], 0)"), IsRight());
  EXPECT_THAT(check("k[i] % N"), Not(IsRight()));
  EXPECT_THAT(check("min(max(k[i], 0), N - 1)"), Not(IsRight()));
  EXPECT_THAT(check("k[i] | 5.0"), Not(IsRight()));
}

TEST(Check, DrawsNegativeParams) {
  const auto positive_only = [](const KernelCall& k) {
    const float factor =
        std::max<float>(k.param<float>("s"), 0) + std::max<int64_t>(k.param("n"), 0);
    for (int64_t i = 0; i < k.dim("N"); ++i)
      k.output<float>("y")[i] = k.input<float>("x")[i] * factor;
  };
  const auto check = [&](const std::string& params) {
    return Check(
        absl::StrCat("op f(x: f32[N]; ", params, ") -> (y) { y[i] = x[i] * ($s + f32($n)) }"),
        positive_only, Few());
  };
  EXPECT_THAT(check("$s: f32 in [0, 2], $n in [0, 9]"), IsRight());
  EXPECT_THAT(check("$s: f32, $n in [0, 9]"), Not(IsRight()));
  EXPECT_THAT(check("$s: f32 in [0, 2], $n"), Not(IsRight()));
  EXPECT_THAT(check("$s: f32 in [0, 2], $n in [-inf, -1]"), Not(IsRight()));
  EXPECT_THAT(check("$s: f32 in [-inf, -1], $n in [0, 9]"), Not(IsRight()));
}

TEST(Check, DrawsParamsOfTheirType) {
  const struct {
    const char* param;
    int64_t low, high;
  } cases[] = {{"u8 in [250, inf]", 250, 255}, {"u32 in [-inf, 3]", 0, 3}, {"i8", -128, 127}};
  for (const auto& c : cases) {
    int64_t least = 1000, most = -1000;
    const auto kernel = [&](const KernelCall& k) {
      least = std::min(least, k.param("n")), most = std::max(most, k.param("n"));
      for (int64_t i = 0; i < k.dim("N"); ++i)
        k.output<float>("y")[i] = k.input<float>("x")[i] * static_cast<float>(k.param("n"));
    };
    const auto op =
        absl::StrCat("op f(x: f32[N]; $n: ", c.param, ") -> (y) { y[i] = x[i] * f32($n) }");
    EXPECT_THAT(Check(op, kernel, Few()), IsRight()) << c.param;
    EXPECT_GE(least, c.low) << c.param;
    EXPECT_LE(most, c.high) << c.param;
    EXPECT_GE(most - least, 3) << c.param;
  }
}

TEST(Check, MayPromiseLess) {
  const auto inexact = [](const KernelCall& k) {
    for (int64_t i = 0; i < k.dim("N"); ++i) {
      const float twice = 2 * k.input<float>("x")[i];
      k.output<float>("y")[i] = std::isinf(twice) ? twice : std::nextafter(twice, INFINITY);
    }
  };
  EXPECT_FALSE(ReportOn(inexact, Few()).IsRight());
  const CheckReport report = ReportOn(inexact, Few().Ulps(1));
  EXPECT_TRUE(report.IsRight()) << report;
}

TEST(Check, SamplesLargeResults) {
  const SizeLimits large = {1 << 20, 1 << 12, int64_t{1} << 40};
  const CheckOptions options =
      CheckOptions().Sizes(large).Sample(500).Trials(3).Where("M == 120", "K == 60", "N == 121");
  const auto right = Check("matmul", Matmul, options);
  EXPECT_THAT(right, IsRight());
  EXPECT_GT(right->histogram.Total(), 1200);
  EXPECT_LE(right->histogram.Total(), 1500);
  EXPECT_GT(right->by_bounds, 1000);
  // The rows of x are needed as a whole, those of y are judged in part.
  constexpr char kMax[] = "op f(x: f32[N, C]) -> (y) { y[i, j] = max[k](x[i, k]) where j < C }";
  const auto rows = Check(
      kMax,
      [](const KernelCall& k) {
        const int64_t columns = k.dim("C");
        for (int64_t i = 0; i < k.dim("N"); ++i) {
          const float* const x = k.input<float>("x") + i * columns;
          std::fill_n(k.output<float>("y") + i * columns, columns,
                      *std::max_element(x, x + columns));
        }
      },
      CheckOptions().Sizes(large).Sample(500).Trials(3).Where("N == 200", "C == 121"));
  EXPECT_THAT(rows, IsRight());
  EXPECT_GT(rows->histogram.Total(), 600);
  EXPECT_LE(rows->histogram.Total(), 1500);
  const auto wrong = Check(
      "matmul",
      [](const KernelCall& k) {
        Matmul(k);
        k.output<float>("c")[k.dim("M") * k.dim("N") - 1] += 1000000;
      },
      options);
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_EQ(wrong->fault, Fault::kWrong);
}

// One row, one column, one tile, a tail: other rows and columns are looked at in each trial.
TEST(Check, SamplesFindWhatIsWrongInFewElements) {
  const SizeLimits large = {1 << 20, 1 << 12, int64_t{1} << 40};
  const auto is_wrong = [&](const char* op, const std::vector<std::string>& sizes, auto broken) {
    CheckOptions options = CheckOptions().Sizes(large).Sample(500).Trials(60);
    options.conditions = sizes;
    const auto report = Check(op, broken, options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->fault, Fault::kWrong) << op;
  };
  const std::vector<std::string> matmul = {"M == 64", "K == 5", "N == 90"};
  const auto spoil = [](const KernelCall& k, const char* name, auto hits) {
    const TensorView& view = k.view(name);
    const int64_t columns = view.shape.back(), rows = NumElements(view.shape).value() / columns;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        if (hits(i, j)) static_cast<float*>(view.data)[i * columns + j] = 12345678;
      }
    }
  };
  const std::function<bool(int64_t, int64_t)> places[] = {
      [](int64_t i, int64_t) { return i == 33; },
      [](int64_t, int64_t j) { return j == 57; },
      [](int64_t i, int64_t j) { return i / 4 == 9 && j / 16 == 2; },
      [](int64_t i, int64_t j) { return i == 63 && j == 0; },
  };
  for (const auto& place : places) {
    is_wrong("matmul", matmul, [&](const KernelCall& k) { Matmul(k), spoil(k, "c", place); });
  }
  // None of its dimensions is separable.
  constexpr char kNext[] =
      "op next(x: f32[N, C]) -> (y) { y[i, j] = x[i + 1, j + 1] where i < N, j < C }";
  const auto next = [](const KernelCall& k, int64_t wrong_row) {
    const int64_t n = k.dim("N"), c = k.dim("C");
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < c; ++j) {
        const bool is_inside = i + 1 < n && j + 1 < c;
        k.output<float>("y")[i * c + j] = is_inside ? k.input<float>("x")[(i + 1) * c + j + 1]
                                          : i == wrong_row ? 7
                                                           : 0;
      }
    }
  };
  is_wrong(kNext, {"N == 64", "C == 90"}, [&](const KernelCall& k) { next(k, 40); });
  is_wrong(kNext, {"N == 64", "C == 90"}, [&](const KernelCall& k) { next(k, 63); });
  EXPECT_THAT(Check(
                  kNext, [&](const KernelCall& k) { next(k, -1); },
                  CheckOptions().Sizes(large).Sample(500).Trials(5).Where("N == 64", "C == 90")),
              IsRight());
}

TEST(Check, ZerosHaveSignsWhereAskedFor) {
  const auto negate = [](const KernelCall& k) {
    for (int64_t i = 0; i < k.dim("N"); ++i) k.output<float>("y")[i] = 0 - k.input<float>("x")[i];
  };
  constexpr char kNegate[] = "op negate(x: f32[N]) -> (y) { y[i] = -x[i] }";
  EXPECT_THAT(Check(kNegate, negate, Few()), IsRight());
  const auto report = Check(kNegate, negate, Few().SignedZeros());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fault, Fault::kWrong);
  EXPECT_THAT(report->ToString(), HasSubstr("= 0.0, but must be -0"));
}

// ---- Faults

TEST(Check, FindsAWrongElement) {
  const CheckReport report = ReportOn([](const KernelCall& k) {
    Scale(k);
    if (k.dim("N") >= 5) k.output<float>("y")[4] += 1;
  });
  EXPECT_EQ(report.fault, Fault::kWrong);
  EXPECT_THAT(report.smallest_case, HasSubstr("N=5"));
  ASSERT_EQ(report.worst.size(), 1u);
  EXPECT_EQ(report.worst[0].place, "y[4]");
  EXPECT_EQ(report.wrong_elements, 1);
  EXPECT_THAT(report.inputs, HasSubstr("[0.0, 0.0, 0.0, 0.0, 0.0]"));
  EXPECT_THAT(report.pattern, HasSubstr("have i = 4; "));
}

// An integer kernel that computes in another type is right for small numbers alone.
template <class T, class Wrong>
absl::StatusOr<CheckReport> SumInAnotherType(const std::string& type, const CheckOptions& options) {
  const auto sum = [](const KernelCall& k) {
    Wrong total = 0;
    for (int64_t i = 0; i < k.dim("N"); ++i) total += static_cast<Wrong>(k.input<T>("x")[i]);
    *k.output<T>("y") = static_cast<T>(static_cast<int64_t>(total));
  };
  return Check(absl::StrCat("op f(x: ", type, "[N]) -> (y) { y = sum[i](x[i]) }"), sum, options);
}

TEST(Check, FindsIntegersInAnotherType) {
  EXPECT_THAT((SumInAnotherType<int64_t, uint64_t>("i64", Few())), IsRight());
  EXPECT_THAT((SumInAnotherType<int32_t, uint64_t>("i32", Few())), IsRight());
  EXPECT_THAT((SumInAnotherType<int64_t, uint32_t>("i64", Few())), Not(IsRight()));
  EXPECT_THAT((SumInAnotherType<int64_t, double>("i64", Few())), Not(IsRight()));
  EXPECT_THAT((SumInAnotherType<int32_t, float>("i32", Few())), Not(IsRight()));
  CheckOptions small = Few();
  small.Values({.low = -3, .high = 3});
  EXPECT_THAT((SumInAnotherType<int64_t, double>("i64", small)), IsRight());
}

TEST(Check, FindsWhatTailsHaveInCommon) {
  const CheckReport report = ReportOn(
      [](const KernelCall& k) {
        Scale(k);
        if (k.dim("N") % 16 == 1 && k.dim("N") > 1) k.output<float>("y")[k.dim("N") - 1] = 7.25f;
      },
      CheckOptions().Trials(2000));
  EXPECT_EQ(report.fault, Fault::kWrong);
  EXPECT_THAT(report.smallest_case, HasSubstr("N=17"));
  EXPECT_THAT(report.pattern, HasSubstr("i = N-1"));
  EXPECT_THAT(report.pattern, HasSubstr("N % 16 == 1"));
  EXPECT_THAT(report.pattern, HasSubstr("none of"));
}

TEST(Check, FindsAnElementThatIsNotWritten) {
  const CheckReport report = ReportOn([](const KernelCall& k) {
    for (int64_t i = 0; i + 1 < k.dim("N"); ++i)
      k.output<float>("y")[i] = 2 * k.input<float>("x")[i];
  });
  EXPECT_EQ(report.fault, Fault::kUnwritten);
  EXPECT_THAT(report.smallest_case, HasSubstr("N=1"));
  EXPECT_THAT(report.pattern, HasSubstr("i = N-1"));
}

TEST(Check, FindsWhatDependsOnTheOutput) {
  const CheckReport report = ReportOn([](const KernelCall& k) {
    for (int64_t i = 0; i < k.dim("N"); ++i) {
      float& y = k.output<float>("y")[i];
      y = (i == 2 ? y * 0 : 0) + 2 * k.input<float>("x")[i];
    }
  });
  EXPECT_EQ(report.fault, Fault::kDependsOnOutput);
  EXPECT_THAT(report.smallest_case, HasSubstr("N=3"));
}

// The kernel turns NaN into the same NaN, and 0 into the same 0.
TEST(Check, FindsWhatDependsOnTheOutputThoughItKeepsPoison) {
  const auto report = Check(
      "op zero(x: f32[N]) -> (y) { y[i] = 0*x[i] }",
      [](const KernelCall& k) {
        for (int64_t i = 0; i < k.dim("N"); ++i) k.output<float>("y")[i] *= 0;
      },
      CheckOptions().Values({.low = -1, .high = 1}));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fault, Fault::kDependsOnOutput) << *report;
}

TEST(Check, FindsWhatDoesNotRepeat) {
  int64_t calls = 0;
  const CheckReport report = ReportOn([&](const KernelCall& k) {
    Scale(k);
    if (++calls > 100 && k.dim("N") > 0) k.output<float>("y")[0] = static_cast<float>(calls);
  });
  EXPECT_EQ(report.fault, Fault::kNotRepeatable);
  bool is_odd = false;  // alternates as the poison of the runs does
  const CheckReport alternates = ReportOn([&](const KernelCall& k) {
    Scale(k);
    is_odd = !is_odd;
    if (k.dim("N") > 0 && is_odd) k.output<float>("y")[0] += 1;
  });
  EXPECT_EQ(alternates.fault, Fault::kNotRepeatable) << alternates;
}

TEST(Check, FindsAChangedInput) {
  const auto broken = [](const KernelCall& k) {
    Scale(k);
    if (k.dim("N") > 3) const_cast<float*>(k.input<float>("x"))[3] += 1;
  };
  const CheckReport report = ReportOn(broken);
  EXPECT_EQ(report.fault, Fault::kInputChanged);
  EXPECT_THAT(report.message, HasSubstr("argument x"));
  EXPECT_THAT(report.smallest_case, HasSubstr("N=4"));
  const CheckReport isolated = ReportOn(broken, CheckOptions().Isolated());
  EXPECT_EQ(isolated.fault, Fault::kCrash);
  EXPECT_THAT(isolated.message, HasSubstr("writes the argument x"));
}

TEST(Check, FindsAWriteBetweenRows) {
  constexpr char kRows[] = "op scale(x: f32[N, C]) -> (y) { y[i, j] = 2*x[i, j] }";
  const auto report = Check(
      kRows,
      [](const KernelCall& k) {
        const TensorView &x = k.view("x"), &y = k.view("y");
        for (int64_t i = 0; i < k.dim("N"); ++i) {
          for (int64_t j = 0; j < (k.dim("C") + 1) / 2 * 2; ++j) {
            const bool is_inside = j < k.dim("C");
            if (!is_inside && i + 1 == k.dim("N")) continue;
            static_cast<float*>(y.data)[ElementOffset(y, {i, j})] =
                is_inside ? 2 * static_cast<const float*>(x.data)[ElementOffset(x, {i, j})] : 0;
          }
        }
      },
      Few().Layouts(Layouts::kRowsStrided));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fault, Fault::kWritesBeside) << *report;
}

// Between the last element and the page that faults there are bytes for the alignment, and before
// the first one the rest of a page.
TEST(Check, FindsAWriteBesideTheElements) {
  const auto writes = [](int64_t at, const char* name) {
    return ReportOn(
        [=](const KernelCall& k) {
          Scale(k);
          const TensorView& view = k.view(name);
          constexpr uintptr_t kPage = 4096;
          const bool has_room = at >= 0 || reinterpret_cast<uintptr_t>(view.data) % kPage != 0;
          if (k.dim("N") % 16 == 1 && has_room)
            static_cast<float*>(view.data)[at < 0 ? at : k.dim("N") + at] = 0;
        },
        Few().Alignment(64));
  };
  for (const char* name : {"x", "y"}) {
    for (int64_t at : {-1, 0, 14}) {
      const CheckReport report = writes(at, name);
      EXPECT_EQ(report.fault, Fault::kWritesBeside) << report;
      EXPECT_THAT(report.message, HasSubstr(absl::StrCat("writes beside the elements of ", name)));
    }
  }
}

TEST(Check, FindsErrorsAndExceptions) {
  const CheckReport error = ReportOn([](const KernelCall& k) {
    Scale(k);
    return k.dim("N") == 9 ? absl::InternalError("nine is too much") : absl::OkStatus();
  });
  EXPECT_EQ(error.fault, Fault::kError);
  EXPECT_THAT(error.ToString(), HasSubstr("nine is too much"));
  const CheckReport exception = ReportOn([](const KernelCall& k) {
    Scale(k);
    if (k.dim("N") > 6) throw std::runtime_error("too long");
  });
  EXPECT_EQ(exception.fault, Fault::kException);
  EXPECT_THAT(exception.smallest_case, HasSubstr("N=7"));
}

TEST(Check, FindsAChangedFloatState) {
  const CheckReport report = ReportOn([](const KernelCall& k) {
    Scale(k);
    _mm_setcsr(_mm_getcsr() | 0x8000);
  });
  EXPECT_EQ(report.fault, Fault::kFloatState);
  EXPECT_THAT(report.message, HasSubstr("MXCSR"));
  EXPECT_EQ(_mm_getcsr() & 0x8000, 0u);
  const CheckReport control_word = ReportOn([](const KernelCall& k) {
    Scale(k);
    const uint16_t in_double = 0x27f;
    asm volatile("fldcw %0" : : "m"(in_double));
  });
  EXPECT_THAT(control_word.message, HasSubstr("the x87 control word changed from 0x37f to 0x27f"));
  const CheckReport in_use = ReportOn([](const KernelCall& k) {
    Scale(k);
    asm volatile("movq %mm0, %mm0");
  });
  EXPECT_EQ(in_use.fault, Fault::kFloatState);
  EXPECT_THAT(in_use.message, HasSubstr("x87 registers in use"));
  EXPECT_EQ(std::lroundl(static_cast<long double>(in_use.trials)), in_use.trials)
      << "they are in use still";
}

TEST(Check, FindsCrashes) {
  const CheckOptions isolated = CheckOptions().Isolated();
  const CheckReport beyond = ReportOn(
      [](const KernelCall& k) {
        Scale(k);
        const volatile float* const x = k.input<float>("x");
        if (k.dim("N") >= 3) static_cast<void>(x[k.dim("N")]);
      },
      isolated);
  EXPECT_EQ(beyond.fault, Fault::kCrash);
  EXPECT_THAT(beyond.message, HasSubstr("reads the byte 1 after the last of x"));
  EXPECT_THAT(beyond.smallest_case, HasSubstr("N=3"));
  const CheckReport before = ReportOn(
      [](const KernelCall& k) {
        Scale(k);
        if (k.dim("N") > 0) static_cast<volatile float*>(k.output<float>("y"))[-1] = 1;
      },
      isolated);
  EXPECT_EQ(before.fault, Fault::kCrash);
  EXPECT_THAT(before.message, HasSubstr("writes the byte 4 before the first of y"));
  const CheckReport exits = ReportOn([](const KernelCall&) { _exit(7); }, isolated);
  EXPECT_EQ(exits.fault, Fault::kCrash);
  EXPECT_THAT(exits.message, HasSubstr("exited with 7"));
}

TEST(Check, FindsAHang) {
  const CheckReport report = ReportOn(
      [](const KernelCall& k) {
        Scale(k);
        while (k.dim("N") > 8) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      },
      CheckOptions().Isolated().Patience(absl::Milliseconds(200)));
  EXPECT_EQ(report.fault, Fault::kHang);
}

// The oracle's time is not the kernel's.
TEST(Check, AHangIsTheKernels) {
  const auto in_f32 = [](const KernelCall& k) {
    const int64_t m = k.dim("M"), n = k.dim("N"), depth = k.dim("K");
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < depth; ++p) {
          sum += k.input<BF16>("a")[i * depth + p].Widen() * k.input<BF16>("b")[p * n + j].Widen();
        }
        k.output<BF16>("c")[i * n + j] = BF16::Round(sum);
      }
    }
  };
  EXPECT_THAT(Check("matmul", in_f32,
                    CheckOptions()
                        .Types({DType::kBF16})
                        .Where("M == 30", "N == 30", "K == 50")
                        .Trials(3)
                        .Isolated()
                        .Patience(absl::Milliseconds(25))),
              IsRight());
}

// A copy of the process that comes back from the kernel must not run trials of its own.
TEST(Check, EndsWhatTheKernelForks) {
  for (bool isolated : {false, true}) {
    const pid_t process = getpid();
    const CheckReport report = ReportOn(
        [](const KernelCall& k) {
          Scale(k);
          if (k.dim("N") == 5) fork();
        },
        Few().Isolated(isolated));
    // The copy must not come here; it has counted trials as well.
    if (getpid() != process) std::_Exit(1);
    EXPECT_EQ(report.fault, Fault::kNone) << report;
    EXPECT_EQ(report.trials, 200);
  }
}

// Sums in a narrower type, a missing maximum, 1-pass variance: formulas that pass on moderate
// values.
TEST(Check, FindsUnstableFormulas) {
  const auto softmax = [](const KernelCall& k) {
    const int64_t c = k.dim("C");
    for (int64_t r = 0; r < k.dim("N0"); ++r) {
      float sum = 0;
      for (int64_t i = 0; i < c; ++i) sum += std::exp(k.input<float>("x")[r * c + i]);
      for (int64_t i = 0; i < c; ++i)
        k.output<float>("y")[r * c + i] = std::exp(k.input<float>("x")[r * c + i]) / sum;
    }
  };
  const auto report = Check("softmax", softmax);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fault, Fault::kWrong);
  EXPECT_LT(report->trials, 50);
  EXPECT_THAT(Check("softmax", softmax, CheckOptions().Values({.low = -5, .high = 5}).Bound(4)),
              IsRight());
}

// The account of a finding uses only values that the kernel must handle.
TEST(Values, AreShrunkWithinTheirRange) {
  const auto nothing = [](const KernelCall& k) {
    for (int64_t i = 0; i < k.dim("N"); ++i) k.output<float>("y")[i] = 0;
  };
  const auto report = Check("op f(x: f32[N]) -> (y) { y[i] = x[i] }", nothing,
                            CheckOptions().Values({.low = 2, .high = 3}));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->inputs, testing::AnyOf(HasSubstr("= [2.0]"), HasSubstr("= [3.0]")));

  // An index of an axis with one element is 0.
  const auto gather = [](const KernelCall& k) {
    for (int64_t i = 0; i < k.dim("M"); ++i) k.output<float>("y")[i] = 7;
  };
  const auto gathered = Check("op g(x: f32[N], i: i64[M]) -> (y) { y[j] = x[i[j]] }", gather);
  ASSERT_TRUE(gathered.ok()) << gathered.status();
  EXPECT_EQ(gathered->fault, Fault::kWrong) << *gathered;
  EXPECT_THAT(gathered->inputs, HasSubstr("i: i64[1] = [0]"));
}

// Zeros where these still fail, ones elsewhere.
TEST(Values, AreShrunkToZerosAndOnes) {
  const auto only_first = [](const KernelCall& k) {
    for (int64_t i = 0; i < k.dim("N"); ++i) k.output<float>("y")[i] = k.input<float>("x")[0];
  };
  const auto report =
      Check("op f(x: f32[N]) -> (y) { y[i] = x[i] }", only_first, CheckOptions().Where("N > 1"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->inputs, testing::AnyOf(HasSubstr("= [0.0, 1.0]"), HasSubstr("= [1.0, 0.0]")))
      << *report;
}

// Neither 0 nor 1 shows the fault: the limit is 100, and that of the $param 0.7.
TEST(Values, AreShrunkToSmallNumbers) {
  const auto report =
      Check("op f(x: f32[N]; $s: f32) -> (y) { y[i] = x[i] + $s }", [](const KernelCall& k) {
        const float* x = k.input<float>("x");
        const float s = k.param<float>("s");
        for (int64_t i = 0; i < k.dim("N"); ++i)
          k.output<float>("y")[i] = x[i] > 100 && s > 0.7f ? 0 : x[i] + s;
      });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->smallest_case, HasSubstr("N=1, $s=1.0"));
  float x = 0;
  ASSERT_EQ(std::sscanf(report->inputs.c_str(), "x: f32[1] = [%f]", &x), 1) << *report;
  EXPECT_GT(x, 100);
  EXPECT_LE(x, 202) << *report;
  EXPECT_EQ(16 * x, std::nearbyint(16 * x));
}

// ---- The report

TEST(Check, FindsWhatReadersOfNanHaveInCommon) {
  const auto largest = [](const KernelCall& k) {
    const int64_t n = k.dim("N");
    for (int64_t i = 0; i < k.dim("M"); ++i) {
      const float* const row = k.input<float>("x") + i * n;
      float m = -std::numeric_limits<float>::infinity();
      for (int64_t j = 0; j < n; ++j) m = row[j] > m ? row[j] : m;
      k.output<float>("y")[i] = m;
    }
  };
  const auto report = Check("op rows(x: f32[M, N]) -> (y) { y[i] = max[k](x[i, k]) }", largest,
                            CheckOptions().Values({.special = true}));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->pattern, HasSubstr("have inf or nan among what they read;"));
}

// GoogleTest's own line is short: the matcher's explanation has the report.
TEST(Check, ReportsPrintOnce) {
  const auto report = Check(kScale, [](const KernelCall&) {});
  EXPECT_EQ(testing::PrintToString(report), "a report");
  EXPECT_EQ(testing::PrintToString(Check("sofmax", Scale)), "an error");
}

TEST(Check, ATrialIsReproducedByItsSeed) {
  const auto broken = [](const KernelCall& k) {
    Scale(k);
    if (k.dim("N") > 20) k.output<float>("y")[20] = 3;
  };
  const CheckReport first = ReportOn(broken);
  const CheckReport again = ReportOn(broken, CheckOptions().Seed(first.failing_seed).Trials(1));
  EXPECT_EQ(again.fault, Fault::kWrong);
  EXPECT_EQ(again.failing_case, first.failing_case);
  EXPECT_EQ(again.smallest_case, first.smallest_case);
  EXPECT_THAT(first.ToString(), HasSubstr(absl::StrCat("NESTOR_CHECK_SEED=", first.failing_seed)));
  EXPECT_THAT(first.ToJson(), HasSubstr("\"right\": false, \"fault\": \"wrong result\""));
}

TEST(Check, TheEnvironmentOverrides) {
  setenv("NESTOR_CHECK_TRIALS", "3", 1);
  EXPECT_EQ(ReportOn(Scale).trials, 3);
  setenv("NESTOR_CHECK_TRIALS", "many", 1);
  EXPECT_THAT(Check(kScale, Scale).status().ToString(), HasSubstr("NESTOR_CHECK_TRIALS=many"));
  unsetenv("NESTOR_CHECK_TRIALS");
  setenv("NESTOR_CHECK_FOR", "50ms", 1);
  const CheckReport report = ReportOn(Scale);
  EXPECT_LT(report.time, absl::Seconds(5));
  EXPECT_GT(report.trials, 5);
  unsetenv("NESTOR_CHECK_FOR");
  // Any seed that a report may name.
  const std::string largest = absl::StrCat(std::numeric_limits<uint64_t>::max());
  setenv("NESTOR_CHECK_SEED", largest.c_str(), 1);
  EXPECT_EQ(ReportOn(Scale, Few()).seed, std::numeric_limits<uint64_t>::max());
  setenv("NESTOR_CHECK_SEED", "-1", 1);
  EXPECT_THAT(Check(kScale, Scale).status().ToString(), HasSubstr("NESTOR_CHECK_SEED=-1"));
  unsetenv("NESTOR_CHECK_SEED");
}

// ---- A caller's mistakes

TEST(Check, NamesMistakes) {
  const auto error = [](const CheckedOp& op, const CheckOptions& options) {
    const auto report = Check(op, Scale, options);
    return report.ok() ? std::string() : report.status().ToString();
  };
  EXPECT_THAT(error("sofmax", {}), HasSubstr("did you mean 'softmax'"));
  EXPECT_THAT(error("op f(x: f32[N]) -> (y) { y[i] = z[i] }", {}), HasSubstr("unknown tensor 'z'"));
  EXPECT_THAT(error(kScale, CheckOptions().Where("M > 3")), HasSubstr("\"M > 3\""));
  EXPECT_THAT(error(kScale, CheckOptions().Where("N + 3")), HasSubstr("expected a condition"));
  EXPECT_THAT(error(kScale, CheckOptions().Where("N > 3", "N < 2")), HasSubstr("no sizes"));
  EXPECT_THAT(error(kScale, CheckOptions().Alignment(24)), HasSubstr("Alignment(24)"));
  EXPECT_THAT(error(kScale, CheckOptions().InPlace("x", "z")), HasSubstr("no result z"));
  EXPECT_THAT(error(kScale, CheckOptions().Rank("q", 2)), HasSubstr("no argument q"));
  EXPECT_THAT(error(kScale, CheckOptions().Trials(-1)), HasSubstr("Trials(-1): not at least 0"));
  EXPECT_THAT(error(kScale, CheckOptions().For(absl::Seconds(-1))),
              HasSubstr("For(-1s): not at least 0"));
  EXPECT_THAT(error(kScale, CheckOptions().Patience(absl::ZeroDuration())),
              HasSubstr("Patience(0): not above 0"));
  EXPECT_THAT(error(kScale, CheckOptions().Ulps(-1)), HasSubstr("Ulps(-1): not at least 0"));
  EXPECT_THAT(error(kScale, CheckOptions().Bound(std::nan(""))),
              HasSubstr("Bound(nan): not above 0"));
  EXPECT_THAT(error(kScale, CheckOptions().Values({.low = 2, .high = 1})), HasSubstr("above high"));
  const auto misuse = [](auto asks) {
    const auto report = Check(kScale, asks, CheckOptions());
    const auto isolated = Check(kScale, asks, CheckOptions().Isolated());
    EXPECT_EQ(report.status(), isolated.status());
    return report.status().ToString();
  };
  EXPECT_THAT(misuse([](const KernelCall& k) { k.dim("M"); }),
              HasSubstr("dimension 'M', did you mean 'N'? (there are N)"));
  EXPECT_THAT(misuse([](const KernelCall& k) { k.input<float>("y"); }), HasSubstr("argument 'y'"));
  EXPECT_THAT(misuse([](const KernelCall& k) { k.input<double>("x"); }),
              HasSubstr("as f64, but it is f32"));
  EXPECT_THAT(misuse([](const KernelCall& k) { k.param("k"); }), HasSubstr("$param '$k'"));
}

// ---- The matcher for results at hand

TEST(InsideBounds, TellsResults) {
  const Op op = *ParseOp(kScale);
  const Tensor x = Tensor::Of<float>({2}, {1, 2});
  RunInputs inputs;
  inputs.tensors["x"] = x;
  std::vector<Tensor> results;
  results.push_back(Tensor::Of<float>({2}, {2, 4}));
  EXPECT_THAT(results, InsideBounds(op, inputs));
  results[0] = Tensor::Of<float>({2}, {2, 5});
  EXPECT_THAT(results, Not(InsideBounds(op, inputs)));
  EXPECT_THAT(CheckInsideBounds(op, inputs, {results[0].view()}).ToString(), HasSubstr("y: "));
}

// As in Check: in f32 the squares overflow, in f64 they do not.
TEST(InsideBounds, TakesResultsOfWiderTypes) {
  const Op op = *ParseOp("op norm(x: f32[N]) -> (y) { y = sqrt(sum[i](square(x[i]))) }");
  const Tensor x = Tensor::Of<float>({2}, {3e30f, 4e30f});
  RunInputs inputs;
  inputs.tensors["x"] = x;
  for (float right : {5e30f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(CheckInsideBounds(op, inputs, {Tensor::Of<float>({}, {right}).view()}),
              absl::OkStatus())
        << right;
  }
  EXPECT_THAT(CheckInsideBounds(op, inputs, {Tensor::Of<float>({}, {6e30f}).view()}).ToString(),
              HasSubstr("y: "));
}

}  // namespace
}  // namespace nestor
