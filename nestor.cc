// The verbs that join the parts; each part stands in its own folder.
#include "nestor.h"

#include "fusion/dead_code.h"
#include "uops/invariant.h"

namespace nestor {

absl::StatusOr<Op> Parse(absl::string_view text, const ArgumentSpecs& specs) {
  NESTOR_ASSIGN_OR_RETURN(const Module module, Module::Parse(text, &MacroLibrary()));
  return module.Instantiate("", specs);
}

absl::StatusOr<Op> LibraryOp(absl::string_view name, const ArgumentSpecs& specs) {
  return MacroLibrary().Instantiate(name, specs);
}

absl::StatusOr<std::vector<Tensor>> Run(const Op& op, const RunInputs& inputs,
                                        const InterpreterOptions& options) {
  loop::Program program = Lower(op);
  NESTOR_RETURN_IF_ERROR(fusion::EliminateDeadCode(program).status());
  return Interpret(program, inputs, options);
}

}  // namespace nestor
