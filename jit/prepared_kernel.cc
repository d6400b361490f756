// All that follows from sizes and strides is computed once: the numbers in the table, and the
// places of temporaries in arenas. What is left for a call is to put in the addresses of its
// arguments.
#include "jit/prepared_kernel.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "jit/slot_values.h"
#include "loop_ir/program.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

using loop::Program;
using loop::TensorId;

constexpr char kPoison = '\xff';  // a NaN of any float

// In bytes, by tensor of the kernel's program: those of arguments and of temporaries in memory.
absl::StatusOr<std::vector<Dims>> StridesOf(const Kernel& kernel, const CallArguments& arguments,
                                            const Binding& binding) {
  const Program& program = kernel.program();
  std::vector<Dims> strides(program.tensors.size());
  const auto set_strides = [&](TensorId tensor, const Dims& elements) {
    for (int64_t stride : elements)
      strides[tensor.value].push_back(stride * ByteSize(program[tensor].type));
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TensorId tensor = ArgumentOf(program, i);
    Dims of_argument = arguments[i].strides;
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
  return strides;
}

}  // namespace

absl::Status PreparedKernel::Prepare(std::shared_ptr<const Kernel> kernel,
                                     const CallArguments& arguments, const Binding& binding,
                                     ArgumentMemory::Aliases aliases, int64_t workers) {
  kernel_ = std::move(kernel);
  if (!NESTOR_MUTANT("kept_values_of_another_call")) has_constants_ = false;
  NoteOverwritten(aliases);
  NESTOR_RETURN_IF_ERROR(FillTable(arguments, binding));
  return PlaceTemporaries(binding, workers);
}

// Inputs that the code for these sizes reads after it wrote the output that takes their memory are
// copied first.
absl::Status PreparedKernel::CopyOverwritten(const CallArguments& arguments,
                                             const ArgumentMemory& memory) {
  for (auto& [output, input, room] : overwritten_) {
    const TensorView& view = arguments[static_cast<size_t>(input)];
    const TensorView& written = arguments[arguments.NumInputs() + static_cast<size_t>(output)];
    const ByteRange& range = memory.footprint(static_cast<size_t>(input));
    if (view.data != written.data || range.begin == range.end) continue;
    NESTOR_ASSIGN_OR_RETURN(char* const copy, room.Reserve(range.end - range.begin));
    std::memcpy(copy, view.data, static_cast<size_t>(range.end - range.begin));
    for (const auto& [slot, argument] : addresses_) {
      if (argument == input) table_[slot] = reinterpret_cast<int64_t>(copy);
    }
  }
  return absl::OkStatus();
}

// The arguments that callers may pass in one memory do not depend on sizes: the general code
// determines them.
void PreparedKernel::NoteOverwritten(ArgumentMemory::Aliases aliases) {
  const std::vector<std::pair<int, int>> allowed = AliasesOf(*kernel_);
  overwritten_.clear();
  for (const auto& [output, input] : aliases) {
    if (std::binary_search(allowed.begin(), allowed.end(), std::make_pair(output, input))) continue;
    overwritten_.push_back({output, input, {}});
  }
}

// All slots but addresses, which each call puts in: `addresses_` says where.
absl::Status PreparedKernel::FillTable(const CallArguments& arguments, const Binding& binding) {
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Dims> strides, StridesOf(*kernel_, arguments, binding));
  const SlotValues values(*kernel_, binding, strides);
  const std::vector<TableSlot>& slots = kernel_->table().slots;
  table_.assign(slots.size(), 0);
  addresses_.clear();
  absl::flat_hash_map<TensorId, int> arguments_of;
  for (size_t a = 0; a < arguments.size(); ++a)
    arguments_of.emplace(ArgumentOf(kernel_->program(), a), static_cast<int>(a));
  for (size_t i = 0; i < slots.size(); ++i) {
    table_[i] = values.Of(slots[i]);
    if (slots[i].kind != TableSlot::kAddress) continue;
    const auto argument = arguments_of.find(slots[i].tensor);
    if (argument != arguments_of.end())
      addresses_.emplace_back(static_cast<int>(i), argument->second);
  }
  return absl::OkStatus();
}

// The program's temporaries lie in one arena, those of scopes in one for each worker; they share
// bytes as the kernel's plan says.
absl::Status PreparedKernel::PlaceTemporaries(const Binding& binding, int64_t workers) {
  const Program& program = kernel_->program();
  const loop::MemoryPlan& plan = kernel_->plan();
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
  NESTOR_ASSIGN_OR_RETURN(arena_, EvaluatePlan(plan, measure));
  NESTOR_RETURN_IF_ERROR(ReserveArenas(workers));
  std::vector<int64_t> offsets(program.tensors.size(), -1);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    for (TensorId tensor : plan.buffers[i].tensors) offsets[tensor.value] = arena_.offsets[i];
  }
  const std::vector<TableSlot>& slots = kernel_->table().slots;
  for (size_t i = 0; i < slots.size(); ++i) {
    const TensorId tensor = slots[i].tensor;
    if (slots[i].kind == TableSlot::kPositions) table_[i] = positions[tensor.value];
    if (slots[i].kind == TableSlot::kOffset) table_[i] = offsets[tensor.value];
    const bool in_arena = slots[i].kind == TableSlot::kAddress && offsets[tensor.value] >= 0;
    if (in_arena) table_[i] = reinterpret_cast<int64_t>(arena_memory_ + offsets[tensor.value]);
  }
  return absl::OkStatus();
}

// One arena for the call, and one for each worker. Each is as large as the plan says, and only
// grows.
absl::Status PreparedKernel::ReserveArenas(int64_t workers) {
  int64_t stride = 0, all = 0;  // no two workers share a cache line
  const bool too_large = __builtin_add_overflow(loop::AlignedForArena(arena_.private_total),
                                                2 * loop::kArenaAlignment, &stride) ||
                         __builtin_mul_overflow(stride, workers, &all);
  if (too_large)
    return absl::ResourceExhaustedError(
        absl::StrCat("program ", kernel_->program().name, ": temporaries exceed memory"));
  const int64_t shared = loop::AlignedForArena(arena_.total) + loop::kArenaAlignment;
  NESTOR_ASSIGN_OR_RETURN(arena_memory_, memory_.Reserve(shared));
  NESTOR_ASSIGN_OR_RETURN(char* const private_memory, private_memory_.Reserve(all));
  workers_.clear();
  for (int64_t i = 0; i < workers; ++i) workers_.push_back(private_memory + i * stride);
  return absl::OkStatus();
}

void PreparedKernel::PoisonDead(int first_item, bool parallel) {
  const loop::MemoryPlan& plan = kernel_->plan();
  const int step = plan.first_steps[static_cast<size_t>(first_item)];
  std::vector<bool> is_live(static_cast<size_t>(arena_.total), false);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const loop::PlannedBuffer& buffer = plan.buffers[i];
    // The accumulators of a parallel loop were filled by the function before it.
    const bool is_filled =
        parallel && buffer.first == step &&
        kernel_->program()[buffer.tensors[0]].storage == loop::Storage::kAccumulator;
    if (buffer.is_private || !(is_filled || (buffer.first < step && step <= buffer.last))) continue;
    std::fill_n(is_live.begin() + arena_.offsets[i], arena_.bytes[i], true);
  }
  for (size_t i = 0; i < is_live.size(); ++i) {
    if (!is_live[i]) arena_memory_[i] = kPoison;
  }
  for (char* worker : workers_) std::fill_n(worker, arena_.private_total, kPoison);
}

}  // namespace nestor::jit
