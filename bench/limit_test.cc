// The limits of a row's bytes and arithmetic, by the work that their contenders claim to do.
#include "bench/limit.h"

#include "bench/arithmetic_peak.h"
#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

// One way for each vector width, and on several threads one for each number of them.
size_t WaysWith(int threads) { return PeakVariants().size() * (threads == 1 ? 1 : 2); }

TEST(LimitTest, ArithmeticIsDoneAsAWholeOrInPart) {
  const struct {
    double multiply_adds, least_part, most_part;
  } kCases[] = {
      {1, 1, 1e3},           // a step is more
      {1e6, 1, 1.001},       // rounded up to steps
      {1e12, 4e-4, 8.1e-4},  // minutes: milliseconds of each thread stand for them
  };
  for (const int threads : {1, 2}) {
    ThreadTeam team(threads);
    for (const auto& c : kCases) {
      const std::vector<Contender> contenders = ArithmeticContenders(c.multiply_adds, team);
      EXPECT_EQ(contenders.size(), WaysWith(threads));
      for (const Contender& contender : contenders) {
        EXPECT_GE(contender.part, c.least_part) << c.multiply_adds;
        EXPECT_LE(contender.part, c.most_part) << c.multiply_adds;
        contender.run();
      }
    }
  }
}

TEST(LimitTest, EachKindOfOperationsHasALimit) {
  ThreadTeam team(1);
  const std::vector<Contender> contenders =
      OperationContenders({.all = 1e6, .products = 1e5, .quotients = 0}, team);
  ASSERT_EQ(contenders.size(), 2 * PeakVariants().size());
  for (const Contender& contender : contenders) contender.run();
  EXPECT_EQ(OperationContenders({.all = 3, .products = 2, .quotients = 1}, team).size(),
            3 * PeakVariants().size());
}

TEST(LimitTest, TheSlowestLimitCounts) {
  RowResult result;
  result.readings = {
      {"Nestor", 9}, {"limit", 2}, {"limit of products", 3}, {"limit of operations", 1}};
  JoinLimits(result);
  EXPECT_EQ(result.CostOf(kLimit), absl::optional<double>(3));
  EXPECT_EQ(result.CostOf(kNestor), absl::optional<double>(9));
}

TEST(LimitTest, WithoutWorkThereIsNoLimit) {
  ThreadTeam team(1);
  EXPECT_TRUE(OperationContenders({}, team).empty());
  EXPECT_TRUE(ArithmeticContenders(0, team).empty());
}

}  // namespace
}  // namespace nestor::bench
