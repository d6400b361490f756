// nestor check PROGRAM --library=FILE: is a kernel in a shared object right?
#ifndef NESTOR_CLI_CHECK_LIBRARY_H_
#define NESTOR_CLI_CHECK_LIBRARY_H_

#include "absl/status/status.h"
#include "cli/arguments.h"

namespace nestor::cli {

// Writes the report to stdout. Aborted if the kernel is wrong, or no result of it could be judged;
// Unavailable if it crashed or hung.
absl::Status CheckLibrary(const Arguments& arguments);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_CHECK_LIBRARY_H_
