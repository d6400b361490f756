// Outputs hold one poison in the first run and another in the second: what keeps both was
// not written, and what differs otherwise depends on it, or, where a third run like the
// first differs from that, on nothing that the kernel is given.
#include "check/kernel_run.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "check/fault_message.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr int kSecondPoison = 0x00;

// ---- Memory

// The arguments of one call, in memory of their own.
struct Placed {
  std::vector<GuardedMemory> memory;
  std::vector<TensorView> inputs, outputs;
  std::vector<std::string> before;  // bytes of the inputs
};

void CopyElements(const Tensor& from, const TensorView& to) {
  if (from.num_elements() == 0) return;
  if (IsContiguous(to)) {
    std::memcpy(to.data, from.data(), static_cast<size_t>(from.num_bytes()));
    return;
  }
  Dims index(to.shape.size(), 0);
  const char* element = static_cast<const char*>(from.data());
  const int64_t size = ByteSize(from.type());
  do {
    std::memcpy(static_cast<char*>(to.data) + ElementOffset(to, index) * size, element, static_cast<size_t>(size));
    element += size;
  } while (NextIndex(to.shape, absl::MakeSpan(index)));
}

TensorView PlaceLike(DType type, const Dims& shape, Arrangement layout, const Case& given, size_t alignment,
                     Placed& placed) {
  TensorView view{type, shape, StridesOf(shape, layout), nullptr};
  PlaceGuarded(view, given.side, placed.memory, alignment);
  return view;
}

Placed PlaceCase(const Op& op, const Case& given, const RunOptions& options, int poison) {
  Placed placed;
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    const Tensor& from = given.inputs[i];
    placed.inputs.push_back(
        PlaceLike(from.type(), from.shape(), given.input_layouts[i], given, options.alignment, placed));
    CopyElements(from, placed.inputs.back());
    placed.before.push_back(BytesOf(placed.inputs.back()));
    if (options.sealed && !given.IsOverwritten(i)) placed.memory.back().Seal();
  }
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (given.in_place[i] >= 0) {
      placed.outputs.push_back(placed.inputs[static_cast<size_t>(given.in_place[i])]);
      continue;
    }
    const NodeId node = op.results[i].node;
    const Dims shape = ResultShape(op, given.binding, i);
    placed.outputs.push_back(
        PlaceLike(op.graph.type(node), shape, given.output_layouts[i], given, options.alignment, placed));
    const ByteRange range = Footprint(placed.outputs.back()).value();
    std::memset(static_cast<char*>(placed.outputs.back().data) + range.begin, poison,
                static_cast<size_t>(range.end - range.begin));
  }
  return placed;
}

std::vector<NamedBuffer> BuffersOf(const Op& op, const Placed& placed) {
  std::vector<NamedBuffer> buffers;
  const auto add = [&](const std::string& name, const TensorView& view, bool may_be_written) {
    const ByteRange range = Footprint(view).value();
    const char* data = static_cast<const char*>(view.data);
    buffers.push_back({name.c_str(), data + range.begin, data + range.end, may_be_written});
  };
  for (size_t i = 0; i < placed.inputs.size(); ++i) add(op.args[i].name, placed.inputs[i], false);
  for (size_t i = 0; i < placed.outputs.size(); ++i) add(op.results[i].name, placed.outputs[i], true);
  return buffers;
}

// ---- Float state

// All but the flags that operations leave: rounding, masks, flushing.
struct FloatState {
  uint32_t mxcsr = 0;
  uint16_t x87 = 0;

  static FloatState Now() {
    FloatState state;
    state.mxcsr = _mm_getcsr() & ~uint32_t{0x3f};
    asm volatile("fnstcw %0" : "=m"(state.x87));
    return state;
  }
  void Restore() const {
    _mm_setcsr(mxcsr);
    asm volatile("fldcw %0" : : "m"(x87));
  }
};

std::string Difference(const FloatState& before, const FloatState& after) {
  std::string text;
  if (before.mxcsr != after.mxcsr) {
    absl::StrAppend(&text, "leaves MXCSR changed from 0x", absl::Hex(before.mxcsr), " to 0x", absl::Hex(after.mxcsr));
  }
  if (before.x87 != after.x87) {
    absl::StrAppend(&text, text.empty() ? "leaves" : " and", " the x87 control word changed from 0x",
                    absl::Hex(before.x87), " to 0x", absl::Hex(after.x87));
  }
  return text;
}

// ---- One call

Fault FaultOf(const absl::Status& status) {
  if (status.ok()) return Fault::kNone;
  return absl::IsUnimplemented(status) ? Fault::kSkipped : Fault::kError;
}

void CallKernel(const Kernel& kernel, const KernelCall& call, KernelRun& run) {
  const FloatState before = FloatState::Now();
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
  const FloatState after = FloatState::Now();
  before.Restore();
  const std::string changed = Difference(before, after);
  if (changed.empty() || run.fault != Fault::kNone) return;
  run.fault = Fault::kFloatState;
  run.message = changed;
}

