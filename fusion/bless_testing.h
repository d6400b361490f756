// Rewrites expectations in the sources of tests, after a change that is meant to change them.
#ifndef NESTOR_FUSION_BLESS_TESTING_H_
#define NESTOR_FUSION_BLESS_TESTING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace nestor::loop {

// The C++ source with another expectation in the row of a table that has `before` followed by
// `after`, each written as one or more string literals: the lines of `expected`, indented as the
// old expectation is. NotFound where there is no such row, or more than one.
absl::StatusOr<std::string> WithExpectation(absl::string_view source, absl::string_view before,
                                            absl::string_view after,
                                            const std::vector<std::string>& expected);

// Whether the user wants that: NESTOR_BLESS=1 ./bazelw run //fusion:contract_test
bool IsBlessing();
// Does so in the source of the test that runs.
absl::Status Bless(absl::string_view before, absl::string_view after,
                   const std::vector<std::string>& expected);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_BLESS_TESTING_H_
