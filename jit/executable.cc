// A call whose shapes, strides and $params are those of the workspace's last call finds
// everything prepared: it checks addresses, puts them into the table, and runs. Any
// other call binds and checks first, picks the variant for its layout, evaluates the
// table and places temporaries.
#include "jit/executable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fusion/memory_plan.h"
#include "loop_ir/intervals.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using loop::Program;
using loop::TensorId;

constexpr int64_t kAlignment = 64;

int64_t RoundUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Memory at a cache line, kept while it suffices.
class Buffer {
 public:
  absl::StatusOr<char*> Reserve(int64_t bytes) {
    if (bytes > bytes_) {
      memory_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, static_cast<size_t>(RoundUp(bytes)))));
      bytes_ = memory_ == nullptr ? 0 : bytes;
      if (memory_ == nullptr) {
        return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes of temporaries"));
      }
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory_;
  int64_t bytes_ = 0;
};

AxisLayout LayoutOf(const TensorView& view, size_t axis) {
  const bool last = axis + 1 == view.shape.size();
  if (view.shape[axis] <= 1) return last ? AxisLayout::kUnit : AxisLayout::kAny;
  if (view.strides[axis] == 0) return AxisLayout::kZero;
  return view.strides[axis] == 1 ? AxisLayout::kUnit : AxisLayout::kAny;
}

// Whether every whole vector that a loop stores from an axis' beginning lies at a
// multiple of a vector.
bool RowsAreAligned(const TensorView& view, int64_t alignment) {
  if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(alignment) != 0) return false;
  for (size_t axis = 0; axis + 1 < view.shape.size(); ++axis) {
    if (view.shape[axis] > 1 && view.strides[axis] * ByteSize(view.type) % alignment != 0) return false;
  }
  return true;
}

// Whether no two elements share a place: sorted by stride, each axis steps over the
// whole of those below it.
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

// Evaluates slots for one binding.
class SlotValues {
 public:
  SlotValues(const Kernel& kernel, const Binding& binding, const std::vector<Dims>& strides)
      : kernel_(kernel), binding_(binding), strides_(strides) {}

  int64_t Of(const TableSlot& slot) const {
    switch (slot.kind) {
      case TableSlot::kIndex: return Symbols(slot.parts[0].symbols);
      case TableSlot::kDivisor: {
        const int64_t value = Symbols(slot.parts[0].symbols);
        return value == 0 ? 1 : value;
      }
      case TableSlot::kCoefficient: {
        // Modulo 2^64: a place that is reached has been proven not to overflow.
        uint64_t sum = 0;
        for (const TableSlot::Part& part : slot.parts) sum += Part(part);
        return static_cast<int64_t>(sum);
      }
      case TableSlot::kParam: {
        const Scalar& param = binding_.params.at(slot.param);
        if (param.type != DType::kBF16 && param.type != DType::kF16) return static_cast<int64_t>(param.bits);
        return static_cast<int64_t>(ToBits(static_cast<float>(param.ToDouble())));
      }
      default: return 0;
    }
  }

 private:
  // 0 where it has no value: then it is not used.
  int64_t Symbols(IndexId e) const {
    const IndexPool& pool = kernel_.program().pool;
    return EvaluateIndex(pool, e, [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
             const auto it = binding_.symbols.find(pool.SymbolNameAt(node.value));
             if (it == binding_.symbols.end()) return absl::nullopt;
             return it->second;
           })
        .value_or(0);
  }
  uint64_t Part(const TableSlot::Part& part) const {
    uint64_t product = static_cast<uint64_t>(part.factor);
    if (part.symbols.value >= 0) product *= static_cast<uint64_t>(Symbols(part.symbols));
    if (part.tensor.value >= 0) product *= static_cast<uint64_t>(strides_[part.tensor.value][part.axis]);
    return product;
  }

  const Kernel& kernel_;
  const Binding& binding_;
  const std::vector<Dims>& strides_;  // in bytes, by tensor
};

}  // namespace

struct Workspace::State {
  const Executable* owner = nullptr;
  const Kernel* kernel = nullptr;
  std::vector<int64_t> key;  // what was prepared: see SameCall
  std::vector<int64_t> table;
  std::vector<std::pair<int, int>> addresses;  // (slot, argument)
  std::vector<ByteRange> footprints;           // by argument
  int64_t bytes = 0;                           // of all arguments
  Buffer memory, private_memory;
  std::vector<char*> workers;

