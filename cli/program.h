// PROGRAM: what it names, its text, and the op that is meant.
#ifndef NESTOR_CLI_PROGRAM_H_
#define NESTOR_CLI_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "cli/arguments.h"
#include "macro_ops/library.h"
#include "uops/notation/module.h"
#include "uops/op.h"

namespace nestor::cli {

struct Program {
  // For messages: the file's name, "<stdin>", "<PROGRAM>", a generator's call; empty
  // for a macro op.
  std::string place;
  std::string text;                // the text at `place`
  absl::optional<Module> own;      // the ops of `text`; none: the macro library
  const MacroOp* macro = nullptr;  // where PROGRAM is a macro op's name
  std::string op;                  // the op that is meant

  const Module& module() const { return own ? *own : MacroLibrary(); }
  const ast::Op& Syntax() const { return module().Syntax(op); }
  // Errors in the text read "PLACE:LINE:COLUMN: ...", with the line and a caret
  // under the column. Warnings go to stderr, with the same place.
  absl::StatusOr<Op> Instantiate(const ArgumentSpecs& specs) const;
};

// PROGRAM is an existing file, "-" for stdin, or else the text of ops ("op NAME(..."), a call of a
// generator ("einsum(ij,jk->ik)"), or a macro op.
// `--op` picks one of several ops; the default is the last.
absl::StatusOr<Program> LoadProgram(const Arguments& arguments);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_PROGRAM_H_
