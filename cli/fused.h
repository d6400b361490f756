// The passes as the flags --passes and --until cut them.
#ifndef NESTOR_CLI_FUSED_H_
#define NESTOR_CLI_FUSED_H_

#include "absl/status/statusor.h"
#include "cli/arguments.h"
#include "fusion/pipeline.h"
#include "loop_ir/program.h"
#include "uops/op.h"

namespace nestor::cli {

// All passes of `pipeline`; with --until=N the first N; with --until=NAME those up to and
// including that one; with --passes=a,b only the named ones of these. An error names an unknown
// pass or a bad number.
absl::StatusOr<fusion::Pipeline> PipelineFor(const Arguments& arguments, fusion::Pipeline pipeline);

// The passes of fusion, then those of `schedule`. A pass whose name is taken gets a number after
// it, as does one that runs twice.
fusion::Pipeline WithSchedule(const fusion::Pipeline& schedule);

// Lowers `op` and runs those passes of `all` that these flags leave; with --trace each says on
// stderr what it did.
absl::StatusOr<loop::Program> RunPasses(const Op& op, const Arguments& arguments,
                                        fusion::Pipeline all, bool strict);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_FUSED_H_