  // Whether the call has the types, shapes, strides and $params of the key; writes the
  // key that it has if not.
  bool SameCall(const Executable* executable, const Arguments& arguments, bool may_stream) {
    next_.clear();
    next_.push_back(may_stream);
    const auto add = [&](const TensorView& view) {
      next_.push_back(static_cast<int64_t>(view.type) << 32 | static_cast<int64_t>(view.shape.size()));
      next_.insert(next_.end(), view.shape.begin(), view.shape.end());
      next_.insert(next_.end(), view.strides.begin(), view.strides.end());
    };
    for (const TensorView& view : arguments.inputs) add(view);
    for (const TensorView& view : arguments.outputs) add(view);
    for (const Scalar& param : arguments.params) {
      next_.push_back(static_cast<int64_t>(param.type));
      next_.push_back(static_cast<int64_t>(param.bits));
    }
    return owner == executable && arguments.dims == nullptr && next_ == key;
  }
  void Remember(const Executable* executable) {
    owner = executable;
    key.swap(next_);
  }

 private:
  std::vector<int64_t> next_;
};

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;

Executable::Executable(Program program, const ExecutableOptions& options)
    : program_(std::move(program)), options_(options) {
  const auto number = [](const std::vector<TensorId>& list, TensorId tensor) {
    return static_cast<int>(std::find(list.begin(), list.end(), tensor) - list.begin());
  };
  for (const auto& [output, input] : fusion::PlanMemory(program_).aliases) {
    aliases_.emplace_back(number(program_.outputs, output), number(program_.inputs, input));
  }
}

Executable::~Executable() = default;

absl::StatusOr<std::unique_ptr<const Executable>> Executable::Create(Program program,
                                                                     const ExecutableOptions& options) {
  NESTOR_RETURN_IF_ERROR(CheckIsa(options.isa));
  std::unique_ptr<Executable> executable(new Executable(std::move(program), options));
  TranslateOptions compact;
  compact.isa = options.isa;
  NESTOR_ASSIGN_OR_RETURN(std::unique_ptr<const Kernel> kernel, Kernel::Compile(executable->program_, compact));
  executable->compact_ = kernel.get();
  std::string key;
  const auto add = [&](TensorId tensor) {
    for (AxisLayout axis : CompactLayout(executable->program_[tensor].shape.size())) key += "u0a"[static_cast<int>(axis)];
    key += ',';
  };
  for (TensorId tensor : executable->program_.inputs) add(tensor);
  for (TensorId tensor : executable->program_.outputs) add(tensor);
  absl::MutexLock lock(&executable->mutex_);
  executable->variants_.emplace(std::move(key), std::move(kernel));
  return executable;
}

// ---- The call

absl::Status Executable::Run(const Arguments& arguments, Workspace* workspace) const {
  Workspace::State& state = *workspace->state_;
  bool may_stream = options_.streaming_bytes > 0;
  for (const TensorView& view : arguments.outputs) may_stream = may_stream && RowsAreAligned(view, VectorBytes(options_.isa));
  if (!state.SameCall(this, arguments, may_stream)) {
    state.owner = nullptr;
    NESTOR_RETURN_IF_ERROR(Prepare(arguments, may_stream, state));
    state.Remember(this);
  }
  NESTOR_RETURN_IF_ERROR(CheckMemory(arguments, state));
  const size_t inputs = arguments.inputs.size();
  for (const auto& [slot, argument] : state.addresses) {
    const size_t i = static_cast<size_t>(argument);
    const TensorView& view = i < inputs ? arguments.inputs[i] : arguments.outputs[i - inputs];
    state.table[slot] = reinterpret_cast<int64_t>(view.data);
  }
  Kernel::RunOptions run;
  if (state.bytes >= options_.least_parallel_bytes) run.executor = options_.executor;
  const int64_t result = state.kernel->Run(state.table.data(), state.workers, run);
  if (result == 0) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("program ", program_.name, ": access out of range in `",
                                            state.kernel->StatementText(result - 1), "`"));
}

std::string Executable::NameOf(size_t argument) const {
  const size_t inputs = program_.inputs.size();
  return argument < inputs ? program_[program_.inputs[argument]].name
                           : program_[program_.outputs[argument - inputs]].name;
}

