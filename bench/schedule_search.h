// A small search for a schedule that is faster than the default one.
#ifndef NESTOR_BENCH_SCHEDULE_SEARCH_H_
#define NESTOR_BENCH_SCHEDULE_SEARCH_H_

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/measure.h"
#include "jit/schedule_options.h"

namespace nestor::bench {

struct SearchOptions {
  double seconds = 30;       // no candidate is looked at later than this after the start
  double least_gain = 0.03;  // of the time, for which another schedule is taken
  std::function<double()> now = SteadySeconds;
};

// The time of a call by `candidate` over that by `best`; 1, without measuring, where both are
// the same program.
using TimeRatio = absl::FunctionRef<absl::StatusOr<double>(const jit::ChosenValues& best,
                                                           const jit::ChosenValues& candidate)>;

// Coordinate descent from the default schedule: tries the values of one choice after the other,
// keeps those that are faster than the best so far, and begins again until none is. In the end,
// choices that no longer help are left out. Empty where the default is as fast as any. An error of
// `ratio` ends it.
absl::StatusOr<jit::ChosenValues> SearchSchedule(absl::Span<const jit::ScheduleChoice> choices,
                                                 TimeRatio ratio,
                                                 const SearchOptions& options = {});

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_SCHEDULE_SEARCH_H_
