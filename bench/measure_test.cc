// Measurements on a clock that only the contenders move, so that each expected time is exact.
#include "bench/measure.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

// A clock that only the contenders move.
struct FakeClock {
  double seconds = 0;
  MeasureOptions Options(int rounds = 5) {
    return {
        .rounds = rounds, .batch_seconds = 0.02, .now = [this] { return seconds; }, .rest = [] {}};
  }
  Contender Taking(std::string engine, double cost) {
    return {engine, [this, cost] { seconds += cost; }};
  }
};

TEST(MedianTest, Table) {
  const struct {
    std::vector<double> values;
    double want;
  } kCases[] = {
      {{3}, 3}, {{1, 2}, 1.5}, {{9, 1, 5}, 5}, {{4, 1, 3, 2}, 2.5}, {{7, 7, 1, 100, 8}, 7}};
  for (const auto& c : kCases)
    EXPECT_EQ(Median(c.values), c.want) << testing::PrintToString(c.values);
}

TEST(MeasureTest, GivesSecondsPerCallInOrderOfAppearance) {
  FakeClock clock;
  const std::vector<Reading> readings = MeasureAlternating(
      {clock.Taking("slow", 0.5), clock.Taking("fast", 1e-6), clock.Taking("middle", 1e-3)},
      clock.Options());
  ASSERT_EQ(readings.size(), 3);
  EXPECT_EQ(readings[0].engine, "slow");
  EXPECT_NEAR(readings[0].cost, 0.5, 1e-9);
  EXPECT_EQ(readings[1].engine, "fast");
  EXPECT_NEAR(readings[1].cost, 1e-6, 1e-12);
  EXPECT_EQ(readings[2].engine, "middle");
  EXPECT_NEAR(readings[2].cost, 1e-3, 1e-12);
}

TEST(MeasureTest, OfVariantsTheBestCounts) {
  FakeClock clock;
  const std::vector<Reading> readings = MeasureAlternating(
      {clock.Taking("limit", 0.3), clock.Taking("other", 0.1), clock.Taking("limit", 0.2)},
      clock.Options());
  ASSERT_EQ(readings.size(), 2);
  EXPECT_EQ(readings[0].engine, "limit");
  EXPECT_NEAR(readings[0].cost, 0.2, 1e-9);
}

TEST(MeasureTest, TheCostIsOfAllTheWork) {
  FakeClock clock;
  Contender contender = clock.Taking("tenth", 0.01);
  contender.part = 0.1;
  EXPECT_NEAR(MeasureAlternating({contender}, clock.Options())[0].cost, 0.1, 1e-9);
}

TEST(MeasureTest, LongCallsAreFew) {
  const struct {
    double cost;
    int rounds, calls;
  } kCases[] = {
      {0.3, 5, 5},  // no batch to size, no warm-up
      {4, 5, 3},    // a fourth round would begin after 12 seconds
      {11, 5, 1},
  };
  for (const auto& c : kCases) {
    FakeClock clock;
    int calls = 0;
    const Contender contender{"slow", [&] { ++calls, clock.seconds += c.cost; }};
    EXPECT_NEAR(MeasureAlternating({contender}, clock.Options(c.rounds))[0].cost, c.cost, 1e-9);
    EXPECT_EQ(calls, c.calls) << c.cost;
  }
}

TEST(MeasureTest, AllHaveAsManyRounds) {
  FakeClock clock;
  int turns = 0;
  const Contender quick{"quick", [&] { ++turns, clock.seconds += 0.1; }};
  MeasureAlternating({quick, clock.Taking("slow", 3)}, clock.Options());
  // A call before, one to size the batch; two a round of the four that begin within ten seconds.
  EXPECT_EQ(turns, 2 + 2 * 4);
}

TEST(MeasureTest, AMeasurementLastsAtLeastABatch) {
  FakeClock clock;
  int calls = 0;
  const Contender contender{"x", [&] { ++calls, clock.seconds += 1e-4; }};
  MeasureAlternating({contender}, clock.Options(/*rounds=*/3));
  EXPECT_GE(calls, 3 * 200);
  EXPECT_LE(calls, 3 * 260);
}

// The machine becomes four times slower half-way: engines that take turns are both
// hit, and keep their ratio.
TEST(MeasureTest, DriftHitsAllAlike) {
  FakeClock clock;
  double slowness = 1;
  const auto drifting = [&](std::string engine, double cost) {
    return Contender{engine, [&clock, &slowness, cost] {
                       clock.seconds += cost * slowness;
                       if (clock.seconds > 1) slowness = 4;
                     }};
  };
  const std::vector<Reading> readings =
      MeasureAlternating({drifting("a", 0.1), drifting("b", 0.05)}, clock.Options());
  EXPECT_NEAR(readings[0].cost / readings[1].cost, 2, 0.01);
}

TEST(MeasureTest, EnginesTakeTurnsAndEachLeadsARound) {
  std::string turns;
  double seconds = 0;
  const auto contender = [&](char name) {
    return Contender{std::string(1, name), [&, name] { turns += name, seconds += 0.03; }};
  };
  MeasureAlternating({contender('a'), contender('b'), contender('c')},
                     {.rounds = 3,
                      .batch_seconds = 0.02,
                      .now = [&] { return seconds; },
                      .rest = [&] { turns += ' '; }});
  // Two calls each to warm up and size the batch; then per turn one untimed and one timed.
  EXPECT_EQ(turns, " aa bb cc"
                   " aa bb cc"
                   " bb cc aa"
                   " cc aa bb");
}

TEST(MeasureTest, WaitsForIdleThreads) {
  std::atomic<bool> spins = false, done = false;
  std::thread spinner([&] {
    spins = true;
    for (const double start = SteadySeconds(); SteadySeconds() < start + 0.05;) continue;
    done = true;
  });
  while (!spins) continue;
  WaitForIdle();
  EXPECT_TRUE(done);
  spinner.join();
}

TEST(MeasureTest, WaitingForIdleEnds) {
  std::atomic<bool> stop = false;
  std::thread spinner([&] {
    while (!stop) continue;
  });
  WaitForIdle();
  stop = true;
  spinner.join();
}

}  // namespace
}  // namespace nestor::bench
