// Whether the order of a sum's steps changes its result.
#ifndef NESTOR_JIT_SCHEDULE_REORDERING_H_
#define NESTOR_JIT_SCHEDULE_REORDERING_H_

#include "uops/dtype.h"
#include "uops/graph.h"

namespace nestor::loop {

// Whether such steps may run in another order: sums and products of floats, whose rounding depends
// on it, only where rounding may change (`reorders_rounding`).
inline bool MayReorder(ScalarOp step, DType type, bool reorders_rounding) {
  const bool rounds = IsFloat(type) && (step == ScalarOp::kAdd || step == ScalarOp::kMul);
  return type != DType::kBool && (reorders_rounding || !rounds);
}

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_REORDERING_H_
