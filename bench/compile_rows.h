// The cost of compiling, and the overhead of a call. Rows of Nestor alone.
#ifndef NESTOR_BENCH_COMPILE_ROWS_H_
#define NESTOR_BENCH_COMPILE_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "bench/goal.h"
#include "bench/row.h"

namespace nestor::bench {

// Compiling from the text to the callable, with symbolic shapes.
struct CompileRow {
  std::string name;
  std::vector<Step> steps;  // compiled one after the other
  double most_ms = 0;
  // The budget for the largest kernel; none: code bytes are not measured.
  absl::optional<int64_t> most_code_bytes = 16 << 10;
};
std::vector<CompileRow> CompileRows();

// The milliseconds (the median of 20), and the bytes of machine code of the largest kernel; the
// goals are budgets.
std::vector<RowResult> MeasureCompiling(const CompileRow& row, int threads);

// Nanoseconds of a call of a kernel that copies one element.
RowResult MeasureCall(int threads);
inline constexpr char kCallRow[] = "call overhead";

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_COMPILE_ROWS_H_