absl::Status Executable::CheckMemory(const Arguments& arguments, const Workspace::State& state) const {
  const size_t inputs = arguments.inputs.size(), count = inputs + arguments.outputs.size();
  for (size_t i = 0; i < count; ++i) {
    const TensorView& view = i < inputs ? arguments.inputs[i] : arguments.outputs[i - inputs];
    if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(ByteSize(view.type)) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("program ", program_.name, ": argument ", NameOf(i),
                                                   ": elements of ", Name(view.type),
                                                   " do not lie at a multiple of ", ByteSize(view.type), " bytes"));
  }
  for (size_t output = inputs; output < count; ++output) {
    for (size_t other = 0; other < output; ++other) {
      NESTOR_RETURN_IF_ERROR(CheckOverlap(arguments, state, output, other));
    }
  }
  return absl::OkStatus();
}

absl::Status Executable::CheckOverlap(const Arguments& arguments, const Workspace::State& state, size_t output,
                                      size_t other) const {
  const size_t inputs = arguments.inputs.size();
  const TensorView& a = arguments.outputs[output - inputs];
  const TensorView& b = other < inputs ? arguments.inputs[other] : arguments.outputs[other - inputs];
  const char* const x = static_cast<const char*>(a.data);
  const char* const y = static_cast<const char*>(b.data);
  const ByteRange &p = state.footprints[output], &q = state.footprints[other];
  if (p.begin == p.end || q.begin == q.end || x + p.end <= y + q.begin || y + q.end <= x + p.begin) {
    return absl::OkStatus();
  }
  const std::pair<int, int> pair(static_cast<int>(output - inputs), static_cast<int>(other));
  const bool allowed = other < inputs && std::find(aliases_.begin(), aliases_.end(), pair) != aliases_.end() &&
                       a.data == b.data && a.strides == b.strides && IsContiguous(a);
  if (allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("program ", program_.name, ": the memory of output ", NameOf(output),
                                                 " overlaps that of ", NameOf(other)));
}

// ---- Preparation

absl::StatusOr<Binding> Executable::BindArguments(absl::Span<const TensorView> inputs, absl::Span<const Scalar> params,
                                                  const absl::flat_hash_map<std::string, int64_t>* dims) const {
  const auto error = [&](absl::string_view what, size_t given, size_t wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("program ", program_.name, ": ", given, " ", what, " given, ", wanted, " wanted"));
  };
  if (inputs.size() != program_.inputs.size()) return error("inputs", inputs.size(), program_.inputs.size());
  if (!params.empty() && params.size() != program_.params.size()) {
    return error("$params", params.size(), program_.params.size());
  }
  RunInputs given;
  for (size_t i = 0; i < inputs.size(); ++i) given.tensors[program_[program_.inputs[i]].name] = inputs[i];
  for (size_t i = 0; i < params.size(); ++i) given.params[program_.params[i].name] = params[i];
  if (dims != nullptr) given.dims = *dims;
  Signature signature{program_.name, &program_.pool, {}, &program_.params, &program_.equalities,
                      &program_.range_checks};
  for (TensorId id : program_.inputs) {
    const loop::TensorInfo& info = program_[id];
    signature.args.push_back({info.name, info.type, &info.shape, info.shape_only});
  }
  NESTOR_ASSIGN_OR_RETURN(Binding binding, Bind(signature, given));
  const absl::Status proven =
      loop::ProveNoOverflow(program_, [&](const std::string& name) -> absl::optional<int64_t> {
        const auto it = binding.symbols.find(name);
        if (it == binding.symbols.end()) return absl::nullopt;
        return it->second;
      });
  NESTOR_RETURN_IF_ERROR(proven);
  return binding;
}

