// The passes as the flags --passes and --until cut them.
#ifndef NESTOR_CLI_FUSED_H_
#define NESTOR_CLI_FUSED_H_

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "fusion/pipeline.h"

namespace nestor::cli {

// All passes of `pipeline`; with --until=N the first N; with --passes=a,b of these the
// ones named. An error names an unknown pass or a bad number.
absl::StatusOr<fusion::Pipeline> PipelineFor(const Arguments& arguments, fusion::Pipeline pipeline);

// The passes of fusion, then those of `schedule`. One whose name is taken has a number
// behind it, as a pass that runs twice has.
fusion::Pipeline WithSchedule(const fusion::Pipeline& schedule);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_FUSED_H_
