// The programs of random trials.
#ifndef NESTOR_CHECK_ENGINES_TRIAL_PROGRAMS_H_
#define NESTOR_CHECK_ENGINES_TRIAL_PROGRAMS_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "uops/module.h"
#include "uops/op.h"

namespace nestor {

// What RandomOp or DrawNestProgram gives, or an op of the macro library, of drawn types and
// ranks; some of them called by another op. The same for a seed, always.
Op DrawTrialOp(uint64_t seed);

// The op `name` of a module for drawn types and ranks; nullopt where it is not for these.
absl::optional<Op> DrawInstance(const Module& module, const std::string& name, uint64_t seed);

// `op`, its gradient, or the gradient of that, as `order` says, or as the seed does where it is
// negative; where there is none, the one before.
Op Derived(const Op& op, int order, uint64_t seed);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_TRIAL_PROGRAMS_H_