absl::StatusOr<std::vector<Dims>> Executable::OutputShapes(
    absl::Span<const TensorView> inputs, absl::Span<const Scalar> params,
    const absl::flat_hash_map<std::string, int64_t>* dims) const {
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, BindArguments(inputs, params, dims));
  std::vector<Dims> shapes;
  for (TensorId id : program_.outputs) {
    NESTOR_ASSIGN_OR_RETURN(Dims shape, EvaluateShape(program_.pool, program_[id].shape, binding,
                                                      absl::StrCat("program ", program_.name, ": output ", program_[id].name)));
    NESTOR_RETURN_IF_ERROR(NumBytes(program_[id].type, shape).status());
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

absl::Status Executable::CheckOutputs(const Arguments& arguments, const Binding& binding) const {
  if (arguments.outputs.size() != program_.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("program ", program_.name, ": ", arguments.outputs.size(),
                                                   " outputs given, ", program_.outputs.size(), " wanted"));
  }
  for (size_t i = 0; i < arguments.outputs.size(); ++i) {
    const loop::TensorInfo& info = program_[program_.outputs[i]];
    const TensorView& view = arguments.outputs[i];
    const std::string what = absl::StrCat("program ", program_.name, ": output ", info.name);
    NESTOR_ASSIGN_OR_RETURN(const Dims shape, EvaluateShape(program_.pool, info.shape, binding, what));
    if (view.type != info.type || view.shape != shape) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": ", Name(view.type), ShapeText(view.shape), " given, ",
                                                     Name(info.type), ShapeText(shape), " wanted"));
    }
    const absl::Status valid = CheckView(view);
    if (!valid.ok()) return absl::InvalidArgumentError(absl::StrCat(what, ": ", valid.message()));
    if (!IsInjective(view)) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": elements may share memory: strides ", ShapeText(view.strides)));
    }
  }
  return absl::OkStatus();
}

absl::Status Executable::Prepare(const Arguments& arguments, bool may_stream, Workspace::State& state) const {
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, BindArguments(arguments.inputs, arguments.params, arguments.dims));
  NESTOR_RETURN_IF_ERROR(CheckOutputs(arguments, binding));
  state.footprints.clear();
  int64_t written = 0;
  state.bytes = 0;
  for (const TensorView& view : arguments.inputs) {
    NESTOR_ASSIGN_OR_RETURN(const ByteRange range, Footprint(view));
    state.footprints.push_back(range);
    state.bytes += range.end - range.begin;
  }
  for (const TensorView& view : arguments.outputs) {
    NESTOR_ASSIGN_OR_RETURN(const ByteRange range, Footprint(view));
    state.footprints.push_back(range);
    written += range.end - range.begin;
  }
  state.bytes += written;
  const bool streaming = may_stream && written > options_.streaming_bytes;
  NESTOR_ASSIGN_OR_RETURN(state.kernel, KernelFor(arguments, streaming));
  NESTOR_RETURN_IF_ERROR(FillTable(*state.kernel, binding, arguments, state));
  return PlaceMemory(*state.kernel, binding, state);
}

absl::StatusOr<const Kernel*> Executable::KernelFor(const Arguments& arguments, bool streaming) const {
  TranslateOptions options;
  options.isa = options_.isa;
  options.streaming = streaming;
  std::string key = streaming ? "s" : "";
  const auto add = [&](const TensorView& view) {
    Layout layout;
    for (size_t axis = 0; axis < view.shape.size(); ++axis) {
      layout.push_back(LayoutOf(view, axis));
      key += "u0a"[static_cast<int>(layout.back())];
    }
    key += ',';
    options.layouts.push_back(std::move(layout));
  };
  for (const TensorView& view : arguments.inputs) add(view);
  for (const TensorView& view : arguments.outputs) add(view);
  {
    absl::MutexLock lock(&mutex_);
    const auto it = variants_.find(key);
    if (it != variants_.end()) return it->second.get();
  }
  // Compiled outside the lock; whoever comes first stays.
  NESTOR_ASSIGN_OR_RETURN(std::unique_ptr<const Kernel> kernel, Kernel::Compile(program_, options));
  absl::MutexLock lock(&mutex_);
  return variants_.emplace(std::move(key), std::move(kernel)).first->second.get();
}

