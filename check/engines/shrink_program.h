// The smallest program that still fails.
#ifndef NESTOR_CHECK_ENGINES_SHRINK_PROGRAM_H_
#define NESTOR_CHECK_ENGINES_SHRINK_PROGRAM_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "uops/op.h"

namespace nestor {

// Takes away from the text of an op whatever can go while `fails` holds of what is left:
// ranges of tokens, long ones first, then a call for one of its operands, an access for a
// number, and at last types for f32 and numbers for smaller ones. What does not parse is no
// candidate. The text is at a fixed point when nothing more can go; `fails` may also refuse
// everything from some time on.
//
// The method is delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
// Failure-Inducing Input", 2002), over tokens with their brackets.
//
// REQUIRES: `text` holds one op, and `fails` holds of it.
std::string ShrinkProgram(const std::string& text, absl::FunctionRef<bool(const Op&)> fails);

using Sizes = absl::flat_hash_map<std::string, int64_t>;
// Smaller numbers for the sizes, one by one, for which `fails` still holds; nullopt where it does
// not hold of `sizes`: a trial draws sizes several times, and those of another time may
// be what fails.
absl::optional<Sizes> ShrinkSizes(Sizes sizes, absl::FunctionRef<bool(const Sizes&)> fails);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_SHRINK_PROGRAM_H_
