// A trial from its case to its verdict, in this process or in one of its own.
#ifndef NESTOR_CHECK_EXAMINE_H_
#define NESTOR_CHECK_EXAMINE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "check/case.h"
#include "check/child.h"
#include "check/judge.h"
#include "check/kernel_call.h"
#include "check/kernel_run.h"

namespace nestor {

// What is checked, and how.
struct Subject {
  CaseSource source;
  Judge judge;
  Kernel kernel;
  RunOptions run;
  int64_t sample = 0;  // elements of each result that are judged; 0: all
};

struct Outcome {
  Fault fault = Fault::kNone;
  std::string message;
  // The elements that are wrong, or not written, or differ.
  Verdict verdict;
};

// Runs the kernel on the case, in memory of the pool, and holds its results against the oracle.
Outcome Examine(const Subject& subject, const Case& given, GuardedPool& pool);

// The same in a child, which has `patience` for it: a crash and a hang are outcomes.
Outcome ExamineInChild(const Subject& subject, const Case& given, absl::Duration patience);

// What the end of a child that ran the kernel says of that. REQUIRES: it died.
// `fault_message`: what KeepFaultMessages has kept, or "".
Outcome OutcomeOfDeath(const ChildEnd& end, absl::Duration patience, absl::string_view fault_message);

}  // namespace nestor

#endif  // NESTOR_CHECK_EXAMINE_H_
