// nestor bench --tune: a schedule for one op at one class of sizes on this machine.
#ifndef NESTOR_CLI_TUNE_H_
#define NESTOR_CLI_TUNE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/figures.h"
#include "jit/compile.h"
#include "tensor/binding.h"
#include "uops/op.h"

namespace nestor::cli {

struct TuneRequest {
  std::string file;         // of schedules: gets a line; need not exist
  absl::Duration patience;  // how long to search
  std::vector<std::string> bound;
};

// Searches, measures the schedule found and the default one once more, and writes a line to the
// file if the former is quicker; else removes the line for these sizes. The file's other lines
// stay. Figures: tuned_time_ms, tuned_speed_up, schedule. The Statuses of Compile, of a call and of
// the file, which is read before the search.
absl::StatusOr<Figures> Tune(const Op& op, const RunInputs& inputs, const Binding& binding,
                             const jit::CompileOptions& options, const TuneRequest& request);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_TUNE_H_
