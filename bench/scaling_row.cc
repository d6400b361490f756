// A product of matrices should take as long for each multiply-add at any size: a size that is
// slower shows a tile, a tail or a block that is badly chosen there. The sizes run in turns, as
// engines of a row do (measure.cc), so that drift of the machine meets all of them alike; the
// reading is the slowest over the fastest, and its goal a budget.
#include "bench/scaling_row.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/buffers.h"
#include "bench/nestor_kernel.h"
#include "bench/programs.h"
#include "uops/invariant.h"

namespace nestor::bench {
namespace {

constexpr double kMost = 1.2;

absl::StatusOr<std::shared_ptr<Buffers>> Matrices(int64_t n) {
  NESTOR_ASSIGN_OR_RETURN(Buffers buffers,
                          Buffers::Create({{"a", DType::kF32, {n, n}},
                                           {"b", DType::kF32, {n, n}},
                                           {"c", DType::kF32, {n, n}, Fill::kOutput}}));
  return std::make_shared<Buffers>(std::move(buffers));
}

absl::StatusOr<Contender> Product(NestorKernel& kernel, int64_t n) {
  NESTOR_ASSIGN_OR_RETURN(const std::shared_ptr<Buffers> matrices, Matrices(n));
  const auto run = [&kernel, matrices] {
    const absl::Status status =
        kernel.Run({(*matrices)["a"], (*matrices)["b"]}, {(*matrices)["c"]});
    NESTOR_CHECK(status.ok(), status.ToString());
  };
  return Contender{absl::StrCat(n), run};
}

// One kernel for all sizes, each with matrices of its own.
absl::StatusOr<double> SlowestToFastest(absl::Span<const int64_t> sizes,
                                        const MeasureOptions& options) {
  NESTOR_ASSIGN_OR_RETURN(const std::unique_ptr<NestorKernel> kernel,
                          NestorKernel::Compile(MatrixProduct(), {}));
  std::vector<Contender> contenders;
  for (const int64_t n : sizes) {
    NESTOR_ASSIGN_OR_RETURN(Contender contender, Product(*kernel, n));
    contenders.push_back(std::move(contender));
  }
  const std::vector<Reading> readings = MeasureAlternating(contenders, options);
  std::vector<double> costs;  // of a multiply-add
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto n = static_cast<double>(sizes[i]);
    costs.push_back(readings[i].cost / (n * n * n));
  }
  const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
  return *most / *least;
}

}  // namespace

std::vector<int64_t> ScalingSizes() {
  return {64, 100, 128, 256, 500, 512, 1000, 1024, 2048, 4096};
}

RowResult MeasureScaling(absl::Span<const int64_t> sizes, const MeasureOptions& options) {
  RowResult result = WithBudget(kScalingRow, /*threads=*/1, "times", kMost);
  const absl::StatusOr<double> ratio = SlowestToFastest(sizes, options);
  if (ratio.ok()) result.readings.push_back({std::string(kNestor), *ratio});
  else result.failure = std::string(ratio.status().message());
  return result;
}

}  // namespace nestor::bench
