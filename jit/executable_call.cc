// A call, in two parts by cost. A call whose shapes, strides and $params are those of the
// workspace's last call finds everything prepared: it checks addresses, puts them into the table,
// and runs. Any other call binds and checks first, picks the code for its sizes and layout,
// evaluates the table and places temporaries.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "jit/argument_layout.h"
#include "jit/executable.h"
#include "jit/executable_code.h"
#include "jit/layout_kernels.h"
#include "jit/slot_values.h"
#include "jit/workspace_state.h"
#include "loop_ir/intervals.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/signature.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

using loop::Program;
using loop::TensorId;

constexpr char kPoison = '\xff';  // a NaN of any float

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

// Where the arguments of a call lie when it begins, as far as their size tells.
Residence ResidenceOf(const ExecutableOptions& options, int64_t bytes) {
  const auto reaches = [&](int64_t least) { return least > 0 && bytes >= least; };
  if (reaches(options.streaming_bytes)) return Residence::kMemory;
  return reaches(options.prefetching_bytes) ? Residence::kLastCache : Residence::kCore;
}

}  // namespace

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;

absl::Status Executable::Run(const Arguments& arguments, Workspace* workspace) const {
  return RunWith(arguments, workspace, {});
}

absl::Status Executable::RunWatched(const Arguments& arguments, Workspace* workspace,
                                    const Hooks& hooks) const {
  return RunWith(arguments, workspace, hooks);
}

// The workspace belongs to no call while it is prepared: if that fails, the next call prepares
// again.
absl::Status Executable::RunWith(const Arguments& arguments, Workspace* workspace,
                                 const Hooks& hooks) const {
  Workspace::State& state = *workspace->state_;
  const bool reused = NESTOR_MUTANT("workspace_reused_for_other_shapes") && state.owner == id_;
  if (!state.SameCall(id_, arguments) && !reused) {
    state.owner = 0;
    NESTOR_RETURN_IF_ERROR(Prepare(arguments, state));
    state.Remember(id_, arguments);
  }
  NESTOR_RETURN_IF_ERROR(CheckMemory(arguments, state));
  if (!state.has_results) return absl::OkStatus();
  for (const auto& [slot, argument] : state.addresses) {
    state.table[slot] =
        reinterpret_cast<int64_t>(ArgumentAt(arguments, static_cast<size_t>(argument)).data);
  }
  NESTOR_RETURN_IF_ERROR(CopyOverwritten(arguments, state));
  Kernel::RunOptions run;
  run.caller = hooks.caller;
  const auto watch = [&](int first_item, bool parallel) {
    if (hooks.poison_dead) PoisonDead(state, first_item, parallel);
    if (hooks.watcher != nullptr) (*hooks.watcher)(*state.kernel, first_item);
  };
  const Kernel::Observer observer(watch);
  if (hooks.poison_dead || hooks.watcher != nullptr) run.before = &observer;
  if (state.is_parallel && hooks.caller == nullptr) run.executor = options().executor;
  run.constants_are_there = state.has_constants;
  const int64_t result = state.kernel->Run(state.table.data(), state.workers, run);
  // After a failure nothing is known about them: the next call computes them again.
  state.has_constants = result == 0;
  if (result == 0) return absl::OkStatus();
  // Code returns the number of the statement, plus 1.
  return absl::OutOfRangeError(absl::StrCat("program ", program().name,
                                            ": access out of range in `",
                                            state.kernel->StatementText(result - 1), "`"));
}

// Inputs that the code for these sizes reads after it wrote the output that takes their memory are
// copied first.
absl::Status Executable::CopyOverwritten(const Arguments& arguments,
                                         Workspace::State& state) const {
  for (auto& [output, input, memory] : state.overwritten) {
    const TensorView& view = ArgumentAt(arguments, static_cast<size_t>(input));
    const ByteRange& range = state.footprints[static_cast<size_t>(input)];
    if (view.data != arguments.outputs[static_cast<size_t>(output)].data ||
        range.begin == range.end)
      continue;
    NESTOR_ASSIGN_OR_RETURN(char* const copy, memory.Reserve(range.end - range.begin));
    std::memcpy(copy, view.data, static_cast<size_t>(range.end - range.begin));
    for (const auto& [slot, argument] : state.addresses) {
      if (argument == input) state.table[slot] = reinterpret_cast<int64_t>(copy);
    }
  }
  return absl::OkStatus();
}

