// Lower bounds of index expressions that hold whatever the dimensions are.
#ifndef NESTOR_LOOP_IR_LEAST_VALUE_H_
#define NESTOR_LOOP_IR_LEAST_VALUE_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

// A number that `e` is never less than: dimensions are not negative, $params and indices of loops
// may be anything. nullopt: none is known.
absl::optional<int64_t> LeastValue(const IndexPool& pool, IndexId e);

inline bool IsNonNegative(const IndexPool& pool, IndexId e) {
  return LeastValue(pool, e).value_or(-1) >= 0;
}

// The divisor of a quotient by a positive number; nullopt for other expressions.
absl::optional<int64_t> PositiveDivisor(const IndexPool& pool, IndexId e);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_LEAST_VALUE_H_
