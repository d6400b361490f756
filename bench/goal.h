// The goal of a row of the benchmark, and whether the row met it.
#ifndef NESTOR_BENCH_GOAL_H_
#define NESTOR_BENCH_GOAL_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "bench/measure.h"

namespace nestor::bench {

// The engines that every row knows. The limit is that of walking each array from end to end
// (walking it in parts may be faster, which is reported but no goal), or that of the arithmetic,
// for a row that is bound by it.
inline constexpr absl::string_view kNestor = "Nestor";
inline constexpr absl::string_view kLimit = "limit";
inline constexpr absl::string_view kLimitInParts = "limit in parts";

// In a goal: the fastest of the row's peers, whichever that is (NameBestPeer).
inline constexpr absl::string_view kBestPeer = "best peer";

// No goal asks for more than this part of the measured limit: the rest is noise.
inline constexpr double kLimitCap = 0.92;

// "As fast as `ratio` times that engine."
struct GoalTerm {
  std::string engine;
  double on_one_thread = 1;
  double on_more_threads = 1;
};

// `ratio` times a peer on one thread; on more threads as fast as it, or `ratio` if that is less.
GoalTerm TimesPeer(absl::string_view engine, double ratio);
// `fraction` of the machine's limit, on any number of threads.
GoalTerm OfLimit(double fraction);

// One row, measured on a number of threads.
struct RowResult {
  std::string row;
  int threads = 1;
  std::string unit = "ms";        // of the readings' costs
  std::vector<Reading> readings;  // of Nestor, its peers and the limit
  std::vector<GoalTerm> goal;     // reached where the easiest term is; empty: only reported
  absl::optional<double> max_difference;
  std::string failure;  // why there is no reading of Nestor, or why it does not count

  // nullopt where that engine has no reading.
  absl::optional<double> CostOf(absl::string_view engine) const;
};

// A result whose goal is to cost no more than `budget`, in that unit: it has a reading of an engine
// with that cost.
RowResult WithBudget(std::string row, int threads, std::string unit, double budget);

// Replaces kBestPeer in the goal by the fastest of `peers`; leaves it if none has a reading.
void NameBestPeer(absl::Span<const std::string> peers, RowResult& result);

struct Verdict {
  bool met = false;
  // The cost that Nestor may have; nullopt where a reading that the goal refers to is missing, or
  // where there is no goal.
  absl::optional<double> allowed;
  // The term that allows that cost, with the ratio for this number of threads.
  std::string engine;
  double ratio = 0;
};

// The goal is met where Nestor's speed reaches the least of ratio * speed over the
// terms, and over kLimitCap of the limit where that was measured. A failure or a
// missing reading never meets a goal; a row without a goal always does, unless it
// failed.
Verdict Judge(const RowResult& result);

// How many times as fast as `engine` Nestor was; nullopt where one is missing.
absl::optional<double> SpeedAgainst(const RowResult& result, absl::string_view engine);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_GOAL_H_
