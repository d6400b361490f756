// The same measuring as for rows, without Nestor: every rate is the best of its
// variants.
#include "bench/machine.h"

#include <cblas.h>
#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/arithmetic_peak.h"
#include "bench/buffers.h"
#include "bench/limit.h"
#include "bench/measure.h"

namespace nestor::bench {
namespace {

double GigaflopsOfPeak(ThreadTeam& team) {
  double best = 0;
  for (const PeakVariant& variant : PeakVariants()) {
    const Contender contender{"peak", [&] { team.Run([&](int) { variant.run(); }); }};
    const double seconds = MeasureAlternating({contender})[0].cost;
    best = std::max(best, variant.flops * team.size() / seconds * 1e-9);
  }
  return best;
}

double GigaflopsOfMatrixProduct() {
  constexpr int kSize = 1024;
  const std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f);
  std::vector<float> c(kSize * kSize);
  const Contender contender{"product", [&] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSize, kSize, kSize, 1, a.data(), kSize, b.data(), kSize, 0,
                c.data(), kSize);
  }};
  return 2.0 * kSize * kSize * kSize / MeasureAlternating({contender})[0].cost * 1e-9;
}

// Of 64 MiB a stream, all streams together.
double GigabytesOf(const Traffic& traffic, ThreadTeam& team) {
  constexpr int64_t kCount = 16 << 20;
  absl::StatusOr<Buffers> buffers =
      Buffers::Create({{"x", DType::kF32, {kCount}}, {"y", DType::kF32, {kCount}, Fill::kOutput}});
  if (!buffers.ok()) return 0;
  const std::vector<Contender> contenders = LimitContenders({traffic}, *buffers, team);
  if (contenders.empty()) return 0;
  double seconds = std::numeric_limits<double>::infinity();
  for (const Reading& reading : MeasureAlternating(contenders)) seconds = std::min(seconds, reading.cost);
  const size_t streams = traffic.reads.size() + traffic.writes.size();
  return 4.0 * kCount * streams / seconds * 1e-9;
}

}  // namespace

void SetOpenBlasThreads(int threads) { openblas_set_num_threads(threads); }

std::string MachineText(ThreadTeam& team) {
  return absl::StrFormat(
      "%d thread%s: multiply-adds %.1f GFLOP/s (OpenBLAS product 1024^3 %.1f), "
      "read %.1f GB/s, read and write %.1f GB/s\n",
      team.size(), team.size() == 1 ? "" : "s", GigaflopsOfPeak(team), GigaflopsOfMatrixProduct(),
      GigabytesOf({{"x"}, {}}, team), GigabytesOf({{"x"}, {"y"}}, team));
}

}  // namespace nestor::bench
