// The pipeline as the flags --passes and --until cut it.
#ifndef NESTOR_CLI_FUSED_H_
#define NESTOR_CLI_FUSED_H_

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "fusion/pipeline.h"

namespace nestor::cli {

// All passes; with --until=N the first N; with --passes=a,b of these the ones named.
// An error names an unknown pass or a bad number.
absl::StatusOr<fusion::Pipeline> PipelineFor(const Arguments& arguments);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_FUSED_H_
