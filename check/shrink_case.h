// Shrinks a case that fails to the smallest that still does.
#ifndef NESTOR_CHECK_SHRINK_CASE_H_
#define NESTOR_CHECK_SHRINK_CASE_H_

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "check/case.h"

namespace nestor {

struct ShrinkLimits {
  int max_cases = 400;
  absl::Duration max_time = absl::Seconds(5);
};

// Tries compact layouts, then the least sizes and $params, then the plainest values: zeros, ones,
// small numbers, whole ones; first for each input as a whole, then for ever smaller parts of it
// (delta debugging: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
// 2002). `fails` says whether a case shows the fault; it is not asked about `given`.
Case ShrinkCase(const CaseSource& source, const Case& given,
                absl::FunctionRef<bool(const Case&)> fails, const ShrinkLimits& limits = {});

}  // namespace nestor

#endif  // NESTOR_CHECK_SHRINK_CASE_H_
