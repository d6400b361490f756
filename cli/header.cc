// nestor header: the prototype of the C function that implements an op.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "check/c_prototype.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/given.h"
#include "cli/library_kernel.h"
#include "cli/output.h"
#include "cli/program.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor header PROGRAM [x=f32[2,3] ...] [flags]

Prints a C header: the function that a kernel of the op is, as `nestor check
PROGRAM --library=..` calls it. Its parameters are

  a pointer for each argument, and for each result: row-major, the last axis runs
    fastest; bf16 and f16 are uint16_t, their bits; an argument of which only the
    shape counts has none
  an int64_t for each dimension, as they first appear in the signature
  the $params, each of its own type

It returns 0 when done, and 1 when it does not do these sizes.

PROGRAM is a file in the notation, - for stdin, the text of ops ('op f(..) ..'), or
a macro op's name. NAME=f32[2,3] says an argument's type and number of axes; without
it a pack is one dimension, and a type variable is f32.

  --type=f64        what type variables are
  --strided         an int64_t for each axis follows each pointer: its stride, in
                    elements
  --symbol=NAME     the function's name; by default the op's
  --op=NAME         which op of several; by default the last

Examples:
  $ nestor header softmax
  $ nestor header matmul --type=f64 --strided --symbol=my_matmul
  $ nestor grad layer_norm | nestor header -

Exit codes: 0 done, 2 bad usage or input.
)";

constexpr Flag kFlags[] = {{"--op"}, {"--type"}, {"--strided", false}, {"--symbol"}};

absl::Status Run(const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(const std::string symbol, ReadSymbol(arguments));
  if (IsTakenInC(symbol)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--symbol=", symbol, ": C or C++ has another meaning for it"));
  }
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Given given, ReadShapeWords(arguments, program));
  NESTOR_ASSIGN_OR_RETURN(const auto type, ReadType(arguments, program));
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given, type));
  const CPrototype prototype = CPrototypeOf(op, {arguments.Has("--strided"), symbol});
  const std::vector<std::string> none;
  return WriteStdout(
      CHeader(op, prototype, program.macro == nullptr ? none : program.macro->conditions));
}

}  // namespace

const Command kHeaderCommand = {
    "header", "prints the C function that a kernel of an op is", kHelp, kFlags, true, false, Run};

}  // namespace nestor::cli
