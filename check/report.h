// The report of Check on a kernel.
#ifndef NESTOR_CHECK_REPORT_H_
#define NESTOR_CHECK_REPORT_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "check/fault.h"
#include "check/judge.h"

namespace nestor {

struct CheckReport {
  // An element of the smallest failing case.
  struct Element {
    std::string place;      // "y[0, 16]"
    std::string got, want;  // `want` evaluated in order, in the op's own types
    std::string bound;      // "[0.1, 0.25]"
    double units = 0;       // half widths of the bound from its middle
    double ulps = 0;        // from `want`
  };

  std::string op;
  Fault fault = Fault::kNone;  // of the first trial that finds a fault
  std::string message;

  int64_t trials = 0;     // run to their end, skipped and undecided ones included
  int64_t skipped = 0;    // cases that the kernel does not do
  int64_t undecided = 0;  // cases that the oracle has no answer for
  absl::Duration time;
  uint64_t seed = 0;  // of the first trial; each next trial adds 1

  ErrorHistogram histogram;  // of all elements judged
  int64_t by_bounds = 0;     // of these, accepted by compiled bounds; the oracle judged the others
  int64_t by_wider = 0;      // of those, right only as computed in types wider than the op's own

  // If there is a finding:
  uint64_t failing_seed = 0;  // with one trial, reproduces it
  std::string failing_case, smallest_case;
  int64_t wrong_elements = 0, elements = 0;  // of the smallest case
  std::vector<Element> worst;                // the worst first
  std::string pattern;    // what wrong elements have in common, and no right ones
  std::string map;        // where they lie in the failing case
  std::string inputs;     // of the smallest case
  std::string reproduce;  // how

  // Some case was judged, and none has a fault.
  bool IsRight() const { return fault == Fault::kNone && trials > skipped + undecided; }

  std::string ToString() const;
  // One object, with a line end.
  std::string ToJson() const;
};

std::ostream& operator<<(std::ostream& out, const CheckReport& report);

}  // namespace nestor

#endif  // NESTOR_CHECK_REPORT_H_
