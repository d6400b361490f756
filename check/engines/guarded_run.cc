// Every buffer that a kernel may read or write lies in pages of its own, between pages that fault,
// with the exact number of bytes that its view covers; the bytes between the elements of an output
// keep their poison, or the run says so.
#include "check/engines/guarded_run.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "interp/interpreter.h"
#include "jit/argument_layout.h"
#include "jit/specialization.h"
#include "loop_ir/constants.h"
#include "loop_ir/signature.h"
#include "uops/invariant.h"

namespace nestor {

namespace {

// Runs follow each other with tensors of much the same sizes, and fresh pages take longer than a
// short run. The thread keeps as much memory as its largest runs needed.
GuardedPool& PoolOfThread() {
  thread_local GuardedPool pool;
  return pool;
}

// The arguments of a call, and the memory that they lie in.
struct PlacedCall {
  std::vector<GuardedMemory> memory;
  std::vector<TensorView> inputs, outputs;
  std::vector<Scalar> params;
  std::vector<std::string> before;   // bytes of the inputs
  std::vector<bool> is_overwritten;  // by input
};

// Copies of the bytes are kept, to find out whether the run changed them.
// Copies keep their strides: what lies between the elements is copied, too.
absl::Status PlaceInputs(const jit::Executable& executable, const RunInputs& given,
                         GuardedMemory::Side side, PlacedCall& call) {
  const loop::Program& program = executable.program();
  for (loop::TensorId id : executable.inputs()) {
    const TensorView& from = given.tensors.at(program[id].name);
    TensorView view = from;
    PlaceGuarded(view, side, call.memory, &PoolOfThread());
    call.before.push_back(BytesOf(from));
    if (!call.before.back().empty()) {
      std::memcpy(call.memory.back().data(), call.before.back().data(), call.before.back().size());
    }
    call.inputs.push_back(view);
  }
  call.is_overwritten.resize(call.inputs.size());
  for (const ParamInfo& param : program.params) {
    const auto it = given.params.find(param.name);
    if (it == given.params.end() && !param.value)
      return absl::InvalidArgumentError("a $param is missing");
    call.params.push_back(it != given.params.end() ? it->second : *param.value);
  }
  return absl::OkStatus();
}

// The input, among those of the call, whose memory output `number` reuses; none that another output
// reuses, or that is bound.
absl::optional<size_t> InputInPlace(const jit::Executable& executable, int number,
                                    const TensorView& view, const PlacedCall& call) {
  const std::vector<loop::TensorId> inputs = executable.inputs();
  for (const auto& [output, input] : executable.aliases()) {
    const loop::TensorId id = executable.program().inputs[static_cast<size_t>(input)];
    const auto place = static_cast<size_t>(absl::c_find(inputs, id) - inputs.begin());
    if (output != number || place == inputs.size() || call.is_overwritten[place]) continue;
    const TensorView& given = call.inputs[place];
    const bool fits = given.type == view.type && given.shape == view.shape && IsContiguous(given) &&
                      IsContiguous(view);
    if (fits) return place;
  }
  return absl::nullopt;
}

// An output in place has the memory of a compact input of its type and shape, as `aliases` allows.
void PlaceOutputs(const jit::Executable& executable, const std::vector<Dims>& shapes,
                  const JitRunOptions& options, PlacedCall& call) {
  const loop::Program& program = executable.program();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const DType type = program[program.outputs[i]].type;
    TensorView view{type, shapes[i], StridesOf(shapes[i], options.outputs), nullptr};
    const absl::optional<size_t> input =
        options.in_place ? InputInPlace(executable, static_cast<int>(i), view, call)
                         : absl::nullopt;
    if (input) {
      view.data = call.inputs[*input].data;
      call.is_overwritten[*input] = true;
    } else {
      PlaceGuarded(view, options.side, call.memory, &PoolOfThread());
    }
    call.outputs.push_back(view);
  }
}

}  // namespace

