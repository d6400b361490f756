// Outputs hold one poison in the first run and another in the second. An element that keeps both,
// and that of a third run, was not written. An element that differs otherwise depends on the
// poison, or, where more runs like these differ from them, on nothing that the kernel is given.
#include "check/kernel_run.h"

#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "check/fault_message.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// The opposite of the first poison, NaN: what adds to its output sees zeros and looks right.
constexpr int kSecondPoison = 0x00;
constexpr int kThirdPoison = 0x5a;  // neither NaN nor 0

// ---- Memory

// An argument or a result in memory of its own.
struct Buffer {
  TensorView view;
  GuardedMemory memory;
  std::string before;  // the bytes of an argument that has gaps
};

// The common settings of several calls.
struct Setting {
  const Kernel& kernel;
  const Op& op;
  const Case& given;
  const RunOptions& options;
  GuardedPool& pool;
};

// A tensor, with `poison` in all bytes that do not belong to elements.
Buffer PlaceTensor(const Setting& setting, DType type, const Dims& shape, Arrangement layout,
                   int poison) {
  TensorView view{type, shape, StridesOf(shape, layout), nullptr};
  GuardedMemory memory =
      MemoryUnder(view, setting.given.side, setting.options.alignment, &setting.pool);
  // What a kernel reads beyond an argument is then NaN, not a plausible value of an earlier trial.
  memory.FillRest(poison);
  if (!IsContiguous(view)) FillBytes(view, poison);
  return {view, std::move(memory), ""};
}

Buffer PlaceInput(const Setting& setting, size_t number) {
  const Tensor& from = setting.given.inputs[number];
  Buffer buffer =
      PlaceTensor(setting, from.type(), from.shape(), setting.given.input_layouts[number], kPoison);
  PutElements(from.data(), buffer.view);
  // A write to a sealed argument faults at the instruction that writes; else the bytes are
  // compared.
  const bool is_sealed = setting.options.sealed && !setting.given.IsOverwritten(number);
  if (is_sealed) buffer.memory.Seal();
  else if (!IsContiguous(buffer.view)) buffer.before = BytesOf(buffer.view);
  return buffer;
}

Buffer PlaceOutput(const Setting& setting, size_t number, int poison) {
  const Dims shape = ResultShape(setting.op, setting.given.binding, number);
  const DType type = setting.op.graph.type(setting.op.results[number].node);
  Buffer buffer = PlaceTensor(setting, type, shape, setting.given.output_layouts[number], poison);
  FillBytes(buffer.view, poison);
  return buffer;
}

// Arguments that are only read: they serve all calls.
using Inputs = std::vector<absl::optional<Buffer>>;

Inputs PlaceInputs(const Setting& setting) {
  Inputs inputs(setting.given.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!setting.given.IsOverwritten(i)) inputs[i].emplace(PlaceInput(setting, i));
  }
  return inputs;
}

// The arguments and results of one call.
struct Placed {
  std::vector<TensorView> inputs, outputs;
  std::vector<Buffer> own;  // that no other call uses; `poison` fills the bytes between elements
};

// Memory of an argument that a result may overwrite is made anew for each call, as the call before
// may have changed it.
Placed PlaceCall(const Setting& setting, const Inputs& inputs, int poison) {
  Placed placed;
  const auto add = [&](Buffer buffer) {
    placed.own.push_back(std::move(buffer));
    return placed.own.back().view;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    placed.inputs.push_back(inputs[i] ? inputs[i]->view : add(PlaceInput(setting, i)));
  }
  for (size_t i = 0; i < setting.op.results.size(); ++i) {
    const int argument = setting.given.in_place[i];
    placed.outputs.push_back(argument >= 0 ? placed.inputs[static_cast<size_t>(argument)]
                                           : add(PlaceOutput(setting, i, poison)));
  }
  return placed;
}

// For the message of a fault: "reads the byte 4 after the last of x".
std::vector<NamedBuffer> BuffersOf(const Op& op, const Placed& placed) {
  std::vector<NamedBuffer> buffers;
  const auto add = [&](const std::string& name, const TensorView& view, bool may_be_written) {
    const absl::string_view bytes = BytesUnder(view);
    buffers.push_back({name.c_str(), bytes.data(), bytes.data() + bytes.size(), may_be_written});
  };
  for (size_t i = 0; i < placed.inputs.size(); ++i) add(op.args[i].name, placed.inputs[i], false);
  for (size_t i = 0; i < placed.outputs.size(); ++i)
    add(op.results[i].name, placed.outputs[i], true);
  return buffers;
}

// ---- Float state

// The floating-point state except the flags that operations set: rounding, masks, flushing, and
// which registers of the x87 are in use. Those are the registers of MMX, too.
struct FloatState {
  uint32_t mxcsr = 0;
  uint16_t x87 = 0;
  uint16_t x87_tags = 0;

