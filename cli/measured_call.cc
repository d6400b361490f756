// A measured call must not contain what a user of the library does once: binding by name, looking
// up $params, allocating results. All of that is done here, and what is left is Executable::Run on
// spans.
#include "cli/measured_call.h"

#include <utility>

#include "loop_ir/program.h"
#include "loop_ir/signature.h"
#include "nestor.h"
#include "uops/invariant.h"

namespace nestor::cli {

// A call in the order of the executable's signature. Dimensions are passed only where no shape
// binds them, since a call that gives others is refused.
absl::StatusOr<MeasuredCall> MakeCall(const jit::Executable& executable, const RunInputs& inputs,
                                      const Binding& binding) {
  const loop::Program& program = executable.program();
  MeasuredCall call;
  for (loop::TensorId id : executable.inputs())
    call.inputs.push_back(inputs.tensors.at(program[id].name));
  for (const ParamInfo& param : program.params)
    call.params.push_back(binding.params.at(param.name));
  if (!UnboundDimensions(SignatureOf(program), {inputs.tensors, {}, {}}).empty())
    call.dims = &inputs.dims;
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Dims> shapes,
                          executable.OutputShapes(call.inputs, call.params, call.dims));
  for (size_t i = 0; i < shapes.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(Tensor output,
                            Tensor::Create(program[program.outputs[i]].type, shapes[i]));
    call.output_views.push_back(output.view());
    call.outputs.push_back(std::move(output));
  }
  return call;
}

absl::StatusOr<std::unique_ptr<const jit::Executable>> CompileBound(
    const Op& op, const RunInputs& inputs, const jit::CompileOptions& options,
    const std::vector<std::string>& bound) {
  NESTOR_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Executable> executable, Compile(op, options));
  for (const std::string& name : bound) {
    const auto tensor = inputs.tensors.find(name);
    const TensorView view = tensor == inputs.tensors.end() ? TensorView() : tensor->second;
    NESTOR_ASSIGN_OR_RETURN(executable, executable->Bind(name, view));
  }
  return executable;
}

}  // namespace nestor::cli
