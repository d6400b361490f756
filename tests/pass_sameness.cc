// A program runs before the first pass and after each pass that changed it, so that the first
// difference names its pass; a finding shows the program before and after the pass.
#include "tests/pass_sameness.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "interp/reference.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor {
namespace {

using fusion::Pass;
using loop::Program;

Finding CheckAgain(const Pass& pass, const Program& program, const std::string& text) {
  Program again = program;
  const auto changed = pass.run(again);
  if (!changed.ok()) return absl::StrCat("again: ", changed.status().ToString());
  const std::string second = loop::ToText(again);
  if (*changed || second != text)
    return absl::StrCat("is not idempotent:\n", text, "again:\n", second);
  return absl::nullopt;
}

// A program before it is changed, and its results; after a pass that reorders rounding, `want` is
// replaced by the new results.
struct Subject {
  const Program& unfused;
  const RunInputs& inputs;
  Results want;
  int& bounded;
};

Finding CheckBounds(const Results& got, Subject& subject, Counts& counts) {
  if (!got.ok()) return Compare(subject.want, got, "changed", counts);
  const auto bounds = InterpretReference(subject.unfused, subject.inputs);
  subject.want = got;
  // A place or a condition that the bounds do not decide has no reference.
  if (!bounds.ok()) return absl::nullopt;
  ++subject.bounded;
  for (size_t i = 0; i < got->size(); ++i) {
    const absl::Status status = CheckEnclosed((*bounds)[i], (*got)[i].view());
    if (!status.ok()) return absl::StrCat("result ", i, ": ", status.message());
  }
  return absl::nullopt;
}

Finding CheckPass(const Pass& pass, Program& program, Subject& subject, Counts& counts) {
  const std::string before = loop::ToText(program);
  const auto changed = pass.run(program);
  if (!changed.ok()) return changed.status().ToString();
  const std::string after = loop::ToText(program);
  if (!*changed) {
    if (after == before) return absl::nullopt;
    return absl::StrCat("says unchanged:\n", before, "became:\n", after);
  }
  const std::string both = absl::StrCat("\nbefore:\n", before, "after:\n", after);
  const absl::Status verified = Verify(program);
  if (!verified.ok()) return absl::StrCat(verified.message(), both);
  if (Finding finding = CheckAgain(pass, program, after)) return finding;
  const auto parsed = loop::ParseProgram(after);
  if (!parsed.ok()) return absl::StrCat(parsed.status().message(), both);
  if (loop::ToText(*parsed) != after)
    return absl::StrCat("prints as\n", loop::ToText(*parsed), both);
  // A program that cannot run need not fail in the same way: a pass may remove the reason.
  if (!subject.want.ok()) return absl::nullopt;
  const Results got = Run(program, subject.inputs);
  if (IsLimit(got)) return absl::nullopt;
  Finding finding = pass.reorders_rounding ? CheckBounds(got, subject, counts)
                                           : Compare(subject.want, got, "changed", counts);
  if (finding) return absl::StrCat(*finding, both);
  return absl::nullopt;
}

}  // namespace

Finding CheckPasses(const fusion::Pipeline& pipeline, const Program& unfused, Program program,
                    const RunInputs& inputs, Counts& counts, int& bounded) {
  Subject subject{unfused, inputs, Run(program, inputs), bounded};
  ++counts.programs;
  if (!subject.want.ok()) ++counts.refused;
  for (const Pass& pass : pipeline.passes()) {
    const Finding finding = CheckPass(pass, program, subject, counts);
    if (finding) return absl::StrCat("pass ", pass.name, ": ", *finding);
  }
  return absl::nullopt;
}

}  // namespace nestor