  static FloatState Now() {
    FloatState state;
    state.mxcsr = _mm_getcsr() & ~uint32_t{0x3f};
    // The control word, the status word and the tags, in 4 bytes each; and more.
    uint16_t environment[14];
    asm volatile("fnstenv %0\n\tfldcw %0" : "=m"(environment));  // the first masks what traps
    state.x87 = environment[0];
    state.x87_tags = environment[4];
    return state;
  }
  void Restore() const {
    _mm_setcsr(mxcsr);
    asm volatile("emms\n\tfldcw %0" : : "m"(x87));
  }
};

std::string Difference(const FloatState& before, const FloatState& after) {
  std::vector<std::string> changes;
  const auto compare = [&](absl::string_view name, uint32_t was, uint32_t is) {
    if (was != is)
      changes.push_back(
          absl::StrCat(name, " changed from 0x", absl::Hex(was), " to 0x", absl::Hex(is)));
  };
  compare("MXCSR", before.mxcsr, after.mxcsr);
  compare("the x87 control word", before.x87, after.x87);
  if (before.x87_tags != after.x87_tags)
    changes.push_back("x87 registers in use (MMX code ends with emms)");
  return changes.empty() ? "" : absl::StrCat("leaves ", absl::StrJoin(changes, " and "));
}

// ---- One call

Fault FaultOf(const absl::Status& status) {
  if (status.ok()) return Fault::kNone;
  return absl::IsUnimplemented(status) ? Fault::kSkipped : Fault::kError;
}

void CallKernel(const Kernel& kernel, const KernelCall& call, KernelRun& run) {
  // A kernel that sets flush-to-zero and leaves it set would make the judge itself wrong.
  const FloatState before = FloatState::Now();
  const pid_t process = getpid();
  try {
    const absl::Status status = kernel(call);
    run.fault = FaultOf(status);
    if (!status.ok()) run.message = std::string(status.message());
  } catch (const KernelCallError& error) {
    run.fault = Fault::kMisuse;
    run.message = error.what();
  } catch (const std::exception& error) {
    run.fault = Fault::kException;
    run.message = absl::StrCat("throws: ", error.what());
  } catch (...) {
    run.fault = Fault::kException;
    run.message = "throws what is not a std::exception";
  }
  if (getpid() != process) std::_Exit(1);  // a copy that the kernel forked
  const FloatState after = FloatState::Now();
  before.Restore();
  const std::string changed = Difference(before, after);
  // An exception or an error is reported rather than the state that it left.
  if (changed.empty() || run.fault != Fault::kNone) return;
  run.fault = Fault::kFloatState;
  run.message = changed;
}

bool IsUnchanged(const Buffer& buffer, const Tensor& from) {
  const absl::string_view bytes = BytesUnder(buffer.view);
  if (!IsContiguous(buffer.view)) return bytes == buffer.before;
  return bytes == absl::string_view(static_cast<const char*>(from.data()), bytes.size());
}

void SetFault(Fault fault, absl::string_view what, absl::string_view name, KernelRun& run) {
  run.fault = fault;
  run.message = absl::StrCat(what, name);
}

// Finds writes to arguments that may only be read.
void CheckInputs(const Setting& setting, const Inputs& inputs, KernelRun& run) {
  if (setting.options.sealed) return;  // the write would have faulted
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const std::string& name = setting.op.args[i].name;
    if (!IsUnchanged(*inputs[i], setting.given.inputs[i])) {
      return SetFault(Fault::kInputChanged, "writes the argument ", name, run);
    }
    if (!inputs[i]->memory.RestIs(kPoison)) {
      return SetFault(Fault::kWritesBeside, "writes beside the elements of ", name, run);
    }
  }
}

// Finds writes between the elements of a result or beside them.
void CheckOutputs(const Setting& setting, const Placed& placed, int poison, KernelRun& run) {
  for (size_t i = 0; i < placed.outputs.size(); ++i) {
    const TensorView& view = placed.outputs[i];
    const std::string& name = setting.op.results[i].name;
    // Memory of an argument is filled with the first poison in each run (PlaceInput).
    const int expected = setting.given.in_place[i] >= 0 ? kPoison : poison;
    if (!IsContiguous(view) && !GapsAreUntouched(view, expected)) {
      return SetFault(Fault::kWritesBeside, "writes between the elements of ", name, run);
    }
    // The rest of the pages around this result: found by the address of its first element.
    for (const Buffer& buffer : placed.own) {
      if (buffer.view.data != view.data || buffer.memory.RestIs(expected)) continue;
      return SetFault(Fault::kWritesBeside, "writes beside the elements of ", name, run);
    }
  }
}

// Keeps the outputs as compact tensors, and the memory that holds them.
void KeepOutputs(Placed placed, KernelRun& run) {
  for (const TensorView& view : placed.outputs) {
    if (!IsContiguous(view)) run.copies.push_back(Tensor::FromView(view).value());
    run.outputs.push_back(IsContiguous(view) ? view : run.copies.back().view());
  }
  for (Buffer& buffer : placed.own) run.memory.push_back(std::move(buffer.memory));
}

