// Each op is instantiated with nothing given, differentiated, lowered and fused.
#include "cli/ops_table.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "autodiff/gradient.h"
#include "fusion/pipeline.h"
#include "loop_ir/lower.h"
#include "macro_ops/library.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

std::string BlocksText(const Op& op) {
  loop::Program program = Lower(op);
  const absl::Status status = fusion::Pipeline::Default().Run(program);
  NESTOR_CHECK(status.ok(), status.ToString());
  return absl::StrCat(absl::c_count_if(program.body, [](const loop::Item& item) {
    return item.As<loop::Declaration>() == nullptr;
  }));
}

std::string Row(const MacroOp& macro) {
  const absl::StatusOr<Op> op = MacroLibrary().Instantiate(macro.name, {});
  NESTOR_CHECK(op.ok(), op.status().ToString());
  const absl::StatusOr<GradientResult> gradient = Gradient(*op);
  return absl::StrCat("| `", macro.name, "` | ",
                      absl::StrReplaceAll(macro.summary, {{"|", "\\|"}, {"*", "\\*"}}), " | ",
                      macro.definition.size(), " | ", BlocksText(*op), " | ",
                      gradient.ok() ? BlocksText(gradient->op) : "-", " |\n");
}

}  // namespace

std::string OpsTable() {
  std::string text, family;
  for (const MacroOp& macro : MacroOps()) {
    if (macro.family != family) {
      absl::StrAppend(
          &text, family.empty() ? "" : "\n", "## ", macro.family,
          "\n\n| op | what it is | characters | blocks | of its gradient |\n|---|---|--:|--:|--:|\n");
      family = macro.family;
    }
    absl::StrAppend(&text, Row(macro));
  }
  return text;
}

}  // namespace nestor::cli
