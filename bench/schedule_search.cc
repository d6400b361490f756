// Coordinate descent over a dozen numbers. They interact, but not much: the search goes along one
// at a time, and around again until a whole round finds nothing. Candidates are compared with the
// best so far in turns (measure.cc), so that the machine's drift cannot make one look better; a
// gain below `least_gain` is taken for noise. A search that stops early returns the best candidate
// so far.
#include "bench/schedule_search.h"

#include <algorithm>
#include <string>
#include <utility>

#include "uops/invariant.h"

namespace nestor::bench {
namespace {

using jit::ChosenValues;
using jit::ScheduleChoice;

ChosenValues Without(ChosenValues values, absl::string_view name) {
  values.erase(std::remove_if(values.begin(), values.end(),
                              [&](const auto& value) { return value.first == name; }),
               values.end());
  return values;
}

ChosenValues With(ChosenValues values, absl::string_view name, int64_t value) {
  values = Without(std::move(values), name);
  values.emplace_back(name, value);
  return values;
}

class Search {
 public:
  Search(absl::Span<const ScheduleChoice> choices, TimeRatio ratio, const SearchOptions& options)
      : choices_(choices), ratio_(ratio), options_(options), end_(options.now() + options.seconds) {
  }

  absl::StatusOr<ChosenValues> Run() {
    bool improves = true;
    while (improves) {
      improves = false;
      for (const ScheduleChoice& choice : choices_) {
        NESTOR_ASSIGN_OR_RETURN(const bool better, GoAlong(choice));
        improves = improves || better;
      }
    }
    NESTOR_RETURN_IF_ERROR(DropUseless());
    return best_;
  }

 private:
  bool HasTime() const { return options_.now() < end_; }

  absl::StatusOr<bool> GoAlong(const ScheduleChoice& choice) {
    bool better = false;
    for (const int64_t value : choice.values) {
      if (!HasTime()) break;
      ChosenValues candidate = With(best_, choice.name, value);
      if (candidate == best_) continue;
      NESTOR_ASSIGN_OR_RETURN(const double ratio, ratio_(best_, candidate));
      if (ratio > 1 - options_.least_gain) continue;
      best_ = std::move(candidate);
      better = true;
    }
    return better;
  }

  // A choice that helped early may be made useless by a later one; what is not needed is left out
  // of the file.
  absl::Status DropUseless() {
    for (const ScheduleChoice& choice : choices_) {
      ChosenValues candidate = Without(best_, choice.name);
      if (candidate == best_ || !HasTime()) continue;
      NESTOR_ASSIGN_OR_RETURN(const double ratio, ratio_(best_, candidate));
      if (ratio <= 1) best_ = std::move(candidate);
    }
    return absl::OkStatus();
  }

  const absl::Span<const ScheduleChoice> choices_;
  const TimeRatio ratio_;
  const SearchOptions& options_;
  const double end_;
  ChosenValues best_;
};

}  // namespace

absl::StatusOr<ChosenValues> SearchSchedule(absl::Span<const ScheduleChoice> choices,
                                            TimeRatio ratio, const SearchOptions& options) {
  return Search(choices, ratio, options).Run();
}

}  // namespace nestor::bench