// Checks that depend on addresses, which may differ at each call.
absl::Status Executable::CheckMemory(const Arguments& arguments, Workspace::State& state) const {
  const size_t count = NumArguments();
  for (size_t i = 0; i < count; ++i) {
    const TensorView& view = ArgumentAt(arguments, i);
    const ByteRange& footprint = state.footprints[i];
    if (view.data == nullptr && footprint.begin != footprint.end)
      return ArgumentError(i, "has no memory");
    const int bytes = ByteSize(view.type);
    if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(bytes) == 0) continue;
    return ArgumentError(i, absl::StrCat("elements of ", Name(view.type),
                                         " do not lie at a multiple of ", bytes, " bytes"));
  }
  if (OutputsAreApart(arguments, state)) return absl::OkStatus();
  for (size_t output = inputs_.size(); output < count; ++output) {
    for (size_t other = 0; other < output; ++other) {
      NESTOR_RETURN_IF_ERROR(CheckOverlap(arguments, state, output, other));
    }
  }
  return absl::OkStatus();
}

// Whether CheckOverlap would accept all outputs. Sorted by address, outputs do not overlap if
// neighbours do not, and an input can only overlap outputs that follow each other.
bool Executable::OutputsAreApart(const Arguments& arguments, Workspace::State& state) const {
  const auto begin = [&](size_t i) {
    return static_cast<const char*>(ArgumentAt(arguments, i).data) + state.footprints[i].begin;
  };
  const auto end = [&](size_t i) {
    return static_cast<const char*>(ArgumentAt(arguments, i).data) + state.footprints[i].end;
  };
  const auto is_empty = [&](size_t i) {
    return state.footprints[i].begin == state.footprints[i].end;
  };
  // A vector of the workspace, so that calls allocate nothing.
  std::vector<size_t>& outputs = state.sorted_outputs;
  outputs.clear();
  for (size_t i = inputs_.size(); i < NumArguments(); ++i) {
    if (!is_empty(i)) outputs.push_back(i);
  }
  std::sort(outputs.begin(), outputs.end(),
            [&](size_t a, size_t b) { return begin(a) < begin(b); });
  for (size_t k = 1; k < outputs.size(); ++k) {
    if (end(outputs[k - 1]) > begin(outputs[k])) return false;
  }
  for (size_t input = 0; input < inputs_.size(); ++input) {
    if (is_empty(input)) continue;
    auto output = std::partition_point(outputs.begin(), outputs.end(),
                                       [&](size_t i) { return end(i) <= begin(input); });
    for (; output != outputs.end() && begin(*output) < end(input); ++output) {
      if (!CheckOverlap(arguments, state, *output, input).ok()) return false;
    }
  }
  return true;
}

// Footprints are ranges of bytes from the first element, so two arguments whose elements interleave
// without touching count as overlapping.
absl::Status Executable::CheckOverlap(const Arguments& arguments, const Workspace::State& state,
                                      size_t output, size_t other) const {
  const TensorView& a = ArgumentAt(arguments, output);
  const TensorView& b = ArgumentAt(arguments, other);
  const char* const x = static_cast<const char*>(a.data);
  const char* const y = static_cast<const char*>(b.data);
  const ByteRange &p = state.footprints[output], &q = state.footprints[other];
  if (p.begin == p.end || q.begin == q.end || x + p.end <= y + q.begin ||
      y + q.end <= x + p.begin) {
    return absl::OkStatus();
  }
  const std::pair<int, int> pair(static_cast<int>(output - inputs_.size()),
                                 static_cast<int>(other));
  const std::vector<std::pair<int, int>>& aliases = code_->aliases;
  // Just on top of each other: only then is each element read before its own place is written.
  const bool allowed = other < inputs_.size() &&
                       std::binary_search(aliases.begin(), aliases.end(), pair) &&
                       a.data == b.data && IsContiguous(a) && IsContiguous(b);
  if (allowed) return absl::OkStatus();
  return ArgumentError(
      output, absl::StrCat("its memory overlaps that of ", program()[TensorAt(other)].name));
}

// ---- Preparation