// What is written that may not be.
void CheckWrites(const Op& op, const Case& given, const Placed& placed, int poison, KernelRun& run) {
  for (size_t i = 0; i < placed.inputs.size(); ++i) {
    if (given.IsOverwritten(i) || BytesOf(placed.inputs[i]) == placed.before[i]) continue;
    run.fault = Fault::kInputChanged;
    run.message = absl::StrCat("writes the argument ", op.args[i].name);
    return;
  }
  for (size_t i = 0; i < placed.outputs.size(); ++i) {
    const int expected = given.in_place[i] >= 0 ? kPoison : poison;
    if (IsContiguous(placed.outputs[i]) || GapsAreUntouched(placed.outputs[i], expected)) continue;
    run.fault = Fault::kWritesBeside;
    run.message = absl::StrCat("writes between the elements of ", op.results[i].name);
    return;
  }
}

KernelRun RunOnce(const Kernel& kernel, const Op& op, const Case& given, const RunOptions& options, int poison) {
  KernelRun run;
  const Placed placed = PlaceCase(op, given, options, poison);
  {
    const std::vector<NamedBuffer> buffers = BuffersOf(op, placed);
    const FaultMessage message(buffers);
    CallKernel(kernel, KernelCall(op, given.binding, placed.inputs, placed.outputs), run);
  }
  if (run.fault != Fault::kNone) return run;
  CheckWrites(op, given, placed, poison, run);
  for (const TensorView& view : placed.outputs) run.outputs.push_back(Tensor::FromView(view).value());
  return run;
}

// ---- Several calls

bool SameElement(const Tensor& a, const Tensor& b, int64_t i) {
  const size_t size = static_cast<size_t>(ByteSize(a.type()));
  const char* x = static_cast<const char*>(a.data()) + static_cast<size_t>(i) * size;
  const char* y = static_cast<const char*>(b.data()) + static_cast<size_t>(i) * size;
  return std::memcmp(x, y, size) == 0 || Load(a.type(), x) == Load(b.type(), y);
}

bool Holds(const Tensor& tensor, int64_t i, int poison) {
  const size_t size = static_cast<size_t>(ByteSize(tensor.type()));
  const char* element = static_cast<const char*>(tensor.data()) + static_cast<size_t>(i) * size;
  return std::all_of(element, element + size, [&](char byte) { return byte == static_cast<char>(poison); });
}

bool SameOutputs(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t r = 0; r < a.size(); ++r) {
    if (a[r].num_bytes() > 0 && std::memcmp(a[r].data(), b[r].data(), static_cast<size_t>(a[r].num_bytes())) != 0) {
      return false;
    }
  }
  return true;
}

// By result, the elements that differ; of these, where `only_unwritten`, those that keep both poisons.
std::vector<std::vector<int64_t>> Differences(const std::vector<Tensor>& first, const std::vector<Tensor>& second,
                                              bool only_unwritten) {
  std::vector<std::vector<int64_t>> elements(first.size());
  for (size_t r = 0; r < first.size(); ++r) {
    for (int64_t i = 0; i < first[r].num_elements(); ++i) {
      if (SameElement(first[r], second[r], i)) continue;
      const bool is_unwritten = Holds(first[r], i, kPoison) && Holds(second[r], i, kSecondPoison);
      if (!only_unwritten || is_unwritten) elements[r].push_back(i);
    }
  }
  return elements;
}

bool Any(const std::vector<std::vector<int64_t>>& elements) {
  return std::any_of(elements.begin(), elements.end(), [](const auto& list) { return !list.empty(); });
}

// What two runs on different poison say; `again` runs as the first did.
template <class Again>
void CompareRuns(const KernelRun& second, const Again& again, KernelRun& run) {
  if (SameOutputs(run.outputs, second.outputs)) return;
  if (Any(run.elements = Differences(run.outputs, second.outputs, /*only_unwritten=*/true))) {
    run.fault = Fault::kUnwritten;
    run.message = "does not write all elements";
    return;
  }
  if (!Any(run.elements = Differences(run.outputs, second.outputs, /*only_unwritten=*/false))) return;
  const bool repeats = SameOutputs(run.outputs, again().outputs);
  run.fault = repeats ? Fault::kDependsOnOutput : Fault::kNotRepeatable;
  run.message = repeats ? "gives another result where the output held other values before"
                        : "gives another result when it is run again";
}

}  // namespace

KernelRun RunKernel(const Kernel& kernel, const Op& op, const Case& given, const RunOptions& options) {
  KernelRun run = RunOnce(kernel, op, given, options, kPoison);
  if (run.fault != Fault::kNone) return run;
  KernelRun second = RunOnce(kernel, op, given, options, kSecondPoison);
  if (second.fault != Fault::kNone) {
    second.message = absl::StrCat("run again on the same case: ", second.message);
    second.outputs = std::move(run.outputs);
    return second;
  }
  CompareRuns(second, [&] { return RunOnce(kernel, op, given, options, kPoison); }, run);
  return run;
}

}  // namespace nestor
