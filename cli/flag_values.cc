// Each reader returns the flag's value, or an error that names the flag, its value and the
// legal values.
#include "cli/flag_values.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace nestor::cli {

absl::StatusOr<int64_t> ReadNumber(const Arguments& arguments, absl::string_view flag,
                                   int64_t otherwise, int64_t least, int64_t most) {
  const auto text = arguments.Find(flag);
  int64_t number = otherwise;
  if (!text || (absl::SimpleAtoi(*text, &number) && number >= least && number <= most))
    return number;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, "=", *text, ": a number from ", least, " to ", most, " is expected"));
}

absl::StatusOr<absl::Duration> ReadDuration(const Arguments& arguments, absl::string_view flag,
                                            absl::Duration otherwise) {
  const auto text = arguments.Find(flag);
  absl::Duration duration = otherwise;
  if (!text || (absl::ParseDuration(*text, &duration) && duration >= absl::ZeroDuration()))
    return duration;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, "=", *text, ": a time is expected, as in ", flag, "=60s"));
}

}  // namespace nestor::cli
