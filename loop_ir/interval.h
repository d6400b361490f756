// Intervals of integers.
#ifndef NESTOR_LOOP_IR_INTERVAL_H_
#define NESTOR_LOOP_IR_INTERVAL_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/optional.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

struct Interval {
  int64_t low, high;  // both belong to it

  bool IsWithin(const Interval& other) const { return other.low <= low && high <= other.high; }
};

// The least interval that holds both.
inline Interval HullOf(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// The least interval that holds the results at the four corners: all results, where the operation
// is monotonic in each operand. nullopt where a corner has none.
inline absl::optional<Interval> AtCorners(IndexKind kind, const Interval& a, const Interval& b) {
  absl::optional<Interval> hull;
  for (int64_t x : {a.low, a.high}) {
    for (int64_t y : {b.low, b.high}) {
      const auto value = CheckedApply(kind, x, y);
      if (!value) return absl::nullopt;
      hull = HullOf(hull.value_or(Interval{*value, *value}), {*value, *value});
    }
  }
  return hull;
}

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_INTERVAL_H_
