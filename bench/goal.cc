// A goal is a list of terms, each "ratio times the speed of that engine", and the
// easiest one counts. So "2.5 times oneDNN, but nobody need beat the memory" and
// "half of f32's elements a second, where the arithmetic bounds it" are one rule,
// without a case for either. Costs are measured, not speeds: the least speed is the greatest of
// cost / ratio.
#include "bench/goal.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"

namespace nestor::bench {
namespace {

double RatioFor(const GoalTerm& term, int threads) {
  return threads == 1 ? term.on_one_thread : term.on_more_threads;
}

// The terms of the row and, where a limit was measured, the cap.
std::vector<GoalTerm> TermsOf(const RowResult& result) {
  std::vector<GoalTerm> terms = result.goal;
  if (result.CostOf(kLimit)) terms.push_back(OfLimit(kLimitCap));
  return terms;
}

}  // namespace

GoalTerm TimesPeer(absl::string_view engine, double ratio) {
  return {std::string(engine), ratio, std::min(ratio, 1.0)};
}
GoalTerm OfLimit(double fraction) { return {std::string(kLimit), fraction, fraction}; }

absl::optional<double> RowResult::CostOf(absl::string_view engine) const {
  for (const Reading& reading : readings) {
    if (reading.engine == engine) return reading.cost;
  }
  return absl::nullopt;
}

RowResult WithBudget(std::string row, int threads, std::string unit, double budget) {
  constexpr char kBudget[] = "budget";
  RowResult result;
  result.row = std::move(row);
  result.threads = threads;
  result.unit = std::move(unit);
  result.readings = {{kBudget, budget}};
  result.goal = {{kBudget, 1, 1}};
  return result;
}

void NameBestPeer(absl::Span<const std::string> peers, RowResult& result) {
  const Reading* best = nullptr;
  for (const Reading& reading : result.readings) {
    if (absl::c_linear_search(peers, reading.engine) && (!best || reading.cost < best->cost))
      best = &reading;
  }
  if (!best) return;
  for (GoalTerm& term : result.goal) {
    if (term.engine == kBestPeer) term.engine = best->engine;
  }
}

// A row whose goal names an engine that did not run has no verdict but "not met".
Verdict Judge(const RowResult& result) {
  Verdict verdict;
  if (result.goal.empty()) {
    verdict.met = result.failure.empty();
    return verdict;
  }
  for (const GoalTerm& term : TermsOf(result)) {
    const absl::optional<double> cost = result.CostOf(term.engine);
    if (!cost) return Verdict{};
    const double ratio = RatioFor(term, result.threads);
    if (verdict.allowed && *cost / ratio <= *verdict.allowed) continue;
    verdict.allowed = *cost / ratio;
    verdict.engine = term.engine;
    verdict.ratio = ratio;
  }
  const absl::optional<double> own = result.CostOf(kNestor);
  verdict.met = result.failure.empty() && own && *own <= *verdict.allowed;
  return verdict;
}

absl::optional<double> SpeedAgainst(const RowResult& result, absl::string_view engine) {
  const absl::optional<double> own = result.CostOf(kNestor), other = result.CostOf(engine);
  if (!own || !other || *own <= 0) return absl::nullopt;
  return *other / *own;
}

}  // namespace nestor::bench
