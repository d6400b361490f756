// Shrinks a program that fails to a smaller one that still does.
#ifndef NESTOR_CHECK_ENGINES_SHRINK_PROGRAM_H_
#define NESTOR_CHECK_ENGINES_SHRINK_PROGRAM_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "uops/op.h"

namespace nestor {

// Shortens the text of an op while `fails` holds of the rest: removes ranges of tokens, long ones
// first, then replaces a call by one of its operands, an access by a number, and at last types by
// f32 and numbers by smaller ones. A text that does not parse is no candidate. Ends when nothing
// more can be removed or replaced; to end earlier, `fails` may return false from some time on.
//
// The method is delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
// Failure-Inducing Input", 2002), over tokens with their brackets.
//
// REQUIRES: `text` holds one op, and `fails` holds of it.
std::string ShrinkProgram(const std::string& text, absl::FunctionRef<bool(const Op&)> fails);

using Sizes = absl::flat_hash_map<std::string, int64_t>;
// Makes the sizes smaller, one by one, while `fails` still holds; nullopt where it does not hold of
// `sizes`: a trial draws sizes several times, and those of another draw may be what fails.
absl::optional<Sizes> ShrinkSizes(Sizes sizes, absl::FunctionRef<bool(const Sizes&)> fails);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_SHRINK_PROGRAM_H_
