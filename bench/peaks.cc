// Measures in the same way as for rows, without Nestor.
#include "bench/peaks.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"
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

constexpr int64_t kBeyondCaches = 16 << 20;  // elements

// The rate of all streams together, of `count` elements each.
double Gigabytes(const Traffic& traffic, int64_t count, ThreadTeam& team) {
  absl::StatusOr<Buffers> buffers =
      Buffers::Create({{"x", DType::kF32, {count}}, {"y", DType::kF32, {count}, Fill::kOutput}});
  if (!buffers.ok()) return 0;
  const std::vector<Contender> contenders = LimitContenders({traffic}, *buffers, team);
  if (contenders.empty()) return 0;
  double seconds = std::numeric_limits<double>::infinity();
  for (const Reading& reading : MeasureAlternating(contenders))
    seconds = std::min(seconds, reading.cost);
  const size_t streams = traffic.reads.size() + traffic.writes.size();
  return 4.0 * static_cast<double>(count * static_cast<int64_t>(streams)) / seconds * 1e-9;
}

}  // namespace

Peaks MeasurePeaks(ThreadTeam& team) {
  return {Gigaflops(team), Gigabytes({{"x"}, {}}, kBeyondCaches, team),
          Gigabytes({{"x"}, {"y"}}, kBeyondCaches, team)};
}

// Half of each cache is read: the cache before it, if it is much smaller, holds little of that.
std::vector<CacheRate> MeasureCacheRates(absl::Span<const int64_t> bytes) {
  constexpr absl::string_view kNames[] = {"first cache", "second cache", "last cache"};
  ThreadTeam team(1);
  std::vector<CacheRate> rates;
  for (size_t level = 0; level < std::min(bytes.size(), std::size(kNames)); ++level) {
    if (bytes[level] <= (rates.empty() ? 0 : rates.back().bytes)) continue;
    const int64_t count = std::min(bytes[level] / 8, kBeyondCaches);
    rates.push_back(
        {std::string(kNames[level]), bytes[level], Gigabytes({{"x"}, {}}, count, team)});
  }
  return rates;
}

}  // namespace nestor::bench
