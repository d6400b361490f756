// Which part of a program takes the time. The kernel reports the beginning of each of its
// functions; a function ends where the next begins. Medians over calls are taken per function, so
// their sum need not be the median of the calls.
#include "cli/block_times.h"

#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "bench/measure.h"
#include "jit/kernel.h"
#include "loop_ir/dependence.h"
#include "loop_ir/program.h"
#include "uops/index/index_expr.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

// Calls are measured until there are so many, or so much time has passed.
constexpr int kMostCalls = 200;
constexpr double kMostSeconds = 1;

constexpr double kLeastPart = 0.01;  // share of the time from which a block has its own figure

// None where a bound depends on a loop or on elements.
absl::optional<int64_t> IterationsOf(const loop::Program& program, const loop::Loop& loop,
                                     const Binding& binding) {
  const auto value_of = [&](const IndexNode& node,
                            absl::Span<const int64_t>) -> absl::optional<int64_t> {
    if (node.kind != IndexKind::kSymbol) return absl::nullopt;
    return binding.Find(program.pool.SymbolNameAt(node.value));
  };
  const auto begin = EvaluateIndex(program.pool, loop.begin, value_of);
  const auto end = EvaluateIndex(program.pool, loop.end, value_of);
  if (!begin || !end) return absl::nullopt;
  return *end > *begin ? (*end - *begin + loop.step - 1) / loop.step : 0;
}

// The iterations of a parallel loop together with the loops right inside that are cut into pieces
// with it.
absl::optional<int64_t> AllIterationsOf(const loop::Program& program, const loop::Loop& loop,
                                        const Binding& binding) {
  const auto iterations = IterationsOf(program, loop, binding);
  const loop::Loop* inside = loop.body.size() == 1 ? loop.body[0].As<loop::Loop>() : nullptr;
  if (!iterations || !loop.attributes.parallel || inside == nullptr || !inside->attributes.parallel)
    return iterations;
  const auto of_inside = AllIterationsOf(program, *inside, binding);
  return of_inside ? absl::make_optional(*iterations * *of_inside) : absl::nullopt;
}

// Describes items number `first` up to `last`.
std::string WhatIsDone(const loop::Program& program, size_t first, size_t last,
                       const Binding& binding) {
  std::set<std::string> written;
  for (size_t i = first; i < last; ++i) {
    const loop::Footprint footprint = FootprintOf(program, program.body[i]);
    for (const auto& tensors : {footprint.writes, footprint.accumulates}) {
      for (loop::TensorId tensor : tensors) written.insert(program[tensor].name);
    }
  }
  std::string what = absl::StrJoin(written, ", ");
  const loop::Loop* loop = program.body[first].As<loop::Loop>();
  const auto iterations =
      loop == nullptr ? absl::nullopt : AllIterationsOf(program, *loop, binding);
  if (!iterations) return what;
  absl::StrAppend(&what, ": ", *iterations,
                  loop->attributes.parallel ? " parallel iteration" : " iteration",
                  *iterations == 1 ? "" : "s");
  return what;
}

// The functions of the kernel that ran, and their times in each call, by the first item of each.
struct Watched {
  const jit::Kernel* kernel = nullptr;
  std::map<int, std::vector<double>> times;
};

// The first call prepares the workspace and is not counted.
absl::StatusOr<Watched> Watch(const jit::Executable& executable, const jit::Arguments& arguments) {
  jit::Workspace workspace;
  NESTOR_RETURN_IF_ERROR(executable.Run(arguments, &workspace));
  Watched watched;
  std::vector<std::pair<int, double>> begins;  // by function
  const auto note = [&](const jit::Kernel& runs, int first_item) {
    watched.kernel = &runs;
    begins.push_back({first_item, bench::SteadySeconds()});
  };
  const jit::Executable::Watcher watcher(note);
  const double start = bench::SteadySeconds();
  for (int call = 0;
       call < kMostCalls && (call == 0 || bench::SteadySeconds() < start + kMostSeconds); ++call) {
    begins.clear();
    NESTOR_RETURN_IF_ERROR(
        executable.RunWatched(arguments, &workspace, {nullptr, false, &watcher}));
    begins.push_back({-1, bench::SteadySeconds()});
    std::map<int, double> of_call;
    for (size_t i = 0; i + 1 < begins.size(); ++i)
      of_call[begins[i].first] += begins[i + 1].second - begins[i].second;
    for (const auto& [item, seconds] : of_call) watched.times[item].push_back(seconds);
  }
  return watched;
}

}  // namespace

// A function covers the items from its own first to the next one's; those of little time get no
// bound.
absl::StatusOr<CallTimes> TimesOfBlocks(const jit::Executable& executable,
                                        const jit::Arguments& arguments, const Binding& binding,
                                        const Rates& rates) {
  NESTOR_ASSIGN_OR_RETURN(const Watched watched, Watch(executable, arguments));
  CallTimes call;
  if (watched.kernel == nullptr) return call;  // no results: nothing runs
  const loop::Program& program = watched.kernel->program();
  // A program may run at sizes at which the model cannot count its bytes.
  const absl::StatusOr<double> touched = BytesTouched(program, binding.symbols);
  const auto bound_of = [&](absl::Span<const size_t> part, double time) {
    if (!touched.ok()) return Bound();
    return BoundOf(PartOf(program, part), binding.symbols, *touched, time, rates).value_or(Bound());
  };
  double seconds = 0;
  for (const auto& [item, times] : watched.times) seconds += bench::Median(times);
  std::vector<size_t> all;
  for (auto block = watched.times.begin(); block != watched.times.end(); ++block) {
    const auto next = std::next(block);
    const auto first = static_cast<size_t>(block->first);
    const size_t last =
        next == watched.times.end() ? program.body.size() : static_cast<size_t>(next->first);
    std::vector<size_t> own(last - first);
    absl::c_iota(own, first);
    all.insert(all.end(), own.begin(), own.end());
    BlockTime time{static_cast<int>(call.blocks.size()),
                   bench::Median(block->second),
                   WhatIsDone(program, first, last, binding),
                   {}};
    if (time.seconds >= seconds * kLeastPart) time.bound = bound_of(own, time.seconds);
    call.blocks.push_back(std::move(time));
  }
  call.bound = bound_of(all, seconds);
  return call;
}

void AddBound(const Bound& bound, const std::string& prefix, Figures& figures) {
  if (bound.by.empty()) return;
  figures.push_back({prefix + "bound_by", bound.by, /*is_text=*/true});
  figures.push_back({prefix + "bound_share", absl::StrFormat("%.2f", bound.share)});
}

// Blocks that take next to no time are summed up: a line for each would hide the others.
void AddBlocks(const std::vector<BlockTime>& blocks, Figures& figures) {
  double all = 0, others = 0;
  for (const BlockTime& block : blocks) all += block.seconds;
  const auto text_of = [](double seconds) { return absl::StrFormat("%.6g", seconds * 1e6); };
  for (const BlockTime& block : blocks) {
    if (block.seconds < all * kLeastPart) {
      others += block.seconds;
      continue;
    }
    figures.push_back({absl::StrCat("block_", block.number, "_us"), text_of(block.seconds)});
    figures.push_back({absl::StrCat("block_", block.number), block.what, /*is_text=*/true});
    AddBound(block.bound, absl::StrCat("block_", block.number, "_"), figures);
  }
  figures.push_back({"other_blocks_us", text_of(others)});
}

}  // namespace nestor::cli
