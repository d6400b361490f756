// The roofline of Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance
// Model" (2009), with a roof for each cache.
#include "cli/bound.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "fusion/cost/bytes_walked.h"
#include "fusion/cost/statistics.h"
#include "loop_ir/dependence.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

using loop::Storage;
using loop::TensorId;

constexpr double kLeastShare = 0.5;

struct Load {
  std::string resource;
  double seconds;
};

double SecondsOf(double bytes, double gigabytes) {
  return gigabytes > 0 ? bytes / (gigabytes * 1e9) : 0;
}

// A multiply-add is two operations of the peak, and one result of four bytes. Processors have about
// as many pipes for other operations as for products.
double SecondsOfArithmetic(const loop::Statistics& statistics, const Rates& rates) {
  const double gigabytes = rates.peaks.gigaflops / 2 * 4;
  return std::max(SecondsOf(statistics.product_bytes, gigabytes),
                  SecondsOf(statistics.result_bytes, 2 * gigabytes));
}

int64_t RegisterBytes(jit::Isa isa) { return jit::FactsOf(isa).vectors * jit::VectorBytes(isa); }

// A tensor that this part of a program takes from another part, or makes for one (PartOf).
struct PassedOn {
  TensorId tensor;
  Storage storage;
  int64_t bytes;
};

std::vector<PassedOn> PassedOnIn(const loop::SizedProgram& sized) {
  const loop::Program& program = sized.program();
  std::vector<PassedOn> passed;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const TensorId id{static_cast<int32_t>(i)};
    const Storage storage = program[id].storage;
    if (storage != Storage::kInput && storage != Storage::kOutput) continue;
    if (absl::c_linear_search(program.inputs, id) || absl::c_linear_search(program.outputs, id))
      continue;
    const absl::StatusOr<int64_t> bytes = sized.Bytes(id);
    if (bytes.ok()) passed.push_back({id, storage, *bytes});
  }
  return passed;
}

// Estimates what successive calls fetch from beyond a cache: nothing if all memory that a call
// touches fits into it. A tensor that one part of a program passes on to another stays there, too,
// if it fits.
class CacheModel {
 public:
  // `touched_bytes`: those that each thread touches in the whole call. REQUIRES: `sized` is
  // of `program`.
  CacheModel(loop::Program& program, const loop::SizedProgram& sized, double touched_bytes)
      : program_(program), sized_(sized), touched_bytes_(touched_bytes),
        passed_on_(PassedOnIn(sized)) {}

  double BytesFromBeyond(int64_t cache_bytes) {
    if (touched_bytes_ <= static_cast<double>(cache_bytes)) return 0;
    for (const PassedOn& passed : passed_on_) {
      program_[passed.tensor].storage =
          passed.bytes <= cache_bytes ? Storage::kTemp : passed.storage;
    }
    return loop::EstimateBytesWalked(sized_, cache_bytes).Total();
  }

 private:
  loop::Program& program_;
  const loop::SizedProgram& sized_;
  const double touched_bytes_;
  const std::vector<PassedOn> passed_on_;
};

// The time that each resource would take alone: arithmetic, then what comes from each level of the
// memory, which is what the nearer levels do not hold.
std::vector<Load> LoadsOf(CacheModel& model, const loop::Statistics& statistics,
                          const Rates& rates) {
  std::vector<Load> loads = {{"compute", SecondsOfArithmetic(statistics, rates)}};
  int64_t nearer = RegisterBytes(rates.isa);
  for (const bench::CacheRate& cache : rates.caches) {
    const double bytes = model.BytesFromBeyond(nearer);
    loads.push_back({cache.name, SecondsOf(bytes, cache.gigabytes * rates.threads)});
    nearer = cache.bytes;
  }
  loads.push_back({"memory", SecondsOf(model.BytesFromBeyond(nearer), rates.peaks.copy_gigabytes)});
  return loads;
}

}  // namespace

// The resource that is busy for the longest; where even that is idle for most of the time, latency.
// (The roofline model: Williams, Waterman and Patterson, 2009.)
absl::StatusOr<Bound> BoundOf(loop::Program program, const loop::Sizes& sizes, double touched_bytes,
                              double seconds, const Rates& rates) {
  NESTOR_ASSIGN_OR_RETURN(const loop::Statistics statistics, loop::StatisticsOf(program, sizes));
  NESTOR_ASSIGN_OR_RETURN(const loop::SizedProgram sized,
                          loop::SizedProgram::Create(program, sizes));
  CacheModel model(program, sized, touched_bytes / rates.threads);
  const std::vector<Load> loads = LoadsOf(model, statistics, rates);
  const auto most = absl::c_max_element(
      loads, [](const Load& a, const Load& b) { return a.seconds < b.seconds; });
  const double share = seconds > 0 ? std::min(most->seconds / seconds, 1.0) : 0;
  return Bound{share < kLeastShare ? "latency" : most->resource, share};
}

absl::StatusOr<double> BytesTouched(const loop::Program& program, const loop::Sizes& sizes) {
  NESTOR_ASSIGN_OR_RETURN(const loop::Statistics statistics, loop::StatisticsOf(program, sizes));
  return static_cast<double>(statistics.input_bytes) +
         static_cast<double>(statistics.output_bytes) + static_cast<double>(statistics.arena_bytes);
}

// The part as a program of its own: temporaries that other parts read are its outputs, and those
// that others write its inputs, so that they count as moved through memory.
loop::Program PartOf(loop::Program program, absl::Span<const size_t> items) {
  loop::Scope declarations, kept, rest;
  for (size_t i = 0; i < program.body.size(); ++i) {
    loop::Item& item = program.body[i];
    if (item.As<loop::Declaration>() != nullptr) declarations.push_back(std::move(item));
    else (absl::c_binary_search(items, i) ? kept : rest).push_back(std::move(item));
  }
  const loop::Footprint others = FootprintOf(program, rest), own = FootprintOf(program, kept);
  program.body = std::move(declarations);
  Append(program.body, std::move(kept));
  for (const TensorId tensor : own.writes) {
    Storage& storage = program[tensor].storage;
    if (storage == Storage::kTemp && others.Touches(tensor)) storage = Storage::kOutput;
  }
  for (const TensorId tensor : own.reads) {
    if (others.Changes(tensor) && !own.Changes(tensor)) program[tensor].storage = Storage::kInput;
  }
  return program;
}

}  // namespace nestor::cli
