// How much the speed of a matrix product varies over sizes.
#ifndef NESTOR_BENCH_SCALING_ROW_H_
#define NESTOR_BENCH_SCALING_ROW_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "bench/goal.h"
#include "bench/measure.h"

namespace nestor::bench {

inline constexpr char kScalingRow[] = "matmul f32 64..4096, slowest to fastest";
// Sizes from the first cache to memory, and sizes that no tile divides.
std::vector<int64_t> ScalingSizes();

// Products n x n x n of one kernel on one thread, in turns: the most time for each multiply-add
// over the least, which is to be at most 1.2.
RowResult MeasureScaling(absl::Span<const int64_t> sizes, const MeasureOptions& options = {});

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_SCALING_ROW_H_
