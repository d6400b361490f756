// The verbs that join the parts; each part has its own folder.
#include "nestor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "fusion/dead_code.h"
#include "tensor/files.h"
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
  NESTOR_RETURN_IF_ERROR(loop::EliminateDeadCode(program).status());
  return Interpret(program, inputs, options);
}

absl::StatusOr<std::unique_ptr<const jit::Executable>> Compile(const Op& op,
                                                               const jit::CompileOptions& options) {
  return jit::Compile(Lower(op), options);
}

absl::StatusOr<std::shared_ptr<const jit::Schedules>> LoadSchedules(const std::string& path) {
  NESTOR_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, "file of schedules"));
  absl::StatusOr<jit::Schedules> schedules = jit::Schedules::Parse(text);
  if (schedules.ok()) return std::make_shared<const jit::Schedules>(*std::move(schedules));
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", schedules.status().message()));
}

absl::StatusOr<std::vector<Tensor>> Run(const jit::Executable& executable, const RunInputs& inputs,
                                        jit::Workspace* workspace) {
  return executable.RunByName(inputs, workspace);
}

}  // namespace nestor
