// Random programs with a printed seed: a property is run over many of them, and
// the first failures are shrunk to a program and inputs that can be pasted.
//
// NESTOR_RANDOM_SEED and NESTOR_RANDOM_COUNT in the environment choose other
// programs.
#ifndef NESTOR_TESTS_RANDOM_PROGRAMS_H_
#define NESTOR_TESTS_RANDOM_PROGRAMS_H_

#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"
#include "check/engines/finding.h"
#include "check/engines/program_generator.h"
#include "uops/op.h"

namespace nestor {

// An integer of the environment, or else `otherwise`.
int64_t Setting(const char* name, int64_t otherwise);

// Says which seed ran when the process was aborted.
void SetCurrentCase(absl::string_view what, uint64_t seed);

// Says what is wrong with the op on the inputs that the seed draws.
using Property = std::function<Finding(const Op&, uint64_t, Counts&)>;

// Draws `count` programs of up to base.nodes micro-ops and holds each against the
// property: a gtest failure for each of the first that fail.
void TestPrograms(absl::string_view what, int64_t count, const GeneratorOptions& base,
                  const Property& property);

}  // namespace nestor

#endif  // NESTOR_TESTS_RANDOM_PROGRAMS_H_
