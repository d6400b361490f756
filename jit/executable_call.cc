// A call, in two parts by cost. A call whose shapes, strides and $params are those of the
// workspace's last call finds everything prepared: it checks addresses, puts them into the table,
// and runs. Any other call binds and checks first, picks the code for its sizes and layout, and has
// the kernel prepared for them.
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "jit/argument_layout.h"
#include "jit/call_arguments.h"
#include "jit/executable.h"
#include "jit/executable_code.h"
#include "jit/layout_kernels.h"
#include "jit/workspace_state.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

// The inputs of a call and the tensors to which others are bound.
absl::StatusOr<RunInputs> WithBound(const Executable& executable, RunInputs inputs) {
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

absl::StatusOr<std::vector<Dims>> ShapesOfOutputs(const loop::Program& program,
                                                  const Binding& binding) {
  std::vector<Dims> shapes;
  for (loop::TensorId id : program.outputs) {
    NESTOR_ASSIGN_OR_RETURN(Dims shape, ShapeOfOutput(program, id, binding));
    NESTOR_RETURN_IF_ERROR(NumBytes(program[id].type, shape).status());
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;

absl::Status Executable::Run(const Arguments& arguments, Workspace* workspace) const {
  return RunBound(arguments, nullptr, workspace, {});
}

absl::Status Executable::RunWatched(const Arguments& arguments, Workspace* workspace,
                                    const Hooks& hooks) const {
  return RunBound(arguments, nullptr, workspace, hooks);
}

// Results need memory before the call runs, and so sizes: the call takes over the binding that
// gives them.
absl::StatusOr<std::vector<Tensor>> Executable::RunByName(const RunInputs& given,
                                                          Workspace* workspace) const {
  absl::optional<RunInputs> all;  // a copy only where some inputs are bound
  if (inputs_.NumGiven() < inputs_.all().size()) {
    NESTOR_ASSIGN_OR_RETURN(all, WithBound(*this, given));
  }
  const RunInputs& named = all ? *all : given;
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, BindCall(program(), named));
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Dims> shapes, ShapesOfOutputs(program(), binding));
  std::vector<TensorView> arguments, outputs;
  for (loop::TensorId id : inputs()) arguments.push_back(named.tensors.at(program()[id].name));
  std::vector<Scalar> params;
  for (const ParamInfo& param : program().params) params.push_back(binding.params.at(param.name));
  std::vector<Tensor> results;
  for (size_t i = 0; i < shapes.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(Tensor result,
                            Tensor::Create(program()[program().outputs[i]].type, shapes[i]));
    outputs.push_back(result.view());
    results.push_back(std::move(result));
  }
  Workspace own;
  NESTOR_RETURN_IF_ERROR(RunBound({arguments, outputs, params, &named.dims}, &binding,
                                  workspace != nullptr ? workspace : &own, {}));
  return results;
}

// `binding`: that of the call, or null where nothing has bound it yet. The workspace belongs to no
// call while it is prepared: if that fails, the next call prepares again.
absl::Status Executable::RunBound(const Arguments& arguments, const Binding* binding,
                                  Workspace* workspace, const Hooks& hooks) const {
  Workspace::State& state = *workspace->state_;
  const CallArguments call(program(), inputs_, arguments);
  const bool reused = NESTOR_MUTANT("workspace_reused_for_other_shapes") && state.owner == id_;
  if (!state.SameCall(id_, arguments) && !reused) {
    state.owner = 0;
    absl::optional<Binding> own;
    if (binding == nullptr) {
      NESTOR_ASSIGN_OR_RETURN(own, call.Bind());
    }
    NESTOR_RETURN_IF_ERROR(Prepare(call, own ? *own : *binding, state));
    state.Remember(id_, arguments);
  }
  NESTOR_RETURN_IF_ERROR(state.memory.Check(call, code_->aliases));
  if (!state.memory.has_results()) return absl::OkStatus();
  NESTOR_RETURN_IF_ERROR(state.kernel.SetAddresses(call, state.memory));
  Kernel::RunOptions run;
  run.caller = hooks.caller;
  const auto watch = [&](int first_item, bool parallel) {
    if (hooks.poison_dead) state.kernel.PoisonDead(first_item, parallel);
    if (hooks.watcher != nullptr) (*hooks.watcher)(state.kernel.kernel(), first_item);
  };
  const Kernel::Observer observer(watch);
  if (hooks.poison_dead || hooks.watcher != nullptr) run.before = &observer;
  if (state.is_parallel && hooks.caller == nullptr) run.executor = options().executor;
  const int64_t result = state.kernel.Run(run);
  if (result == 0) return absl::OkStatus();
  // Code returns the number of the statement, plus 1.
  return absl::OutOfRangeError(absl::StrCat("program ", program().name,
                                            ": access out of range in `",
                                            state.kernel.kernel().StatementText(result - 1), "`"));
}

// All that a call decides before it runs code. Results without elements need no kernel.
absl::Status Executable::Prepare(const CallArguments& arguments, const Binding& binding,
                                 Workspace::State& state) const {
  NESTOR_RETURN_IF_ERROR(arguments.CheckOutputs(binding));
  NESTOR_RETURN_IF_ERROR(state.memory.Measure(arguments));
  if (!state.memory.has_results()) return absl::OkStatus();
  const int64_t bytes = state.memory.bytes();
  NESTOR_ASSIGN_OR_RETURN(auto kernel, KernelFor(arguments, binding, bytes));
  // Handing work to threads takes some microseconds, which must be worth it.
  state.is_parallel = bytes >= options().least_parallel_bytes || ComputesMuch(binding);
  const int64_t workers = options().executor == nullptr ? 1 : options().executor->NumThreads();
  return state.kernel.Prepare(std::move(kernel), arguments, binding, aliases(), workers);
}

// For example a product of small matrices, each element of which is used often.
bool Executable::ComputesMuch(const Binding& binding) const {
  const std::shared_ptr<const Origin>& origin = code_->variants->origin();
  if (origin == nullptr) return false;
  const double work =
      WorkAt(origin->unfused, [&](const std::string& name) { return binding.Find(name); });
  return work >= static_cast<double>(options().least_parallel_work);
}

// By what code depends on: layouts, how much memory is used in all, which inputs are bound, and
// sizes.
absl::StatusOr<std::shared_ptr<const Kernel>> Executable::KernelFor(const CallArguments& arguments,
                                                                    const Binding& binding,
                                                                    int64_t bytes) const {
  KernelOptions kernel;
  kernel.translate.isa = options().isa;
  kernel.residence = code_->ResidenceOf(static_cast<double>(bytes));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TensorView& view = arguments[i];
    // If nobody reads the elements, any layout will do: the one that code likes best.
    const bool is_read = !arguments.Info(i).shape_only;
    kernel.translate.layouts.push_back(is_read ? LayoutOf(view) : CompactLayout(view.shape.size()));
  }
  kernel.translate.constant = inputs_.Constant();
  return code_->variants->For([&](const std::string& name) { return binding.Find(name); }, kernel);
}

absl::StatusOr<std::vector<Dims>> Executable::OutputShapes(
    absl::Span<const TensorView> inputs, absl::Span<const Scalar> params,
    const absl::flat_hash_map<std::string, int64_t>* dims) const {
  const Arguments given = {inputs, {}, params, dims};
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, CallArguments(program(), inputs_, given).Bind());
  return ShapesOfOutputs(program(), binding);
}

}  // namespace nestor::jit
