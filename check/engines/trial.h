// One trial: a program, inputs and engines, all drawn from one seed, held against each other.
#ifndef NESTOR_CHECK_ENGINES_TRIAL_H_
#define NESTOR_CHECK_ENGINES_TRIAL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "check/engines/finding.h"
#include "check/engines/trial_inputs.h"
#include "uops/op.h"

namespace nestor {

struct TrialCounts {
  int64_t trials = 0;
  int64_t refused = 0;    // by every engine: sizes that the op does not allow
  int64_t skipped = 0;    // too large for the interpreter
  int64_t pairs = 0;      // of engines
  int64_t bounds = 0;     // results held against the proven bounds
  int64_t quotients = 0;  // gradients held against difference quotients
};

// Holds two strict engines against the unfused program, fast machine code against the
// interpreter on the same program, and that against the proven bounds, where these are drawn.
// Returns what is wrong, and with which engine. `tell` is called with each engine before it is
// built, in case it crashes.
Finding CheckTrial(
    const Op& op, uint64_t seed, const TrialInputOptions& options, TrialCounts& counts,
    absl::FunctionRef<void(absl::string_view engine)> tell = [](absl::string_view) {});

// Holds the gradient of the op, with f64 for all its floats, against difference quotients of the
// interpreted op, where these converge. See gradient_quotients.cc.
Finding CheckGradientQuotients(const Op& op, uint64_t seed, const TrialInputOptions& options,
                               TrialCounts& counts);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_TRIAL_H_
