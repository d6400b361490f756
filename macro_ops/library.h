// The macro library: ops written in the notation, known by name, each with
// sample shapes that the command and the tests iterate. An op is a piece of
// notation in a .nestor file of this folder:
//
//   # What it computes.
//   # sample x=[3,4] ids=[5]<4 $k=2
//   op NAME(..) -> (..) { .. }
//
// and a plain loop in tests/naive_*.cc, which //tests:macro_ops_test asks for
// (docs/adding-an-op.md).
// `<B` bounds made-up values: integers in 0..B-1, floats in [0, B).
#ifndef NESTOR_MACRO_OPS_LIBRARY_H_
#define NESTOR_MACRO_OPS_LIBRARY_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "uops/notation/module.h"

namespace nestor {

// An argument of a sample: ids=[5]<4 has the shape [5] and the bound 4.
struct SampleArgument {
  std::string name;
  std::vector<int64_t> shape;
  absl::optional<int64_t> bound;
};

// One line "# sample ..": sizes at which the op makes sense, for commands and tests.
struct Sample {
  std::vector<SampleArgument> args;
  std::vector<std::pair<std::string, std::string>> params;  // "$k" and a literal
};

// An op as a file of the library has it. Type variables and packs are those of the text:
// MacroLibrary().Instantiate makes an Op for given types and ranks.
struct MacroOp {
  std::string name;
  std::string family;      // its file's name, without the ending
  std::string summary;     // the comment, without samples and conditions
  std::string definition;  // from "op" to "}"
  std::vector<Sample> samples;
  // Conditions on sizes and $params, in the notation: the op is meant for those that meet them,
  // though it can be run at others. They come from lines "# where O % $groups == 0".
  std::vector<std::string> conditions;
};

// All ops of the library, as a module to look callees up in. Immutable; lives as
// long as the process; thread-safe.
const Module& MacroLibrary();

// The ops in the order of the files, and then of their text.
const std::vector<MacroOp>& MacroOps();
// Null: none has the name.
// The op lives as long as the process, as MacroOps() does.
const MacroOp* FindMacroOp(absl::string_view name);

}  // namespace nestor

#endif  // NESTOR_MACRO_OPS_LIBRARY_H_
