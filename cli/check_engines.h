// nestor check without a library: Nestor's engines compared with each other on a program, on all
// macro ops, or on random programs.
#ifndef NESTOR_CLI_CHECK_ENGINES_H_
#define NESTOR_CLI_CHECK_ENGINES_H_

#include "absl/status/status.h"
#include "cli/arguments.h"

namespace nestor::cli {

// Writes the findings to stdout. Aborted where there are some.
absl::Status CheckEngines(const Arguments& arguments);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_CHECK_ENGINES_H_
