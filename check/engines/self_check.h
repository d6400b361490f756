// Nestor's own engines held against each other, trial after trial, each in a child process.
#ifndef NESTOR_CHECK_ENGINES_SELF_CHECK_H_
#define NESTOR_CHECK_ENGINES_SELF_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "check/engines/shrink_program.h"
#include "check/engines/trial.h"
#include "uops/op.h"

namespace nestor {

struct SelfCheckOptions {
  // Trial i has the seed first_seed + i, which alone determines the trial.
  uint64_t first_seed = 1;
  int64_t trials = 1000;
  absl::Duration time = absl::InfiniteDuration();
  // 0: each op itself; 1: its gradient; 2: the gradient's gradient; -1: one of these, by the seed.
  int derivative = -1;
  Sizes sizes;                                   // that are not drawn
  int most_findings = 1;                         // the check ends with the last of them
  absl::Duration shrinking = absl::Seconds(20);  // for each finding; zero: as it was found
  // A trial that takes longer has failed.
  absl::Duration patience = absl::Seconds(60);
  // Called now and then.
  std::function<void(const TrialCounts&, uint64_t seed)> progress = {};
};

struct SelfCheckFinding {
  uint64_t seed;
  std::string what;     // what is wrong with the shrunk program
  std::string program;  // in the notation
  bool shrunk;          // to `program` and `sizes`, which fail alone, as the op itself
  Sizes sizes;          // of the shrunk program; missing ones are drawn
};

struct SelfCheckReport {
  TrialCounts counts;
  std::vector<SelfCheckFinding> findings;
  absl::Duration time;
  uint64_t next_seed = 0;  // to go on with
};

// `op_of` gives the op of a trial. REQUIRES: this process has one thread.
SelfCheckReport SelfCheck(const std::function<Op(uint64_t seed)>& op_of,
                          const SelfCheckOptions& options);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_SELF_CHECK_H_