absl::Status Executable::FillTable(const Kernel& kernel, const Binding& binding, const Arguments& arguments,
                                   Workspace::State& state) const {
  std::vector<Dims> strides(program_.tensors.size());
  const auto set_strides = [&](TensorId tensor, const Dims& elements) {
    for (int64_t stride : elements) strides[tensor.value].push_back(stride * ByteSize(program_[tensor].type));
  };
  for (size_t i = 0; i < arguments.inputs.size(); ++i) set_strides(program_.inputs[i], arguments.inputs[i].strides);
  for (size_t i = 0; i < arguments.outputs.size(); ++i) set_strides(program_.outputs[i], arguments.outputs[i].strides);
  const auto place = [&](TensorId tensor) -> absl::Status {
    NESTOR_ASSIGN_OR_RETURN(const Dims shape, EvaluateShape(program_.pool, program_[tensor].shape, binding,
                                                            absl::StrCat("temp ", program_[tensor].name)));
    NESTOR_RETURN_IF_ERROR(NumBytes(program_[tensor].type, shape).status());
    set_strides(tensor, CompactStrides(shape));
    return absl::OkStatus();
  };
  for (TensorId tensor : kernel.memory()) NESTOR_RETURN_IF_ERROR(place(tensor));
  for (TensorId tensor : kernel.private_memory()) NESTOR_RETURN_IF_ERROR(place(tensor));
  const SlotValues values(kernel, binding, strides);
  const std::vector<TableSlot>& slots = kernel.table().slots;
  state.table.assign(slots.size(), 0);
  state.addresses.clear();
  for (size_t i = 0; i < slots.size(); ++i) {
    state.table[i] = values.Of(slots[i]);
    if (slots[i].kind != TableSlot::kAddress) continue;
    for (size_t a = 0; a < program_.inputs.size() + program_.outputs.size(); ++a) {
      const TensorId tensor =
          a < program_.inputs.size() ? program_.inputs[a] : program_.outputs[a - program_.inputs.size()];
      if (tensor == slots[i].tensor) state.addresses.emplace_back(static_cast<int>(i), static_cast<int>(a));
    }
  }
  return absl::OkStatus();
}

// Program temps lie in one arena, as planned; private ones one behind another, once for
// each worker.
absl::Status Executable::PlaceMemory(const Kernel& kernel, const Binding& binding, Workspace::State& state) const {
  fusion::Sizes sizes(binding.symbols.begin(), binding.symbols.end());
  std::vector<int64_t> offsets(program_.tensors.size(), -1), positions(program_.tensors.size(), 0);
  const auto measure = [&](TensorId tensor) -> absl::StatusOr<int64_t> {
    const loop::TensorInfo& info = program_[tensor];
    NESTOR_ASSIGN_OR_RETURN(const Dims shape, EvaluateShape(program_.pool, info.shape, binding, info.name));
    NESTOR_ASSIGN_OR_RETURN(int64_t bytes, NumBytes(info.type, shape));
    if (info.storage != loop::Storage::kAccumulator || !IsArg(info.op)) return bytes;
    positions[tensor.value] = RoundUp(bytes);
    NESTOR_ASSIGN_OR_RETURN(const int64_t places, NumBytes(DType::kI64, shape));
    return positions[tensor.value] + places;
  };
  const auto lay_out = [&](absl::Span<const TensorId> tensors) -> absl::StatusOr<int64_t> {
    int64_t total = 0;
    for (TensorId tensor : tensors) {
      NESTOR_ASSIGN_OR_RETURN(const int64_t bytes, measure(tensor));
      offsets[tensor.value] = total;
      if (__builtin_add_overflow(total, RoundUp(bytes), &total)) {
        return absl::ResourceExhaustedError(absl::StrCat("program ", program_.name, ": temporaries exceed memory"));
      }
    }
    return total;
  };
  NESTOR_ASSIGN_OR_RETURN(const int64_t shared, lay_out(kernel.memory()));
  NESTOR_ASSIGN_OR_RETURN(const int64_t own, lay_out(kernel.private_memory()));
  NESTOR_ASSIGN_OR_RETURN(char* const memory, state.memory.Reserve(shared + kAlignment));
  const int64_t workers = options_.executor == nullptr ? 1 : options_.executor->NumThreads();
  const int64_t stride = RoundUp(own) + 2 * kAlignment;  // no two workers in one line
  NESTOR_ASSIGN_OR_RETURN(char* const private_memory, state.private_memory.Reserve(stride * workers));
  state.workers.clear();
  for (int64_t i = 0; i < workers; ++i) state.workers.push_back(private_memory + i * stride);
  const std::vector<TableSlot>& slots = kernel.table().slots;
  for (size_t i = 0; i < slots.size(); ++i) {
    const TensorId tensor = slots[i].tensor;
    if (slots[i].kind == TableSlot::kPositions) state.table[i] = positions[tensor.value];
    if (slots[i].kind == TableSlot::kOffset) state.table[i] = offsets[tensor.value];
    const bool in_memory = slots[i].kind == TableSlot::kAddress && offsets[tensor.value] >= 0;
    if (in_memory) state.table[i] = reinterpret_cast<int64_t>(memory + offsets[tensor.value]);
  }
  return absl::OkStatus();
}

}  // namespace nestor::jit
