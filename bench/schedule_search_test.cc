// The search on a made-up time for each schedule.
#include "bench/schedule_search.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

using jit::ChosenValues;
using jit::ScheduleChoice;

const std::vector<ScheduleChoice>& Choices() {
  static const std::vector<ScheduleChoice>& choices =
      *new std::vector<ScheduleChoice>{{"a", {1, 2, 4, 8}, 1, 8, nullptr},
                                       {"b", {0, 1}, 0, 1, nullptr},
                                       {"c", {10, 20}, 0, 100, nullptr}};
  return choices;
}

using Values = absl::flat_hash_map<std::string, int64_t>;

// Searches by the time that `time` gives for values that are 2, 0 and 10 by default.
ChosenValues Found(const std::function<double(const Values&)>& time, int* tries = nullptr,
                   double seconds = 1e9) {
  double clock = 0;
  const auto at = [&](const ChosenValues& chosen) {
    Values values = {{"a", 2}, {"b", 0}, {"c", 10}};
    for (const auto& [name, value] : chosen) values[name] = value;
    return time(values);
  };
  SearchOptions options;
  options.seconds = seconds;
  options.now = [&] { return clock; };
  const auto found = SearchSchedule(
      Choices(),
      [&](const ChosenValues& best, const ChosenValues& candidate) -> absl::StatusOr<double> {
        ++clock;
        return at(candidate) / at(best);
      },
      options);
  if (tries != nullptr) *tries = static_cast<int>(clock);
  return found.value();
}

TEST(SearchSchedule, TheDefaultStaysWhereNothingIsQuicker) {
  EXPECT_TRUE(Found([](const Values&) { return 1.0; }).empty());
  EXPECT_TRUE(Found([](const Values& v) { return v.at("a") == 2 ? 1.0 : 2.0; }).empty());
}

TEST(SearchSchedule, ASmallGainIsNone) {
  EXPECT_TRUE(Found([](const Values& v) { return v.at("a") == 8 ? 0.98 : 1.0; }).empty());
  EXPECT_EQ(Found([](const Values& v) { return v.at("a") == 8 ? 0.96 : 1.0; }),
            (ChosenValues{{"a", 8}}));
}

// b = 1 pays only once c is 20, which is looked at later.
TEST(SearchSchedule, GoesAlongAllChoicesAgain) {
  const auto time = [](const Values& v) {
    return (v.at("c") == 20 ? 0.8 : 1.0) + (v.at("b") == 1 ? (v.at("c") == 20 ? -0.2 : 0.5) : 0);
  };
  EXPECT_EQ(Found(time), (ChosenValues{{"c", 20}, {"b", 1}}));
}

// a = 4 is faster than the default until b is 1.
TEST(SearchSchedule, WhatBringsNothingAnyMoreIsLeftOut) {
  const auto time = [](const Values& v) {
    return v.at("b") == 1 ? 0.5 : v.at("a") == 4 ? 0.9 : 1.0;
  };
  EXPECT_EQ(Found(time), (ChosenValues{{"b", 1}}));
}

TEST(SearchSchedule, StopsInTime) {
  int tries = 0;
  EXPECT_TRUE(Found([](const Values& v) { return v.at("b") == 1 ? 0.5 : 1.0; }, &tries, 3).empty());
  EXPECT_EQ(tries, 3);
}

TEST(SearchSchedule, AnErrorEndsIt) {
  const auto failing = [](const ChosenValues&, const ChosenValues&) -> absl::StatusOr<double> {
    return absl::ResourceExhaustedError("no memory");
  };
  EXPECT_EQ(SearchSchedule(Choices(), failing).status().message(), "no memory");
}

}  // namespace
}  // namespace nestor::bench
