// The same measuring as for rows, without Nestor.
#include "bench/peaks.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "bench/buffers.h"
#include "bench/limit.h"
#include "bench/measure.h"

namespace nestor::bench {
namespace {

double Gigaflops(ThreadTeam& team) {
  constexpr double kMultiplyAdds = 1e9;
  const std::vector<Contender> contenders = ArithmeticContenders(kMultiplyAdds, team);
  if (contenders.empty()) return 0;
  return 2 * kMultiplyAdds / MeasureAlternating(contenders)[0].cost * 1e-9;
}

// All streams together.
double Gigabytes(const Traffic& traffic, ThreadTeam& team) {
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

Peaks MeasurePeaks(ThreadTeam& team) {
  return {Gigaflops(team), Gigabytes({{"x"}, {}}, team), Gigabytes({{"x"}, {"y"}}, team)};
}

}  // namespace nestor::bench
