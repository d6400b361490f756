// Names are checked against the whole list before it is cut, so that an unknown one is an error
// whatever the cut leaves.
#include "cli/fused.h"

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"
#include "uops/message.h"

namespace nestor::cli {
namespace {

std::vector<std::string> NamesOf(const fusion::Pipeline& pipeline) {
  std::vector<std::string> names;
  for (const fusion::Pass& pass : pipeline.passes()) names.push_back(pass.name);
  return names;
}

absl::Status UnknownPass(absl::string_view flag, const std::string& name,
                         const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": unknown pass '", name, "'",
                                                 DidYouMean(name, known), " (there are ",
                                                 absl::StrJoin(known, ", "), ")"));
}

absl::Status CheckPasses(const std::vector<std::string>& wanted,
                         const std::vector<std::string>& known) {
  for (const std::string& name : wanted) {
    if (!absl::c_linear_search(known, name)) return UnknownPass("--passes", name, known);
  }
  return absl::OkStatus();
}

// How many passes `until` leaves: a number, or the name of the last.
absl::StatusOr<int> CountUntil(const std::string& until, const std::vector<std::string>& known) {
  const auto last = absl::c_find(known, until);
  if (last != known.end()) return static_cast<int>(last - known.begin()) + 1;
  int count;
  if (absl::SimpleAtoi(until, &count) && count >= 0) return count;
  if (IsName(until)) return UnknownPass("--until", until, known);
  return absl::InvalidArgumentError(absl::StrCat(
      "--until=", until, ": a number of passes is expected, 0 or more, or the name of a pass"));
}

void TracePass(const fusion::PassReport& report, const loop::Program& program) {
  const std::string time = absl::StrFormat("%.3f ms", absl::ToDoubleMilliseconds(report.time));
  const std::string made =
      report.changed ? absl::StrCat(":\n", loop::ToText(program)) : ", unchanged\n";
  std::cerr << "# " << report.number << " " << report.pass.name << ", " << time << made;
}

}  // namespace

// The passes of both pipelines in one, so that flags can name each: a pass that runs twice has a
// number the second time.
fusion::Pipeline WithSchedule(const fusion::Pipeline& schedule) {
  std::vector<fusion::Pass> passes = fusion::Pipeline::Default().passes();
  const auto is_taken = [&](const std::string& name) {
    return absl::c_any_of(passes, [&](const fusion::Pass& pass) { return pass.name == name; });
  };
  for (fusion::Pass pass : schedule.passes()) {
    const std::string name = pass.name;
    for (int number = 2; is_taken(pass.name); ++number) pass.name = absl::StrCat(name, "_", number);
    passes.push_back(std::move(pass));
  }
  return fusion::Pipeline(std::move(passes));
}

absl::StatusOr<fusion::Pipeline> PipelineFor(const Arguments& arguments,
                                             fusion::Pipeline pipeline) {
  NESTOR_ASSIGN_OR_RETURN(const std::vector<std::string> wanted, arguments.List("--passes"));
  NESTOR_RETURN_IF_ERROR(CheckPasses(wanted, NamesOf(pipeline)));
  if (const auto until = arguments.Find("--until")) {
    NESTOR_ASSIGN_OR_RETURN(const int count, CountUntil(*until, NamesOf(pipeline)));
    pipeline.Truncate(count);
  }
  if (!arguments.Has("--passes")) return pipeline;
  for (const std::string& name : NamesOf(pipeline)) {
    if (!absl::c_linear_search(wanted, name)) NESTOR_RETURN_IF_ERROR(pipeline.Disable(name));
  }
  return pipeline;
}

absl::StatusOr<loop::Program> RunPasses(const Op& op, const Arguments& arguments,
                                        fusion::Pipeline all, bool strict) {
  NESTOR_ASSIGN_OR_RETURN(const fusion::Pipeline pipeline, PipelineFor(arguments, std::move(all)));
  loop::Program program = Lower(op);
  fusion::RunOptions options;
  options.verify = true;
  options.strict = strict;
  if (arguments.Has("--trace")) options.observer = TracePass;
  NESTOR_RETURN_IF_ERROR(pipeline.Run(program, options));
  return program;
}

}  // namespace nestor::cli
