// The verbs that join the parts; each part has its own folder.
#include "nestor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "fusion/dead_code.h"
#include "loop_ir/signature.h"
#include "tensor/binding.h"
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

namespace {

// The inputs of a call and the tensors to which others are bound.
absl::StatusOr<RunInputs> WithBound(const jit::Executable& executable, RunInputs inputs) {
  const loop::Program& program = executable.program();
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorView* const bound = executable.bound(i);
    const std::string& name = program[program.inputs[i]].name;
    if (bound == nullptr || inputs.tensors.emplace(name, *bound).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("op ", program.name, ": argument ", name,
                                                   " is bound, and calls do not give it"));
  }
  return inputs;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> Run(const jit::Executable& executable, const RunInputs& given,
                                        jit::Workspace* workspace) {
  const loop::Program& program = executable.program();
  const Signature signature = SignatureOf(program);
  const std::vector<loop::TensorId> asked = executable.inputs();
  absl::optional<RunInputs> all;  // a copy only where some inputs are bound
  if (asked.size() < program.inputs.size()) {
    NESTOR_ASSIGN_OR_RETURN(all, WithBound(executable, given));
  }
  const RunInputs& inputs = all ? *all : given;
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, Bind(signature, inputs));
  std::vector<TensorView> arguments, outputs;
  for (loop::TensorId id : asked) arguments.push_back(inputs.tensors.at(program[id].name));
  std::vector<Scalar> params;
  for (const ParamInfo& param : program.params) params.push_back(binding.params.at(param.name));
  // Dimensions that the arguments bind are left out: then a workspace recognizes a call by its
  // arguments alone.
  const auto* dims =
      UnboundDimensions(signature, {inputs.tensors, {}, {}}).empty() ? nullptr : &inputs.dims;
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Dims> shapes,
                          executable.OutputShapes(arguments, params, dims));
  std::vector<Tensor> results;
  for (size_t i = 0; i < shapes.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(Tensor result,
                            Tensor::Create(program[program.outputs[i]].type, shapes[i]));
    outputs.push_back(result.view());
    results.push_back(std::move(result));
  }
  jit::Workspace own;
  NESTOR_RETURN_IF_ERROR(
      executable.Run({arguments, outputs, params, dims}, workspace != nullptr ? workspace : &own));
  return results;
}

}  // namespace nestor
