// The command `nestor`: finds the subcommand, and turns its Status into a message
// and an exit code.
//   0  done        1  a check failed        2  bad usage or input
//   3  what was checked crashed or hung
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/jit_flags.h"
#include "cli/output.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor::cli {
namespace {

constexpr char kVersion[] = "nestor 0.1\n";

constexpr int kDone = 0;
constexpr int kCheckFailed = 1;
constexpr int kBadUsage = 2;
constexpr int kCrashed = 3;

const Command* const kCommands[] = {&kRunCommand,   &kGradCommand,  &kPrintCommand,  &kStatsCommand,
                                    &kBenchCommand, &kCheckCommand, &kHeaderCommand, &kOpsCommand};

std::string Usage() {
  std::string text =
      "nestor SUBCOMMAND ...\n\n"
      "One line describes a tensor operation; Nestor runs it, and derives its gradient.\n\n";
  for (const Command* command : kCommands)
    absl::StrAppendFormat(&text, "  %-8s %s\n", command->name, command->summary);
  absl::StrAppend(&text, "  help     shows how a subcommand is used, as SUBCOMMAND --help does\n\n"
                         "nestor --version prints the version.\n\n"
                         "Examples:\n"
                         "  $ nestor run softmax 'x=f32[2,3]'\n"
                         "  $ nestor help run\n");
  return text;
}

absl::StatusOr<const Command*> FindCommand(const std::string& name) {
  std::vector<std::string> known = {"help"};
  for (const Command* command : kCommands) {
    if (command->name == name) return command;
    known.emplace_back(command->name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown subcommand '", name, "'",
                                                 DidYouMean(name, known), " (there are ",
                                                 absl::StrJoin(known, ", "), ")"));
}

absl::Status NoSubcommand() {
  WriteStderr(absl::StrCat(Usage(), "\n"));
  return absl::InvalidArgumentError("no subcommand is given");
}

absl::Status Help(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "help") return WriteStdout(Usage());
  NESTOR_ASSIGN_OR_RETURN(const Command* const command, FindCommand(words[0]));
  return WriteStdout(WithIsaNames(command->help));
}

absl::Status RunCommand(const std::string& name, const std::vector<std::string>& words) {
  if (name == "help" || name == "--help" || name == "-h") return Help(words);
  if (name == "--version") return WriteStdout(kVersion);
  NESTOR_ASSIGN_OR_RETURN(const Command* const command, FindCommand(name));
  const absl::StatusOr<Arguments> arguments = ParseArguments(*command, words);
  if (!arguments.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(arguments.status().message(), "\n(`nestor ",
                                                   name, " --help` shows how it is used)"));
  }
  return arguments->help ? WriteStdout(WithIsaNames(command->help)) : command->run(*arguments);
}

int ExitCode(const absl::Status& status) {
  // It is no error if the reader of stdout has had enough.
  if (status.ok() || absl::IsCancelled(status)) return kDone;
  ReportError(status);
  if (absl::IsAborted(status)) return kCheckFailed;
  return absl::IsUnavailable(status) ? kCrashed : kBadUsage;
}

int Main(const std::vector<std::string>& words) {
  PrepareStandardStreams();
  try {
    if (words.empty()) return ExitCode(NoSubcommand());
    return ExitCode(RunCommand(words[0], {words.begin() + 1, words.end()}));
  } catch (const std::bad_alloc&) {
    return ExitCode(absl::ResourceExhaustedError("out of memory"));
  }
}

}  // namespace
}  // namespace nestor::cli

int main(int argc, char** argv) {
  return nestor::cli::Main({argv + (argc > 0 ? 1 : 0), argv + argc});
}
