// Every row at small sizes: its Nestor programs agree with its peers, on one thread
// and on two, and what its goal refers to is measured.
#include "bench/rows.h"

#include "bench/torch_peers.h"
#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

// Keeps sums and equalities of extents as they are in the rows.
int64_t Shrunk(int64_t extent) { return extent > 100'000 ? extent >> 16 : extent >> 5; }

TEST(RowsTest, EveryRowAtSmallSizes) {
  for (const int threads : {1, 2}) {
    SetTorchThreads(threads);
    ThreadTeam team(threads);
    for (Row row : AllRows()) {
      for (BufferSpec& buffer : row.buffers) {
        for (int64_t& extent : buffer.shape) extent = Shrunk(extent);
      }
      const RowResult result = RunRow(row, team, {.rounds = 1, .batch_seconds = 1e-4});
      EXPECT_EQ(result.failure, "") << row.name;
      EXPECT_TRUE(result.max_difference) << row.name;
      EXPECT_TRUE(result.CostOf(kTorch)) << row.name;
      for (const GoalTerm& term : result.goal) EXPECT_TRUE(result.CostOf(term.engine)) << row.name << term.engine;
    }
  }
}

}  // namespace
}  // namespace nestor::bench