// After the run: gaps between outputs' elements hold their poison, and inputs their values, except
// those that an output was allowed to overwrite.
Results RunJit(const jit::Executable& executable, const RunInputs& inputs,
               const JitRunOptions& options) {
  PlacedCall call;
  NESTOR_RETURN_IF_ERROR(PlaceInputs(executable, inputs, options.side, call));
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Dims> shapes,
                          executable.OutputShapes(call.inputs, call.params, &inputs.dims));
  PlaceOutputs(executable, shapes, options, call);
  // A workspace of the caller's is dirty from other calls, which is what tests want.
  jit::Workspace own;
  jit::Workspace* const workspace = options.workspace != nullptr ? options.workspace : &own;
  const jit::Arguments arguments{call.inputs, call.outputs, call.params, &inputs.dims};
  NESTOR_RETURN_IF_ERROR(
      executable.RunWatched(arguments, workspace, {options.caller, options.poison_dead}));
  // Compact copies: the guarded memory goes with the call.
  std::vector<Tensor> results;
  for (const TensorView& view : call.outputs) {
    results.push_back(Tensor::FromView(view).value());
    if (!IsContiguous(view) && !GapsAreUntouched(view)) {
      return absl::InternalError(
          absl::StrCat("writes beside the elements of output ", results.size() - 1));
    }
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.is_overwritten[i] && BytesOf(call.inputs[i]) != call.before[i]) {
      return absl::InternalError(absl::StrCat("writes input ", i));
    }
  }
  return results;
}

bool IsCompactCall(const jit::Executable& executable, const RunInputs& inputs,
                   Arrangement outputs) {
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(executable.program()), inputs);
  if (!binding.ok()) return false;
  const auto is_compact = [](const TensorView& view) {
    return jit::LayoutOf(view) == jit::CompactLayout(view.shape.size());
  };
  const loop::Program& program = executable.program();
  // An argument whose elements are not read counts as compact. A bound one is.
  const auto is_compact_input = [&](loop::TensorId id) {
    return program[id].shape_only || is_compact(inputs.tensors.at(program[id].name));
  };
  const auto is_compact_output = [&](loop::TensorId id) {
    const auto shape = EvaluateShape(program.pool, program[id].shape, *binding, program[id].name);
    return shape.ok() &&
           is_compact({program[id].type, *shape, StridesOf(*shape, outputs), nullptr});
  };
  return absl::c_all_of(executable.inputs(), is_compact_input) &&
         absl::c_all_of(program.outputs, is_compact_output);
}

RunningProgram::RunningProgram(const jit::Executable& executable, const RunInputs& inputs,
                               bool compact)
    : program_(executable.kernel().program()), inputs_(inputs) {
  const loop::Program& signature = executable.program();
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(signature), inputs);
  if (binding.ok()) {
    const auto kernel =
        executable.KernelAt([&](const std::string& name) { return binding->Find(name); }, compact);
    if (kernel.ok()) program_ = (*kernel)->program();
  }
  const auto has_rank = [&](loop::TensorId own, loop::TensorId other) {
    return program_[own].shape.size() == signature[other].shape.size();
  };
  // Code for small sizes may have merged axes: its program then has other shapes than the call, and
  // the interpreter needs views of these, and gives results that are given their axes back
  // (shapes_).
  const bool same_ranks = absl::c_equal(program_.inputs, signature.inputs, has_rank) &&
                          absl::c_equal(program_.outputs, signature.outputs, has_rank);
  if (same_ranks) {
    program_ = jit::WithSignature(program_, signature, {});
    return;
  }
  for (loop::TensorId id : signature.outputs) {
    shapes_.push_back(
        EvaluateShape(signature.pool, signature[id].shape, *binding, signature[id].name).value());
  }
  PutNumbers(*binding);
}

// A merged axis binds no dimension, so all sizes are replaced by numbers.
void RunningProgram::PutNumbers(const Binding& binding) {
  loop::PutConstants(program_, [&](const std::string& name) { return binding.Find(name); });
  inputs_.dims.clear();
  for (loop::TensorId id : program_.inputs) {
    TensorView& view = inputs_.tensors.at(program_[id].name);
    const Dims shape =
        EvaluateShape(program_.pool, program_[id].shape, binding, program_[id].name).value();
    if (view.shape == shape) continue;
    copies_.push_back(Tensor::FromView(view).value());
    view = ViewOf(view.type, copies_.back().view().data, shape);
  }
}

Results RunningProgram::Interpreted(
    absl::FunctionRef<Results(const loop::Program&, const RunInputs&)> interpret) const {
  Results results = interpret(program_, inputs_);
  if (!results.ok()) return results;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const TensorView merged = (*results)[i].view();
    NESTOR_ASSIGN_OR_RETURN((*results)[i],
                            Tensor::FromView(ViewOf(merged.type, merged.data, shapes_[i])));
  }
  return results;
}

}  // namespace nestor
