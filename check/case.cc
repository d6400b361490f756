// Sizes are drawn first, then $params, values and layouts; where values cannot fit the sizes, all
// is drawn again. Sizes are mostly small, since nearly all faults show there and judging is fast.
#include "check/case.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// Draws of sizes and inputs before a seed counts as one without a case.
constexpr int kAttempts = 20;
// Points computed (SizeLimits::max_work) by a small case: about two milliseconds of the oracle.
constexpr int64_t kSmallWork = 1500;

Dims ShapeOf(const Op& op, const Shape& shape, const Binding& binding) {
  absl::StatusOr<Dims> dims = EvaluateShape(op.graph.pool(), shape, binding, op.name);
  NESTOR_CHECK(dims.ok(), dims.status().ToString());
  return *std::move(dims);
}

// Binds the integer $params that the solver chose, those that are given, and the others.
void BindParams(const CaseSource& source, const SymbolValues& sizes, Random& random,
                Binding& binding) {
  for (const auto& [name, value] : sizes) binding.symbols[name] = value;
  for (const ParamInfo& param : source.op.params) {
    const auto chosen = sizes.find(param.name);
    const auto fixed = source.fixed.find(param.name);
    // A $param that the caller fixed is no integer (Param refuses those), so the two cannot clash.
    binding.params[param.name] = chosen != sizes.end() ? Scalar::Integer(param.type, chosen->second)
                                 : fixed != source.fixed.end()
                                     ? fixed->second
                                     : source.values.DrawParam(param, random);
  }
}

absl::optional<SymbolValues> DrawSizes(const CaseSource& source, Random& random) {
  SizeLimits limits = source.limits;
  // Small ones are judged fast, and find nearly all faults.
  if (!random.Chance(10)) {
    limits.max_work =
        std::min<int64_t>(limits.max_work, random.Chance(55) ? kSmallWork : 5 * kSmallWork);
  }
  absl::optional<SymbolValues> sizes = source.solver.Draw(random, limits);
  return sizes ? sizes : source.solver.Draw(random, source.limits);
}

// A tensor for an argument, with any values.
// Takes that of the spent case if it fits: in a long search allocating and clearing large tensors
// would cost more than drawing them.
Tensor TensorFor(DType type, const Dims& shape, size_t number, absl::optional<Case>& spent) {
  if (spent && number < spent->inputs.size()) {
    Tensor& tensor = spent->inputs[number];
    if (tensor.type() == type && tensor.shape() == shape) return std::move(tensor);
  }
  return Tensor::Create(type, shape).value();
}

// False where indices have nothing to point at.
bool DrawInputs(const CaseSource& source, const SymbolValues& sizes, Random& random, Case& drawn,
                absl::optional<Case>& spent) {
  // Only the oracle decides inf and NaN, and it is slow.
  const bool overflows = source.solver.Work(sizes) <= kSmallWork;
  for (size_t i = 0; i < source.op.args.size(); ++i) {
    const Argument& arg = source.op.args[i];
    drawn.inputs.push_back(
        TensorFor(arg.type, ShapeOf(source.op, arg.shape, drawn.binding), i, spent));
    if (!source.values.Draw(static_cast<int>(i), sizes, overflows, random, drawn.inputs.back()))
      return false;
  }
  return true;
}

void DrawLayouts(const CaseSource& source, Random& random, Case& drawn) {
  // Mostly all layouts are alike: a kernel that is given strides may have a separate path
  // for compact tensors.
  const bool compact = random.Chance(40);
  const auto draw = [&] { return compact ? source.layouts.front() : random.Pick(source.layouts); };
  for (size_t i = 0; i < source.op.args.size(); ++i) drawn.input_layouts.push_back(draw());
  for (size_t i = 0; i < source.op.results.size(); ++i) drawn.output_layouts.push_back(draw());
  drawn.side = random.Chance(70) ? GuardedMemory::Side::kEnd : GuardedMemory::Side::kBegin;
}

void DrawInPlace(const CaseSource& source, Random& random, Case& drawn) {
  drawn.in_place.assign(source.op.results.size(), -1);
  for (const auto& [argument, result] : source.in_place) {
    const auto a = static_cast<size_t>(argument), r = static_cast<size_t>(result);
    const Dims shape = ResultShape(source.op, drawn.binding, r);
    // Two results cannot take the memory of one argument. Half of the trials do without, so that
    // both ways are tried.
    if (drawn.IsOverwritten(a) || shape != drawn.inputs[a].shape() || random.Chance(50)) continue;
    drawn.in_place[r] = argument;
    // They are one buffer, so its elements lie in one way.
    drawn.output_layouts[r] = drawn.input_layouts[a];
  }
}

