// The programs of random trials.
#ifndef NESTOR_CHECK_ENGINES_TRIAL_PROGRAMS_H_
#define NESTOR_CHECK_ENGINES_TRIAL_PROGRAMS_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "uops/notation/module.h"
#include "uops/op.h"

namespace nestor {

// An op of RandomOp or DrawNestProgram, or of the macro library with drawn types and ranks; some
// are called by another op. The same seed always gives the same op.
Op DrawTrialOp(uint64_t seed);

// The op `name` of a module for drawn types and ranks; nullopt where the op does not take these.
absl::optional<Op> DrawInstance(const Module& module, const std::string& name, uint64_t seed);

// `op`, its gradient, or the gradient's gradient, as `order` says (if negative, the seed); where
// that does not exist, the highest order that does.
Op Derived(const Op& op, int order, uint64_t seed);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_TRIAL_PROGRAMS_H_
