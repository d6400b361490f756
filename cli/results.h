// Results of a run: to files, or as text on stdout.
#ifndef NESTOR_CLI_RESULTS_H_
#define NESTOR_CLI_RESULTS_H_

#include <vector>

#include "absl/status/status.h"
#include "cli/arguments.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor::cli {

// Checks, before a run, that each -o names a result, and a file that can be written.
absl::Status CheckOutputs(const Arguments& arguments, const Op& op);

// Writes the results that -o names, and prints the others: as text, or with --json as one object.
absl::Status Deliver(const Arguments& arguments, const Op& op, const std::vector<Tensor>& results);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_RESULTS_H_