// Sizes from shapes, $params from the call or their defaults; then the checks of the op as written.
absl::StatusOr<Binding> Executable::BindArguments(
    absl::Span<const TensorView> inputs, absl::Span<const Scalar> params,
    const absl::flat_hash_map<std::string, int64_t>* dims) const {
  const size_t wanted = static_cast<size_t>(std::count_if(
      inputs_.begin(), inputs_.end(), [](const Input& input) { return input.position >= 0; }));
  if (inputs.size() != wanted) return CountError(program(), "inputs", inputs.size(), wanted);
  if (!params.empty() && params.size() != program().params.size()) {
    return CountError(program(), "$params", params.size(), program().params.size());
  }
  RunInputs given;
  // Bound inputs take part: their shapes give dimensions, too.
  for (size_t i = 0; i < inputs_.size(); ++i)
    given.tensors[program()[TensorAt(i)].name] = ArgumentAt({inputs, {}}, i);
  for (size_t i = 0; i < params.size(); ++i) given.params[program().params[i].name] = params[i];
  if (dims != nullptr) given.dims = *dims;
  NESTOR_ASSIGN_OR_RETURN(Binding binding, nestor::Bind(SignatureOf(program()), given));
  NESTOR_RETURN_IF_ERROR(
      loop::CheckDomains(program(), [&](const std::string& name) { return binding.Find(name); }));
  return binding;
}

