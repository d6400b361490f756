// nestor print: an op at a stage of the pipeline, as text that parses back.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/given.h"
#include "cli/output.h"
#include "cli/program.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"
#include "uops/print.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor print PROGRAM [x=f32[2,3] ...] [flags]

Prints an op as it stands at a stage on its way to the machine.

PROGRAM is a file in the notation, - for stdin, or a macro op's name. Dimensions
and $params stay symbols; x=f32[2,3] says the type and rank of an argument where
the program leaves them open (else T is f32, and ..N one dimension).

  --stage=uops      the micro-ops, in the notation (the default)
  --stage=loops     the loop program that they are lowered to, nothing fused
  --op=NAME         which op of several; by default the last

Examples:
  $ nestor print softmax
  $ nestor print softmax --stage=loops 'x=f64[2,3,4]'
  $ nestor print matmul | nestor run -

Exit codes: 0 done, 2 bad usage or input.
)";

constexpr Flag kFlags[] = {{"--op"}, {"--stage"}};

// In the order of the pipeline.
struct Stage {
  const char* name;
  std::string (*text)(const Op& op);
};
constexpr Stage kStages[] = {
    {"uops", PrintOp},
    {"loops", [](const Op& op) { return loop::ToText(Lower(op)); }},
};

absl::StatusOr<const Stage*> FindStage(const std::string& name) {
  std::vector<std::string> known;
  for (const Stage& stage : kStages) {
    if (stage.name == name) return &stage;
    known.push_back(stage.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("--stage=", name, ": unknown stage", DidYouMean(name, known),
                                                 " (there are ", absl::StrJoin(known, ", "), ")"));
}

absl::Status Run(const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(const Stage* const stage, FindStage(arguments.Find("--stage").value_or("uops")));
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Given given, ReadShapeWords(arguments, program));
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given));
  return WriteStdout(stage->text(op));
}

}  // namespace

const Command kPrintCommand = {"print", "prints an op as micro-ops or loops", kHelp, kFlags, true, false, Run};

}  // namespace nestor::cli
