// The roofline of Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model" (2009), with a
// roof for each cache.
#include "cli/bound.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "fusion/bytes_walked.h"
#include "fusion/statistics.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

constexpr double kLeastShare = 0.5;

struct Load {
  std::string resource;
  double seconds;
};

double SecondsOf(double bytes, double gigabytes) { return gigabytes > 0 ? bytes / (gigabytes * 1e9) : 0; }

// A multiply-add is two operations of the peak, and one result of four bytes. Processors have about as many pipes for
// other operations as for products.
double SecondsOfArithmetic(const fusion::Statistics& statistics, const Rates& rates) {
  const double gigabytes = rates.peaks.gigaflops / 2 * 4;
  return std::max(SecondsOf(statistics.product_bytes, gigabytes), SecondsOf(statistics.result_bytes, 2 * gigabytes));
}

int64_t RegisterBytes(jit::Isa isa) { return (isa == jit::Isa::kAvx512 ? 32 : 16) * jit::VectorBytes(isa); }

// What calls that follow each other fetch from beyond a cache: nothing if all that a call touches stays in it.
double BytesFromBeyond(int64_t cache_bytes, const loop::SizedProgram& sized, double touched_bytes) {
  if (touched_bytes <= static_cast<double>(cache_bytes)) return 0;
  return fusion::EstimateBytesWalked(sized, cache_bytes).Total();
}

// `touched_bytes`: of the whole call, by each thread.
std::vector<Load> LoadsOf(const loop::SizedProgram& sized, const fusion::Statistics& statistics, double touched_bytes,
                          const Rates& rates) {
  std::vector<Load> loads = {{"compute", SecondsOfArithmetic(statistics, rates)}};
  int64_t nearer = RegisterBytes(rates.isa);
  for (const bench::CacheRate& cache : rates.caches) {
    const double bytes = BytesFromBeyond(nearer, sized, touched_bytes);
    loads.push_back({cache.name, SecondsOf(bytes, cache.gigabytes * rates.threads)});
    nearer = cache.bytes;
  }
  loads.push_back({"memory", SecondsOf(BytesFromBeyond(nearer, sized, touched_bytes), rates.peaks.copy_gigabytes)});
  return loads;
}

}  // namespace

absl::StatusOr<Bound> BoundOf(const loop::Program& program, const loop::Sizes& sizes, double touched_bytes,
                              double seconds, const Rates& rates) {
  NESTOR_ASSIGN_OR_RETURN(const fusion::Statistics statistics, fusion::StatisticsOf(program, sizes));
  NESTOR_ASSIGN_OR_RETURN(const loop::SizedProgram sized, loop::SizedProgram::Create(program, sizes));
  const std::vector<Load> loads = LoadsOf(sized, statistics, touched_bytes / rates.threads, rates);
  const auto most = absl::c_max_element(loads, [](const Load& a, const Load& b) { return a.seconds < b.seconds; });
  const double share = seconds > 0 ? std::min(most->seconds / seconds, 1.0) : 0;
  return Bound{share < kLeastShare ? "latency" : most->resource, share};
}

absl::StatusOr<double> BytesTouched(const loop::Program& program, const loop::Sizes& sizes) {
  NESTOR_ASSIGN_OR_RETURN(const fusion::Statistics statistics, fusion::StatisticsOf(program, sizes));
  return static_cast<double>(statistics.input_bytes) + static_cast<double>(statistics.output_bytes) +
         static_cast<double>(statistics.arena_bytes);
}

loop::Program PartOf(loop::Program program, absl::Span<const size_t> items) {
  size_t number = 0;
  for (loop::Block& block : program.blocks) {
    loop::Scope kept;
    for (loop::Item& item : block.body) {
      if (absl::c_binary_search(items, number++)) kept.push_back(std::move(item));
    }
    block.body = std::move(kept);
  }
  return program;
}

}  // namespace nestor::cli