// The first or the last elements along each axis: the case is made smaller without changing values,
// or the fault might not come again.
// [1 2 3; 4 5 6] as a [2, 2] is [1 2; 4 5] (first) or [2 3; 5 6] (last).
absl::optional<Tensor> PartOf(const Tensor& whole, const Dims& shape, Kept kept) {
  TensorView part = whole.view();
  int64_t offset = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t dropped = part.shape[axis] - shape[axis];
    if (dropped < 0) return absl::nullopt;
    if (kept == Kept::kLast) offset += dropped * part.strides[axis];
  }
  part.shape = shape;
  part.data = static_cast<char*>(part.data) + offset * ByteSize(part.type);
  absl::StatusOr<Tensor> copy = Tensor::FromView(part);
  if (!copy.ok()) return absl::nullopt;
  return *std::move(copy);
}

}  // namespace

Dims ResultShape(const Op& op, const Binding& binding, size_t result) {
  return ShapeOf(op, op.graph.shape(op.results[result].node), binding);
}

bool Case::IsOverwritten(size_t argument) const {
  return std::find(in_place.begin(), in_place.end(), static_cast<int>(argument)) != in_place.end();
}

RunInputs Case::Inputs(const Op& op) const {
  RunInputs run;
  for (size_t i = 0; i < inputs.size(); ++i) run.tensors[op.args[i].name] = inputs[i].view();
  run.params = binding.params;
  for (const auto& [name, value] : binding.symbols) {
    if (name[0] != '$') run.dims[name] = value;
  }
  return run;
}

// Draws again where sizes were found but no inputs for them.
// All comes from one generator in a fixed order, so a seed is enough to see a case again: each
// change of the order in which things are drawn changes what all seeds stand for.
absl::optional<Case> DrawCase(const CaseSource& source, uint64_t seed, absl::optional<Case> spent) {
  Random random(seed);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const absl::optional<SymbolValues> sizes = DrawSizes(source, random);
    if (!sizes) return absl::nullopt;
    Case drawn;
    BindParams(source, *sizes, random, drawn.binding);
    if (!DrawInputs(source, *sizes, random, drawn, spent)) continue;
    DrawLayouts(source, random, drawn);
    DrawInPlace(source, random, drawn);
    drawn.sample_seed = random.Bits();
    return drawn;
  }
  return absl::nullopt;
}

// A part of each input in place of the input, so that the elements that matter can be kept.
absl::optional<Case> Shrunk(const CaseSource& source, const Case& from, const SymbolValues& sizes,
                            Kept kept) {
  if (!source.solver.Allows(sizes)) return absl::nullopt;
  Case shrunk = from;
  for (const auto& [name, value] : sizes) shrunk.binding.symbols[name] = value;
  for (const ParamInfo& param : source.op.params) {
    const auto chosen = sizes.find(param.name);
    if (chosen != sizes.end())
      shrunk.binding.params[param.name] = Scalar::Integer(param.type, chosen->second);
  }
  for (size_t i = 0; i < source.op.args.size(); ++i) {
    const Dims shape = ShapeOf(source.op, source.op.args[i].shape, shrunk.binding);
    absl::optional<Tensor> part = PartOf(from.inputs[i], shape, kept);
    if (!part) return absl::nullopt;
    shrunk.inputs[i] = *std::move(part);
    if (!source.values.FitIndices(static_cast<int>(i), sizes, shrunk.inputs[i]))
      return absl::nullopt;
  }
  for (size_t r = 0; r < shrunk.in_place.size(); ++r) {
    if (shrunk.in_place[r] < 0) continue;
    const Dims shape = ResultShape(source.op, shrunk.binding, r);
    if (shape != shrunk.inputs[static_cast<size_t>(shrunk.in_place[r])].shape())
      return absl::nullopt;
  }
  return shrunk;
}

// Sizes, then $params, then what is unusual about layouts and memory.
std::string CaseText(const CaseSource& source, const Case& drawn) {
  std::vector<std::string> parts;
  for (const std::string& name : source.solver.names()) {
    if (name[0] != '$') parts.push_back(absl::StrCat(name, "=", drawn.binding.symbols.at(name)));
  }
  for (const ParamInfo& param : source.op.params) {
    parts.push_back(
        absl::StrCat(param.name, "=", LiteralText(drawn.binding.params.at(param.name))));
  }
  std::string text = absl::StrJoin(parts, ", ");
  const auto add = [&](absl::string_view name, Arrangement layout) {
    if (layout != Arrangement::kCompact) absl::StrAppend(&text, "; ", name, " ", Name(layout));
  };
  for (size_t i = 0; i < drawn.input_layouts.size(); ++i)
    add(source.op.args[i].name, drawn.input_layouts[i]);
  for (size_t i = 0; i < drawn.output_layouts.size(); ++i) {
    add(source.op.results[i].name, drawn.output_layouts[i]);
    if (drawn.in_place[i] >= 0) {
      absl::StrAppend(&text, "; ", source.op.results[i].name, " in the memory of ",
                      source.op.args[static_cast<size_t>(drawn.in_place[i])].name);
    }
  }
  return text;
}

}  // namespace nestor
