// Every row at small sizes: its Nestor programs agree with its peers, on one thread and on two, and
// the engines of its goal are measured.
#include "bench/rows.h"

#include "bench/openblas_peers.h"
#include "bench/torch_peers.h"
#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

// Keeps the relations of extents in the rows: equalities, sums of multiples of the divisor, and
// those of a convolution, whose windows are small and stay as they are, and which halves or keeps
// an extent, as ceil(ceil(n / 8) / 2) = ceil(ceil(n / 2) / 8).
int64_t Shrunk(int64_t extent) {
  if (extent > 100'000) return extent >> 16;
  return extent <= 8 ? extent : (extent + 7) / 8;
}

TEST(RowsTest, EveryRowAtSmallSizes) {
  for (const int threads : {1, 2}) {
    SetTorchThreads(threads);
    SetOpenBlasThreads(threads);
    ThreadTeam team(threads);
    for (Row row : AllRows()) {
      for (BufferSpec& buffer : row.buffers) {
        if (row.fixed_sizes) break;
        for (int64_t& extent : buffer.shape) extent = Shrunk(extent);
      }
      const RowResult result = RunRow(row, team, {.rounds = 1, .batch_seconds = 1e-4});
      EXPECT_EQ(result.failure, "") << row.name;
      ASSERT_TRUE(result.max_difference) << row.name;
      // A row may allow more at its own sizes, where a sum has many terms, but none does here.
      EXPECT_LE(*result.max_difference, 3e-2) << row.name;
      for (const GoalTerm& term : result.goal)
        EXPECT_TRUE(result.CostOf(term.engine)) << row.name << term.engine;
    }
  }
}

}  // namespace
}  // namespace nestor::bench
