// A table of readings and goals with the verdict of each: which term counts, and how far Nestor is.
#include "bench/goal.h"

#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

TEST(GoalTest, Judge) {
  const GoalTerm peer = TimesPeer("oneDNN", 2);
  const struct {
    const char* what;
    int threads;
    std::vector<Reading> readings;
    std::vector<GoalTerm> goal;
    const char* failure;
    bool met;
    double allowed;  // 0: none
  } kCases[] = {
      // clang-format off
      {"twice the peer", 1, {{"Nestor", 5}, {"oneDNN", 10}}, {peer}, "", true, 5},
      {"not quite twice the peer", 1, {{"Nestor", 5.1}, {"oneDNN", 10}}, {peer}, "", false, 5},
      {"on two threads the peer's speed does", 2, {{"Nestor", 10}, {"oneDNN", 10}},
       {peer}, "", true, 10},
      {"the limit caps the ratio", 1, {{"Nestor", 9.9}, {"oneDNN", 10}, {"limit", 9.2}},
       {peer}, "", true, 10},
      {"short of the cap", 1, {{"Nestor", 10.1}, {"oneDNN", 10}, {"limit", 9.2}},
       {peer}, "", false, 10},
      {"a fraction of the limit", 2, {{"Nestor", 20}, {"limit", 10}}, {OfLimit(0.5)}, "", true, 20},
      {"the easiest term counts", 1, {{"Nestor", 20}, {"limit", 4.6}, {"f32", 10}},
       {OfLimit(0.92), {"f32", 0.5, 0.5}}, "", true, 20},
      {"a wrong result never counts", 1, {{"Nestor", 1}, {"oneDNN", 10}},
       {peer}, "differs", false, 5},
      {"no reading of Nestor", 1, {{"oneDNN", 10}}, {peer}, "", false, 5},
      {"no reading of the peer", 1, {{"Nestor", 1}, {"limit", 1}}, {peer}, "", false, 0},
      {"no goal", 1, {{"Nestor", 1}, {"limit", 1}}, {}, "", true, 0},
      {"no goal, but a failure", 1, {{"Nestor", 1}}, {}, "differs", false, 0},
      // clang-format on
  };
  for (const auto& c : kCases) {
    RowResult result;
    result.threads = c.threads;
    result.readings = c.readings;
    result.goal = c.goal;
    result.failure = c.failure;
    const Verdict verdict = Judge(result);
    EXPECT_EQ(verdict.met, c.met) << c.what;
    EXPECT_NEAR(verdict.allowed.value_or(0), c.allowed, 1e-9) << c.what;
  }
}

TEST(GoalTest, TheVerdictNamesTheTermThatCounts) {
  RowResult result;
  result.readings = {{"Nestor", 9.9}, {"oneDNN", 10}, {"limit", 9.2}};
  result.goal = {TimesPeer("oneDNN", 2.5)};
  EXPECT_EQ(Judge(result).engine, "limit");
  EXPECT_EQ(Judge(result).ratio, kLimitCap);
  result.readings.back().cost = 1;
  EXPECT_EQ(Judge(result).engine, "oneDNN");
  EXPECT_EQ(Judge(result).ratio, 2.5);
}

TEST(GoalTest, OnMoreThreadsThePeersSpeedDoesAndLessWhereLessIsAsked) {
  EXPECT_EQ(TimesPeer("oneDNN", 2).on_more_threads, 1);
  EXPECT_EQ(TimesPeer("oneDNN", 0.9).on_more_threads, 0.9);
}

TEST(GoalTest, TheBestPeerIsNamed) {
  const struct {
    std::vector<std::string> peers;
    std::vector<Reading> readings;
    std::string engine;
  } kCases[] = {
      {{"a", "b"}, {{"Nestor", 1}, {"a", 3}, {"b", 2}, {"limit", 1}}, "b"},
      {{"a", "b"}, {{"a", 2}, {"b", 3}, {"yardstick", 1}}, "a"},
      {{"a"}, {{"Nestor", 1}, {"limit", 1}}, "best peer"},
  };
  for (const auto& c : kCases) {
    RowResult result;
    result.readings = c.readings;
    result.goal = {OfLimit(0.5), TimesPeer(kBestPeer, 2)};
    NameBestPeer(c.peers, result);
    EXPECT_EQ(result.goal[0].engine, kLimit);
    EXPECT_EQ(result.goal[1].engine, c.engine);
  }
}

TEST(GoalTest, SpeedAgainst) {
  RowResult result;
  result.readings = {{"Nestor", 4}, {"oneDNN", 10}};
  EXPECT_EQ(SpeedAgainst(result, "oneDNN"), absl::optional<double>(2.5));
  EXPECT_EQ(SpeedAgainst(result, "PyTorch"), absl::nullopt);
}

}  // namespace
}  // namespace nestor::bench
