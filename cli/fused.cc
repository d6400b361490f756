#include "cli/fused.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/invariant.h"
#include "uops/module.h"

namespace nestor::cli {
namespace {

std::vector<std::string> NamesOf(const fusion::Pipeline& pipeline) {
  std::vector<std::string> names;
  for (const fusion::Pass& pass : pipeline.passes()) names.push_back(pass.name);
  return names;
}

absl::Status CheckPasses(const std::vector<std::string>& wanted, const std::vector<std::string>& known) {
  for (const std::string& name : wanted) {
    if (absl::c_linear_search(known, name)) continue;
    return absl::InvalidArgumentError(absl::StrCat("--passes: unknown pass '", name, "'", DidYouMean(name, known),
                                                   " (there are ", absl::StrJoin(known, ", "), ")"));
  }
  return absl::OkStatus();
}

}  // namespace

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

absl::StatusOr<fusion::Pipeline> PipelineFor(const Arguments& arguments, fusion::Pipeline pipeline) {
  NESTOR_ASSIGN_OR_RETURN(const std::vector<std::string> wanted, arguments.List("--passes"));
  NESTOR_RETURN_IF_ERROR(CheckPasses(wanted, NamesOf(pipeline)));
  if (const auto text = arguments.Find("--until")) {
    int count;
    if (!absl::SimpleAtoi(*text, &count) || count < 0) {
      return absl::InvalidArgumentError(absl::StrCat("--until=", *text, ": a number of passes is expected, 0 or more"));
    }
    pipeline.Truncate(count);
  }
  if (!arguments.Has("--passes")) return pipeline;
  for (const std::string& name : NamesOf(pipeline)) {
    if (!absl::c_linear_search(wanted, name)) NESTOR_RETURN_IF_ERROR(pipeline.Disable(name));
  }
  return pipeline;
}

}  // namespace nestor::cli