KernelRun RunOnce(const Setting& setting, const Inputs& inputs, int poison) {
  KernelRun run;
  Placed placed = PlaceCall(setting, inputs, poison);
  {
    const std::vector<NamedBuffer> buffers = BuffersOf(setting.op, placed);
    const FaultMessage message(buffers);
    CallKernel(setting.kernel,
               KernelCall(setting.op, setting.given.binding, placed.inputs, placed.outputs), run);
  }
  if (run.fault != Fault::kNone) return run;
  CheckInputs(setting, inputs, run);
  if (run.fault == Fault::kNone) CheckOutputs(setting, placed, poison, run);
  KeepOutputs(std::move(placed), run);
  return run;
}

// ---- Several calls

const char* ElementAt(const TensorView& compact, int64_t i) {
  return static_cast<const char*>(compact.data) + i * ByteSize(compact.type);
}

// Equal bits, or equal as values: all NaNs are one, and so are all bytes of a true bool.
bool SameElement(const TensorView& a, const TensorView& b, int64_t i) {
  const char *x = ElementAt(a, i), *y = ElementAt(b, i);
  return std::memcmp(x, y, static_cast<size_t>(ByteSize(a.type))) == 0 ||
         Load(a.type, x) == Load(b.type, y);
}

bool SameOutputs(absl::Span<const TensorView> a, absl::Span<const TensorView> b) {
  return absl::c_equal(a, b,
                       [](const auto& x, const auto& y) { return BytesUnder(x) == BytesUnder(y); });
}

// By result, the elements that differ.
ElementLists Differences(absl::Span<const TensorView> first, absl::Span<const TensorView> second) {
  ElementLists elements(first.size());
  for (size_t r = 0; r < first.size(); ++r) {
    for (int64_t i = 0, count = NumElements(first[r].shape).value(); i < count; ++i) {
      if (!SameElement(first[r], second[r], i)) elements[r].push_back(i);
    }
  }
  return elements;
}

// Those of `elements` that keep the poison in `outputs`.
ElementLists Keeping(int poison, absl::Span<const TensorView> outputs, ElementLists elements) {
  for (size_t r = 0; r < outputs.size(); ++r) {
    const auto size = static_cast<size_t>(ByteSize(outputs[r].type));
    std::vector<int64_t>& list = elements[r];
    const auto is_written = [&](int64_t i) {
      return !AllAre(poison, ElementAt(outputs[r], i), size);
    };
    list.erase(std::remove_if(list.begin(), list.end(), is_written), list.end());
  }
  return elements;
}

bool Any(const ElementLists& elements) {
  return std::any_of(elements.begin(), elements.end(),
                     [](const auto& list) { return !list.empty(); });
}

// Compares two runs on different poison; `again(poison)` runs once more.
// Two runs of a right kernel are all that it costs; further ones are made only after a difference.
template <class Again>
void CompareRuns(const KernelRun& second, const Again& again, KernelRun& run) {
  if (SameOutputs(run.outputs, second.outputs)) return;
  const ElementLists differing = Differences(run.outputs, second.outputs);
  if (!Any(differing)) return;
  ElementLists unwritten =
      Keeping(kPoison, run.outputs, Keeping(kSecondPoison, second.outputs, differing));
  // A value computed from poison may be poison, too: NaN + 0 and 0 + 0.
  if (Any(unwritten))
    unwritten = Keeping(kThirdPoison, again(kThirdPoison).outputs, std::move(unwritten));
  if (Any(unwritten)) {
    run.elements = std::move(unwritten);
    run.fault = Fault::kUnwritten;
    run.message = "does not write all elements";
    return;
  }
  run.elements = differing;
  // The order is such that it does not coincide with alternating state of the kernel's own.
  bool repeats = true;
  for (int poison : {kSecondPoison, kPoison, kPoison, kSecondPoison}) {
    const KernelRun& alike = poison == kPoison ? run : second;
    repeats = repeats && SameOutputs(alike.outputs, again(poison).outputs);
  }
  run.fault = repeats ? Fault::kDependsOnOutput : Fault::kNotRepeatable;
  run.message = repeats ? "gives another result where the output held other values before"
                        : "gives another result when it is run again";
}

}  // namespace

KernelRun RunKernel(const Kernel& kernel, const Op& op, const Case& given,
                    const RunOptions& options, GuardedPool& pool) {
  const Setting setting{kernel, op, given, options, pool};
  const Inputs inputs = PlaceInputs(setting);
  KernelRun run = RunOnce(setting, inputs, kPoison);
  if (run.fault != Fault::kNone) return run;
  KernelRun second = RunOnce(setting, inputs, kSecondPoison);
  if (second.fault != Fault::kNone) {
    run.fault = second.fault;
    run.message = absl::StrCat("run again on the same case: ", second.message);
    return run;
  }
  CompareRuns(
      second, [&](int poison) { return RunOnce(setting, inputs, poison); }, run);
  return run;
}

}  // namespace nestor
