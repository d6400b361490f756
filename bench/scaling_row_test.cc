// The row at sizes so small that its outcome is certain.
#include "bench/scaling_row.h"

#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

TEST(ScalingRowTest, SmallSizes) {
  const RowResult result = MeasureScaling({2, 40}, {.rounds = 1, .batch_seconds = 1e-4});
  EXPECT_EQ(result.failure, "");
  // A call costs more than eight multiply-adds.
  EXPECT_GT(result.CostOf(kNestor).value_or(0), 1.2);
  EXPECT_FALSE(Judge(result).met);
}

}  // namespace
}  // namespace nestor::bench