absl::StatusOr<std::vector<Dims>> Executable::OutputShapes(
    absl::Span<const TensorView> inputs, absl::Span<const Scalar> params,
    const absl::flat_hash_map<std::string, int64_t>* dims) const {
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, BindArguments(inputs, params, dims));
  std::vector<Dims> shapes;
  for (TensorId id : program().outputs) {
    const std::string what =
        absl::StrCat("program ", program().name, ": output ", program()[id].name);
    NESTOR_ASSIGN_OR_RETURN(Dims shape,
                            EvaluateShape(program().pool, program()[id].shape, binding, what));
    NESTOR_RETURN_IF_ERROR(NumBytes(program()[id].type, shape).status());
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

// Shapes must be exactly those that OutputShapes gives. Two elements in one place would be written
// in an order that threads decide.
absl::Status Executable::CheckOutputs(const Arguments& arguments, const Binding& binding) const {
  if (arguments.outputs.size() != program().outputs.size()) {
    return CountError(program(), "outputs", arguments.outputs.size(), program().outputs.size());
  }
  for (size_t i = 0; i < arguments.outputs.size(); ++i) {
    const loop::TensorInfo& info = program()[program().outputs[i]];
    const TensorView& view = arguments.outputs[i];
    const std::string what = absl::StrCat("program ", program().name, ": output ", info.name);
    NESTOR_ASSIGN_OR_RETURN(const Dims shape,
                            EvaluateShape(program().pool, info.shape, binding, what));
    const size_t number = inputs_.size() + i;
    if (view.type != info.type || view.shape != shape) {
      return ArgumentError(number, absl::StrCat(Name(view.type), ShapeText(view.shape), " given, ",
                                                Name(info.type), ShapeText(shape), " wanted"));
    }
    const absl::Status valid = CheckView(view);
    if (!valid.ok()) return ArgumentError(number, valid.message());
    if (!IsInjective(view)) {
      return ArgumentError(
          number, absl::StrCat("elements may share memory: strides ", ShapeText(view.strides)));
    }
  }
  return absl::OkStatus();
}

// The ranges of bytes that the arguments cover, which aliasing is judged by, and their total, which
// decides about threads and prefetching.
absl::Status Executable::Measure(const Arguments& arguments, Workspace::State& state) const {
  state.footprints.clear();
  state.bytes = 0;
  state.has_results = false;
  for (size_t i = 0; i < NumArguments(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(ByteRange range, Footprint(ArgumentAt(arguments, i)));
    if (program()[TensorAt(i)].shape_only) range = {};  // nobody reads the elements
    state.footprints.push_back(range);
    state.bytes += range.end - range.begin;
    state.has_results |= i >= inputs_.size() && range.end != range.begin;
  }
  return absl::OkStatus();
}

// All that a call decides before it runs code. Results without elements need no kernel.
absl::Status Executable::Prepare(const Arguments& arguments, Workspace::State& state) const {
  NESTOR_ASSIGN_OR_RETURN(const Binding binding,
                          BindArguments(arguments.inputs, arguments.params, arguments.dims));
  NESTOR_RETURN_IF_ERROR(CheckOutputs(arguments, binding));
  NESTOR_RETURN_IF_ERROR(Measure(arguments, state));
  state.has_constants = false;
  if (!state.has_results) return absl::OkStatus();
  NESTOR_ASSIGN_OR_RETURN(state.kernel, KernelFor(arguments, binding, state.bytes));
  // Handing work to threads takes some microseconds, which must be worth it.
  state.is_parallel = state.bytes >= options().least_parallel_bytes || ComputesMuch(binding);
  NoteOverwritten(state);
  NESTOR_RETURN_IF_ERROR(FillTable(*state.kernel, binding, arguments, state));
  return PlaceMemory(*state.kernel, binding, state);
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
absl::StatusOr<std::shared_ptr<const Kernel>> Executable::KernelFor(const Arguments& arguments,
                                                                    const Binding& binding,
                                                                    int64_t bytes) const {
  KernelOptions kernel;
  kernel.translate.isa = options().isa;
  kernel.residence = ResidenceOf(options(), bytes);
  for (size_t i = 0; i < NumArguments(); ++i) {
    const TensorView& view = ArgumentAt(arguments, i);
    // If nobody reads the elements, any layout will do: the one that code likes best.
    const bool is_read = !program()[TensorAt(i)].shape_only;
    kernel.translate.layouts.push_back(is_read ? LayoutOf(view) : CompactLayout(view.shape.size()));
  }
  const auto is_bound = [](const Input& input) { return input.position < 0; };
  if (absl::c_any_of(inputs_, is_bound)) {
    for (const Input& input : inputs_) kernel.translate.constant.push_back(is_bound(input));
  }
  return code_->variants->For([&](const std::string& name) { return binding.Find(name); }, kernel);
}

// The arguments that callers may pass in one memory do not depend on sizes: the general code
// determines them.
void Executable::NoteOverwritten(Workspace::State& state) const {
  const std::vector<std::pair<int, int>> allowed = AliasesOf(*state.kernel);
  state.overwritten.clear();
  for (const auto& [output, input] : aliases()) {
    if (std::binary_search(allowed.begin(), allowed.end(), std::make_pair(output, input))) continue;
    state.overwritten.push_back({output, input, {}});
  }
}

// All slots but addresses, which each call puts in: `state.addresses` says where.
absl::Status Executable::FillTable(const Kernel& kernel, const Binding& binding,
                                   const Arguments& arguments, Workspace::State& state) const {
  const Program& program = kernel.program();
  std::vector<Dims> strides(program.tensors.size());
  const auto set_strides = [&](TensorId tensor, const Dims& elements) {
    for (int64_t stride : elements)
      strides[tensor.value].push_back(stride * ByteSize(program[tensor].type));
  };
  for (size_t i = 0; i < NumArguments(); ++i) {
    const TensorId tensor = ArgumentOf(program, i);
    Dims of_argument = ArgumentAt(arguments, i).strides;
    // The axes are merged, so the argument is compact.
    if (of_argument.size() != program[tensor].shape.size()) {
      const loop::TensorInfo& info = program[tensor];
      NESTOR_ASSIGN_OR_RETURN(const Dims shape,
                              EvaluateShape(program.pool, info.shape, binding, info.name));
      of_argument = CompactStrides(shape);
    }
    if (NESTOR_MUTANT("stride_of_wrong_axis")) std::reverse(of_argument.begin(), of_argument.end());
    set_strides(tensor, of_argument);
  }
  const auto place = [&](TensorId tensor) -> absl::Status {
    NESTOR_ASSIGN_OR_RETURN(const Dims shape,
                            EvaluateShape(program.pool, program[tensor].shape, binding,
                                          absl::StrCat("temp ", program[tensor].name)));
    NESTOR_RETURN_IF_ERROR(NumBytes(program[tensor].type, shape).status());
    set_strides(tensor, CompactStrides(shape));
    return absl::OkStatus();
  };
  for (const loop::PlannedBuffer& buffer : kernel.plan().buffers) {
    for (TensorId tensor : buffer.tensors) NESTOR_RETURN_IF_ERROR(place(tensor));
  }
  const SlotValues values(kernel, binding, strides);
  const std::vector<TableSlot>& slots = kernel.table().slots;
  state.table.assign(slots.size(), 0);
  state.addresses.clear();
  absl::flat_hash_map<TensorId, int> arguments_of;
  for (size_t a = 0; a < NumArguments(); ++a)
    arguments_of.emplace(ArgumentOf(program, a), static_cast<int>(a));
  for (size_t i = 0; i < slots.size(); ++i) {
    state.table[i] = values.Of(slots[i]);
    if (slots[i].kind != TableSlot::kAddress) continue;
    const auto argument = arguments_of.find(slots[i].tensor);
    if (argument != arguments_of.end())
      state.addresses.emplace_back(static_cast<int>(i), argument->second);
  }
  return absl::OkStatus();
}

// The program's temporaries lie in one arena, those of scopes in one for each worker; they share
// bytes as the kernel's plan says.
absl::Status Executable::PlaceMemory(const Kernel& kernel, const Binding& binding,
                                     Workspace::State& state) const {
  const Program& program = kernel.program();
  std::vector<int64_t> positions(program.tensors.size(), 0);
  const auto measure = [&](TensorId tensor) -> absl::StatusOr<int64_t> {
    const loop::TensorInfo& info = program[tensor];
    NESTOR_ASSIGN_OR_RETURN(const Dims shape,
                            EvaluateShape(program.pool, info.shape, binding, info.name));
    NESTOR_ASSIGN_OR_RETURN(const int64_t values, NumBytes(info.type, shape));
    positions[tensor.value] = loop::PositionsOffset(values);
    const absl::optional<int64_t> bytes = loop::BytesOf(info, values / ByteSize(info.type));
    if (bytes) return *bytes;
    return absl::ResourceExhaustedError(
        absl::StrCat("program ", program.name, ": temp ", info.name, " exceeds memory"));
  };
  NESTOR_ASSIGN_OR_RETURN(state.arena, EvaluatePlan(kernel.plan(), measure));
  NESTOR_RETURN_IF_ERROR(ReserveArenas(state));
  std::vector<int64_t> offsets(program.tensors.size(), -1);
  for (size_t i = 0; i < kernel.plan().buffers.size(); ++i) {
    for (TensorId tensor : kernel.plan().buffers[i].tensors)
      offsets[tensor.value] = state.arena.offsets[i];
  }
  const std::vector<TableSlot>& slots = kernel.table().slots;
  for (size_t i = 0; i < slots.size(); ++i) {
    const TensorId tensor = slots[i].tensor;
    if (slots[i].kind == TableSlot::kPositions) state.table[i] = positions[tensor.value];
    if (slots[i].kind == TableSlot::kOffset) state.table[i] = offsets[tensor.value];
    const bool in_arena = slots[i].kind == TableSlot::kAddress && offsets[tensor.value] >= 0;
    if (in_arena)
      state.table[i] = reinterpret_cast<int64_t>(state.arena_memory + offsets[tensor.value]);
  }
  return absl::OkStatus();
}

// One arena for the call, and one for each worker. Each is as large as the plan says, and only
// grows.
absl::Status Executable::ReserveArenas(Workspace::State& state) const {
  const int64_t workers = options().executor == nullptr ? 1 : options().executor->NumThreads();
  int64_t stride = 0, all = 0;  // no two workers share a cache line
  const bool too_large = __builtin_add_overflow(loop::AlignedForArena(state.arena.private_total),
                                                2 * loop::kArenaAlignment, &stride) ||
                         __builtin_mul_overflow(stride, workers, &all);
  if (too_large)
    return absl::ResourceExhaustedError(
        absl::StrCat("program ", program().name, ": temporaries exceed memory"));
  const int64_t shared = loop::AlignedForArena(state.arena.total) + loop::kArenaAlignment;
  NESTOR_ASSIGN_OR_RETURN(state.arena_memory, state.memory.Reserve(shared));
  NESTOR_ASSIGN_OR_RETURN(char* const private_memory, state.private_memory.Reserve(all));
  state.workers.clear();
  for (int64_t i = 0; i < workers; ++i) state.workers.push_back(private_memory + i * stride);
  return absl::OkStatus();
}

// ---- Poisoning

// Overwrites the bytes that hold no value that is read from here on, before the kernel's function
// that begins with the item.
void Executable::PoisonDead(Workspace::State& state, int first_item, bool parallel) const {
  const loop::MemoryPlan& plan = state.kernel->plan();
  const int step = plan.first_steps[static_cast<size_t>(first_item)];
  std::vector<bool> is_live(static_cast<size_t>(state.arena.total), false);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const loop::PlannedBuffer& buffer = plan.buffers[i];
    // The accumulators of a parallel loop were filled by the function before it.
    const bool is_filled =
        parallel && buffer.first == step &&
        state.kernel->program()[buffer.tensors[0]].storage == loop::Storage::kAccumulator;
    if (buffer.is_private || !(is_filled || (buffer.first < step && step <= buffer.last))) continue;
    std::fill_n(is_live.begin() + state.arena.offsets[i], state.arena.bytes[i], true);
  }
  for (size_t i = 0; i < is_live.size(); ++i) {
    if (!is_live[i]) state.arena_memory[i] = kPoison;
  }
  for (char* worker : state.workers) std::fill_n(worker, state.arena.private_total, kPoison);
}

}  // namespace nestor::jit
