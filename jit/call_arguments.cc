// Most checks are those of the op as it was written (tensor/binding.h), so that an executable
// refuses what every other engine refuses. Outputs are checked here: only compiled code writes into
// memory that a caller chose.
#include "jit/call_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "loop_ir/intervals.h"
#include "loop_ir/signature.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using loop::Program;
using loop::TensorId;

// Whether no two elements share a place: with the axes sorted by stride, each axis steps over the
// whole extent of those below it.
// [2, 3] with strides [3, 1]: yes; [2, 3] with [1, 1]: no, as [0, 1] and [1, 0] are one place
// Sufficient, not necessary: [3, 2] with [2, 3] is refused, though 0, 2, 3, 4, 5 and 7 differ
bool IsInjective(const TensorView& view) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 0) return true;
    if (view.shape[i] > 1) axes.emplace_back(std::abs(view.strides[i]), view.shape[i]);
  }
  std::sort(axes.begin(), axes.end());
  int64_t reach = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride < reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

absl::Status CountError(const Program& program, absl::string_view what, size_t given,
                        size_t wanted) {
  return absl::InvalidArgumentError(absl::StrCat("program ", program.name, ": ", given, " ", what,
                                                 " given, ", wanted, " wanted"));
}

}  // namespace

// The kernel knows tensors; a caller knows the numbers of outputs and inputs.
// Sorted, as callers search in it.
std::vector<std::pair<int, int>> AliasesOf(const Kernel& kernel) {
  const Program& program = kernel.program();
  std::vector<int> numbers(program.tensors.size());  // of inputs and outputs
  for (const std::vector<TensorId>* list : {&program.inputs, &program.outputs}) {
    for (size_t i = 0; i < list->size(); ++i) numbers[(*list)[i].value] = static_cast<int>(i);
  }
  std::vector<std::pair<int, int>> aliases;
  for (const auto& [output, input] : kernel.plan().aliases) {
    aliases.emplace_back(numbers[output.value], numbers[input.value]);
  }
  std::sort(aliases.begin(), aliases.end());
  return aliases;
}

absl::Status ArgumentError(const Program& program, size_t number, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "program ", program.name, ": ", number < program.inputs.size() ? "input " : "output ",
      program[ArgumentOf(program, number)].name, ": ", what));
}

absl::StatusOr<Binding> BindCall(const Program& program, const RunInputs& inputs) {
  NESTOR_ASSIGN_OR_RETURN(Binding binding, Bind(SignatureOf(program), inputs));
  NESTOR_RETURN_IF_ERROR(
      loop::CheckDomains(program, [&](const std::string& name) { return binding.Find(name); }));
  return binding;
}

absl::StatusOr<Dims> ShapeOfOutput(const Program& program, loop::TensorId output,
                                   const Binding& binding) {
  const std::string what =
      absl::StrCat("program ", program.name, ": output ", program[output].name);
  return EvaluateShape(program.pool, program[output].shape, binding, what);
}

// Sizes from shapes, $params from the call or their defaults; then the checks of the op as written.
absl::StatusOr<Binding> CallArguments::Bind() const {
  if (given_inputs_.size() != bound_.NumGiven()) {
    return CountError(program_, "inputs", given_inputs_.size(), bound_.NumGiven());
  }
  const absl::Span<const Scalar> params = given_.params;
  if (!params.empty() && params.size() != program_.params.size()) {
    return CountError(program_, "$params", params.size(), program_.params.size());
  }
  RunInputs run;
  // Bound inputs take part: their shapes give dimensions, too.
  for (size_t i = 0; i < NumInputs(); ++i) run.tensors[Info(i).name] = (*this)[i];
  for (size_t i = 0; i < params.size(); ++i) run.params[program_.params[i].name] = params[i];
  if (given_.dims != nullptr) run.dims = *given_.dims;
  return BindCall(program_, run);
}

// Shapes must be exactly those that the sizes give. Two elements in one place would be written in
// an order that threads decide.
absl::Status CallArguments::CheckOutputs(const Binding& binding) const {
  if (outputs_.size() != program_.outputs.size()) {
    return CountError(program_, "outputs", outputs_.size(), program_.outputs.size());
  }
  for (size_t number = NumInputs(); number < size(); ++number) {
    const loop::TensorInfo& info = Info(number);
    const TensorView& view = (*this)[number];
    const auto error = [&](absl::string_view what) {
      return ArgumentError(program_, number, what);
    };
    NESTOR_ASSIGN_OR_RETURN(const Dims shape,
                            ShapeOfOutput(program_, ArgumentOf(program_, number), binding));
    if (view.type != info.type || view.shape != shape) {
      return error(absl::StrCat(Name(view.type), ShapeText(view.shape), " given, ", Name(info.type),
                                ShapeText(shape), " wanted"));
    }
    const absl::Status valid = CheckView(view);
    if (!valid.ok()) return error(valid.message());
    if (!IsInjective(view)) {
      return error(absl::StrCat("elements may share memory: strides ", ShapeText(view.strides)));
    }
  }
  return absl::OkStatus();
}

}  // namespace nestor::jit
