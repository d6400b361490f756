// A budget is an engine like any other, except that its cost is not measured: a goal of 1 times its
// "speed" allows no more milliseconds or bytes than the budget.
#include "bench/compile_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/nestor_kernel.h"
#include "bench/programs.h"
#include "uops/invariant.h"

namespace nestor::bench {
namespace {

constexpr int kRepetitions = 20;

// One compilation of all the steps; the code is that of the largest.
struct Compilation {
  double ms = 0;
  absl::optional<int64_t> code_bytes;
};

absl::StatusOr<Compilation> CompileOnce(absl::Span<const Step> steps, int threads) {
  Compilation compilation;
  for (const Step& step : steps) {
    NESTOR_ASSIGN_OR_RETURN(
        const std::unique_ptr<NestorKernel> kernel,
        NestorKernel::Compile(step.notation, {.threads = threads, .gradient = step.gradient}));
    compilation.ms += kernel->compile_ms();
    const absl::optional<int64_t> bytes = kernel->code_bytes();
    if (bytes) compilation.code_bytes = std::max(*bytes, compilation.code_bytes.value_or(0));
  }
  return compilation;
}

// The median of several compilations; the size of the code is the same in each.
absl::Status AddReadings(const CompileRow& row, RowResult& time, RowResult& size) {
  std::vector<double> ms;
  absl::optional<int64_t> code_bytes;
  for (int i = 0; i < kRepetitions; ++i) {
    NESTOR_ASSIGN_OR_RETURN(const Compilation compilation, CompileOnce(row.steps, time.threads));
    ms.push_back(compilation.ms);
    code_bytes = compilation.code_bytes;
  }
  time.readings.push_back({std::string(kNestor), Median(ms)});
  if (!row.most_code_bytes) return absl::OkStatus();
  if (code_bytes) {
    size.readings.push_back({std::string(kNestor), static_cast<double>(*code_bytes)});
  } else {
    size.failure = "there is no machine code";
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<CompileRow> CompileRows() {
  return {
      {"chain", {{SigmoidChain(DType::kF32)}}, 0.5},
      {"softmax", {{Softmax()}}, 1},
      {"layer_norm", {{LayerNorm()}}, 1},
      {"softmax with gradient", {{Softmax()}, {Softmax(), /*gradient=*/true}}, 2},
      {"layer_norm with gradient", {{LayerNorm()}, {LayerNorm(), /*gradient=*/true}}, 2},
      {"matmul", {{MatrixProduct()}}, 3, absl::nullopt},
      {"conv with gradients",
       {{Convolution(1, 1)}, {Convolution(1, 1), /*gradient=*/true}},
       8,
       absl::nullopt},
  };
}

std::vector<RowResult> MeasureCompiling(const CompileRow& row, int threads) {
  RowResult time = WithBudget(absl::StrCat("compile ", row.name), threads, "ms", row.most_ms);
  RowResult size = WithBudget(absl::StrCat("code of ", row.name), threads, "bytes",
                              row.most_code_bytes.value_or(0));
  const absl::Status status = AddReadings(row, time, size);
  if (!status.ok()) time.failure = size.failure = std::string(status.message());
  if (!row.most_code_bytes) return {time};
  return {time, size};
}

// A copy of one element: all of its time is the call's.
RowResult MeasureCall(int threads) {
  RowResult result;
  result.row = kCallRow;
  result.threads = threads;
  result.unit = "ns";
  const auto kernel =
      NestorKernel::Compile("op f(x: f32[N]) -> (y) { y[i] = x[i] }", {.threads = threads});
  if (!kernel.ok()) {
    result.failure = std::string(kernel.status().message());
    return result;
  }
  const float x = 1;
  float y = 0;
  const TensorView input = ViewOf(&x, {1}), output = ViewOf(&y, {1});
  const auto run = [&] {
    const absl::Status status = (*kernel)->Run({input}, {output});
    NESTOR_CHECK(status.ok(), status.ToString());
  };
  result.readings = MeasureAlternating({{std::string(kNestor), run}});
  result.readings[0].cost *= 1e9;
  return result;
}

}  // namespace nestor::bench
