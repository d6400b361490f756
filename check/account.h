// The account of a finding: the smallest case that shows it, the worst elements, and what
// these have in common.
#ifndef NESTOR_CHECK_ACCOUNT_H_
#define NESTOR_CHECK_ACCOUNT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "check/case.h"
#include "check/examine.h"
#include "check/report.h"

namespace nestor {

struct FailedTrial {
  const Subject& subject;
  const Case& failing;
  // The case of the trial that many after the failing one (before it if negative); nullopt if there
  // is no such trial, or it has another subject.
  absl::FunctionRef<absl::optional<Case>(int64_t distance)> case_around;
};

// Runs the kernel of the failed trial on a case, as the trial did.
using ExamineCase = absl::FunctionRef<Outcome(const Case&)>;

// Adds to `report`, which names the fault. Where it does not show again, it says so.
void Account(const FailedTrial& failed, ExamineCase examine, CheckReport& report);

}  // namespace nestor

#endif  // NESTOR_CHECK_ACCOUNT_H_
