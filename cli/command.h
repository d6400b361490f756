// The subcommands of `nestor`: one row each, one file each. main.cc lists them.
#ifndef NESTOR_CLI_COMMAND_H_
#define NESTOR_CLI_COMMAND_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace nestor::cli {

struct Arguments;

struct Flag {
  absl::string_view name;   // with its dashes: "--seed"
  bool takes_value = true;  // --seed=1 or --seed 1; else a switch
  bool repeats = false;     // may be given more than once
};

struct Command {
  absl::string_view name;
  absl::string_view summary;  // one line
  // The whole help text. A line that begins with "  $ " is an example that works
  // as typed, in any directory; cli_test runs each. Names of instruction sets are filled in
  // (WithIsaNames of jit_flags.h).
  absl::string_view help;
  absl::Span<const Flag> flags;
  bool takes_program;  // PROGRAM and NAME=value words
  bool takes_outputs;  // -o NAME=FILE
  // Results go to stdout through output.h; main reports an error and exits with 2; or with 1 if it
  // is Aborted (a check failed), or with 3 if it is Unavailable (the checked code crashed).
  absl::Status (*run)(const Arguments& arguments);
  bool needs_program = true;  // where it takes one
};

extern const Command kRunCommand;
extern const Command kGradCommand;
extern const Command kHeaderCommand;
extern const Command kPrintCommand;
extern const Command kStatsCommand;
extern const Command kBenchCommand;
extern const Command kCheckCommand;
extern const Command kOpsCommand;

}  // namespace nestor::cli

#endif  // NESTOR_CLI_COMMAND_H_
