// Each kind of sweep (vector width, stores, parts) walks all of the traffic, so
// that the kinds can be compared; the measuring keeps the best. Each is run once by
// the whole team, and once by one thread, which is faster where waking the others
// takes longer than the work. Arithmetic is divided in the same way; of what would take long,
// the first milliseconds stand for all.
#include "bench/limit.h"

#include <algorithm>
#include <cmath>

#include "bench/arithmetic_peak.h"
#include "bench/goal.h"
#include "bench/sweep.h"
#include "uops/invariant.h"

namespace nestor::bench {
namespace {

struct BoundSweep {
  Streams streams;
  SweepFunction sweep;
};
// One way to walk all of the traffic.
struct Kind {
  std::string engine;
  std::vector<BoundSweep> sweeps;
};

char* BytesOf(Tensor& tensor, size_t bytes) {
  NESTOR_CHECK(static_cast<size_t>(tensor.num_bytes()) == bytes, "streams of different sizes");
  return static_cast<char*>(tensor.data());
}

Streams StreamsOf(const Traffic& traffic, Buffers& buffers) {
  Streams streams;
  streams.bytes = buffers[traffic.reads[0]].num_bytes();
  for (const std::string& name : traffic.reads) streams.reads.push_back(BytesOf(buffers[name], streams.bytes));
  for (const std::string& name : traffic.writes) streams.writes.push_back(BytesOf(buffers[name], streams.bytes));
  return streams;
}

// All traffic writes, or none does, so that there are the same variants for all.
std::vector<Kind> KindsOf(absl::Span<const Traffic> all, Buffers& buffers) {
  std::vector<Kind> kinds;
  for (const Traffic& traffic : all) {
    const std::vector<SweepVariant> variants = SweepVariants(traffic.reads.size(), traffic.writes.size());
    NESTOR_CHECK(kinds.empty() || kinds.size() == variants.size(), "traffic with and without writes");
    kinds.resize(variants.size());
    for (size_t i = 0; i < variants.size(); ++i) {
      kinds[i].engine = std::string(variants[i].parts == 1 ? kLimit : kLimitInParts);
      kinds[i].sweeps.push_back({StreamsOf(traffic, buffers), variants[i].sweep});
    }
  }
  return kinds;
}

void Run(absl::Span<const BoundSweep> sweeps, int member, int team_size) {
  for (const auto& [streams, sweep] : sweeps) {
    const SweepSlice slice = SliceFor(streams.bytes, member, team_size);
    sweep(streams, slice.begin, slice.end);
  }
}

// Of one thread: some ten milliseconds.
constexpr double kMostMultiplyAdds = 4e8;

Contender Multiplying(const PeakVariant& variant, double multiply_adds, int threads, ThreadTeam& team) {
  const double share = std::min(multiply_adds / threads, kMostMultiplyAdds);
  const auto steps = static_cast<int64_t>(std::ceil(share / variant.multiply_adds));
  const double part = static_cast<double>(steps * variant.multiply_adds * threads) / multiply_adds;
  const auto run = [run = variant.run, steps](int) { run(steps); };
  if (threads == 1) return {std::string(kLimit), [run] { run(0); }, part};
  return {std::string(kLimit), [run, &team] { team.Run(run); }, part};
}

}  // namespace

std::vector<Contender> LimitContenders(absl::Span<const Traffic> traffic, Buffers& buffers, ThreadTeam& team) {
  std::vector<Contender> contenders;
  for (const auto& [engine, sweeps] : KindsOf(traffic, buffers)) {
    contenders.push_back({engine, [sweeps = sweeps] { Run(sweeps, 0, 1); }});
    if (team.size() == 1) continue;
    contenders.push_back({engine, [sweeps = sweeps, &team] {
                            team.Run([&](int member) { Run(sweeps, member, team.size()); });
                          }});
  }
  return contenders;
}

std::vector<Contender> ArithmeticContenders(double multiply_adds, ThreadTeam& team) {
  std::vector<Contender> contenders;
  if (multiply_adds <= 0) return contenders;
  for (const PeakVariant& variant : PeakVariants()) {
    contenders.push_back(Multiplying(variant, multiply_adds, 1, team));
    if (team.size() > 1) contenders.push_back(Multiplying(variant, multiply_adds, team.size(), team));
  }
  return contenders;
}

}  // namespace nestor::bench
