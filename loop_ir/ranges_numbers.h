// Numbers that may be unknown, for ranges_proof.cc and ranges_search.cc.
#ifndef NESTOR_LOOP_IR_RANGES_NUMBERS_H_
#define NESTOR_LOOP_IR_RANGES_NUMBERS_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "loop_ir/ranges_proof.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

// nullopt: unknown, or none that int64 holds.
using Number = absl::optional<int64_t>;

inline Number Apply(IndexKind kind, Number a, Number b) {
  if (!a || !b) return absl::nullopt;
  return CheckedApply(kind, *a, *b);
}

inline Number Product(Number a, Number b) {
  int64_t product;
  return a && b && !__builtin_mul_overflow(*a, *b, &product) ? Number(product) : absl::nullopt;
}

inline bool IsNonNegative(const Limits& a) { return a.low && *a.low >= 0; }

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_RANGES_NUMBERS_H_
