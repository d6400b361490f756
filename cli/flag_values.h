// The values of flags: numbers and times.
#ifndef NESTOR_CLI_FLAG_VALUES_H_
#define NESTOR_CLI_FLAG_VALUES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/arguments.h"

namespace nestor::cli {

// An error names the flag and the range.
absl::StatusOr<int64_t> ReadNumber(const Arguments& arguments, absl::string_view flag,
                                   int64_t otherwise, int64_t least, int64_t most);

// As in "60s", "1h30m"; not negative.
absl::StatusOr<absl::Duration> ReadDuration(const Arguments& arguments, absl::string_view flag,
                                            absl::Duration otherwise);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_FLAG_VALUES_H_
