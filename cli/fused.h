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
// with that one; with --passes=a,b of these the ones named. An error names an unknown pass
// or a bad number.
absl::StatusOr<fusion::Pipeline> PipelineFor(const Arguments& arguments, fusion::Pipeline pipeline);

// The passes of fusion, then those of `schedule`. One whose name is taken has a number
// behind it, as a pass that runs twice has.
fusion::Pipeline WithSchedule(const fusion::Pipeline& schedule);

// `op` lowered, and what the passes make of it that these flags leave of `all`; with
// --trace each says on stderr what it did.
absl::StatusOr<loop::Program> RunPasses(const Op& op, const Arguments& arguments,
                                        fusion::Pipeline all, bool strict);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_FUSED_H_
