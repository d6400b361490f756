// Each kind of sweep (vector width, stores, parts) walks all of the traffic, so
// that the kinds can be compared; the measuring keeps the best. Each is run once by
// the whole team, and once by one thread, which is faster where waking the others
// takes longer than the work. Arithmetic is divided in the same way; if it would take long, its
// first milliseconds stand for all of it.
#include "bench/limit.h"

#include <algorithm>
#include <cmath>

#include "bench/arithmetic_peak.h"
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
  for (const std::string& name : traffic.reads)
    streams.reads.push_back(BytesOf(buffers[name], streams.bytes));
  for (const std::string& name : traffic.writes)
    streams.writes.push_back(BytesOf(buffers[name], streams.bytes));
  return streams;
}

// Either all traffic writes or none does, so that there are the same variants for all.
std::vector<Kind> KindsOf(absl::Span<const Traffic> all, Buffers& buffers) {
  std::vector<Kind> kinds;
  for (const Traffic& traffic : all) {
    const std::vector<SweepVariant> variants =
        SweepVariants(traffic.reads.size(), traffic.writes.size());
    NESTOR_CHECK(kinds.empty() || kinds.size() == variants.size(),
                 "traffic with and without writes");
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

// For one thread: some ten milliseconds.
constexpr double kMostOperations = 4e8;

Contender Computing(absl::string_view engine, const PeakVariant& variant, double operations,
                    int threads, ThreadTeam& team) {
  const double share = std::min(operations / threads, kMostOperations);
  const auto steps =
      static_cast<int64_t>(std::ceil(share / static_cast<double>(variant.operations)));
  const double part = static_cast<double>(steps * variant.operations * threads) / operations;
  const auto run = [run = variant.run, steps](int) { run(steps); };
  if (threads == 1) return {std::string(engine), [run] { run(0); }, part};
  return {std::string(engine), [run, &team] { team.Run(run); }, part};
}

void AddComputing(absl::string_view engine, Arithmetic kind, double operations, ThreadTeam& team,
                  std::vector<Contender>& contenders) {
  if (operations <= 0) return;
  for (const PeakVariant& variant : PeakVariants(kind)) {
    contenders.push_back(Computing(engine, variant, operations, 1, team));
    if (team.size() > 1)
      contenders.push_back(Computing(engine, variant, operations, team.size(), team));
  }
}

constexpr absl::string_view kOfOperations = "limit of operations",
                            kOfProducts = "limit of products", kOfQuotients = "limit of quotients";

}  // namespace

// On one thread and on all: some machines move bytes fastest with few.
std::vector<Contender> LimitContenders(absl::Span<const Traffic> traffic, Buffers& buffers,
                                       ThreadTeam& team) {
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
  AddComputing(kLimit, Arithmetic::kProducts, multiply_adds, team, contenders);
  return contenders;
}

std::vector<Contender> OperationContenders(const Operations& operations, ThreadTeam& team) {
  std::vector<Contender> contenders;
  AddComputing(kOfOperations, Arithmetic::kAny, operations.all, team, contenders);
  AddComputing(kOfProducts, Arithmetic::kProducts, operations.products, team, contenders);
  AddComputing(kOfQuotients, Arithmetic::kQuotients, operations.quotients, team, contenders);
  return contenders;
}

void JoinLimits(RowResult& result) {
  for (Reading& reading : result.readings) {
    if (reading.engine != kLimit) continue;
    for (const absl::string_view engine : {kOfOperations, kOfProducts, kOfQuotients}) {
      reading.cost = std::max(reading.cost, result.CostOf(engine).value_or(0));
    }
  }
}

}  // namespace nestor::bench
