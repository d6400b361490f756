// The arguments of one call by the numbers that code knows them by, and the checks that do not
// depend on addresses.
#ifndef NESTOR_JIT_CALL_ARGUMENTS_H_
#define NESTOR_JIT_CALL_ARGUMENTS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "jit/bound_inputs.h"
#include "jit/executable.h"
#include "jit/kernel.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"

namespace nestor::jit {

// The tensor of an argument. Arguments are numbered: the program's inputs, then its outputs.
inline loop::TensorId ArgumentOf(const loop::Program& program, size_t number) {
  const size_t inputs = program.inputs.size();
  return number < inputs ? program.inputs[number] : program.outputs[number - inputs];
}

// The arguments that callers may pass to the kernel in one memory: (output, input), each by its
// number among its kind. Sorted.
std::vector<std::pair<int, int>> AliasesOf(const Kernel& kernel);

// An InvalidArgument that names program and argument.
absl::Status ArgumentError(const loop::Program& program, size_t number, absl::string_view what);

// Binds the symbols to inputs by name, bound ones, too. InvalidArgument where names, types, ranks
// or sizes do not fit, or a domain of the program refuses the sizes.
absl::StatusOr<Binding> BindCall(const loop::Program& program, const RunInputs& inputs);
// The shape of an output, by its sizes. InvalidArgument where an extent is not a size.
absl::StatusOr<Dims> ShapeOfOutput(const loop::Program& program, loop::TensorId output,
                                   const Binding& binding);

// Refers to all that it is made from. Bound inputs are arguments like the others.
class CallArguments {
 public:
  // `program`: calls are bound to and checked by it, whatever code runs. `inputs` are its.
  CallArguments(const loop::Program& program, const BoundInputs& inputs, const Arguments& given)
      : program_(program), bound_(inputs), given_(given), inputs_(inputs.all()),
        given_inputs_(given.inputs), outputs_(given.outputs) {}

  // BindCall for these inputs; InvalidArgument also where counts do not fit.
  absl::StatusOr<Binding> Bind() const;
  // InvalidArgument where an output does not have the type and shape that the program gives it, or
  // two of its elements share a place.
  absl::Status CheckOutputs(const Binding& binding) const;

  // REQUIRES, of all below: Bind accepted the inputs, and CheckOutputs the outputs.
  size_t size() const { return inputs_.size() + outputs_.size(); }
  size_t NumInputs() const { return inputs_.size(); }
  const TensorView& operator[](size_t number) const {
    const size_t inputs = inputs_.size();
    return number < inputs ? inputs_[number].View(given_inputs_) : outputs_[number - inputs];
  }
  const loop::Program& program() const { return program_; }
  const loop::TensorInfo& Info(size_t number) const {
    return program_[ArgumentOf(program_, number)];
  }

 private:
  const loop::Program& program_;
  const BoundInputs& bound_;
  const Arguments& given_;
  // Parts of these, which each call reads often.
  const absl::Span<const BoundInputs::Input> inputs_;
  const absl::Span<const TensorView> given_inputs_, outputs_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CALL_ARGUMENTS_H_
