// A trial from its case to its verdict, in this process or in one of its own.
#ifndef NESTOR_CHECK_EXAMINE_H_
#define NESTOR_CHECK_EXAMINE_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "check/case.h"
#include "check/child.h"
#include "check/judge.h"
#include "check/kernel_call.h"
#include "check/kernel_run.h"

namespace nestor {

// The op and kernel that are checked, and how.
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

// When a kernel was called, or returned. The parent of the process that runs it waits for the
// kernel as long as the patience allows, and ten minutes for the judge of its results, which is
// slow at large sizes.
class KernelClock {
 public:
  void Begin() { at_ = absl::GetCurrentTimeNanos(); }
  void End() { at_ = -absl::GetCurrentTimeNanos(); }
  bool HasReturned() const { return at_ < 0; }
  bool IsInTime(absl::Duration patience) const {
    const int64_t at = at_;
    const absl::Duration limit = at < 0 ? absl::Minutes(10) : patience;
    return at == 0 || absl::Nanoseconds(absl::GetCurrentTimeNanos() - std::abs(at)) < limit;
  }

 private:
  std::atomic<int64_t> at_{0};  // in ns since 1970; negative: it returned then
};

// The notes that a process that runs a kernel leaves for its parent. Plain data, in memory
// that both share.
struct KernelNotes {
  char fault_message[512] = "";  // of fault_message.h
  KernelClock clock;
};

// Runs the kernel on the case, in memory of the pool, and holds its results against the oracle.
Outcome Examine(const Subject& subject, const Case& given, GuardedPool& pool,
                KernelClock* clock = nullptr);

// The same in a child, in which the kernel has `patience`: a crash and a hang are outcomes.
Outcome ExamineInChild(const Subject& subject, const Case& given, absl::Duration patience);

// The outcome that the death of a child that ran the kernel stands for. REQUIRES: it died.
Outcome OutcomeOfDeath(const ChildEnd& end, absl::Duration patience, const KernelNotes& notes);

}  // namespace nestor

#endif  // NESTOR_CHECK_EXAMINE_H_
