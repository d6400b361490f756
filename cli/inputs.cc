// Binding twice over: sizes are chosen from the shapes and numbers given, the
// missing tensors are drawn with them, and then Bind() checks everything as if
// the user had given it. Entry point: MakeInputs.
#include "cli/inputs.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cli/sizes.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

absl::Status Error(const Op& op, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("op ", op.name, ": ", message));
}

// A stream of 64-bit numbers: splitmix64 (Steele, Lea, Flood, OOPSLA 2014), the
// same on every machine.
class Random {
 public:
  Random(uint64_t seed, absl::string_view name) : state_(seed * 0x9e3779b97f4a7c15u) {
    for (const unsigned char c : name) state_ = (state_ ^ c) * 0x100000001b3u;
  }
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

int64_t GreatestDrawn(DType integer, absl::optional<int64_t> bound) {
  const int64_t drawn = std::max<int64_t>(bound.value_or(4) - 1, 0);
  return WidensToI64(integer) ? std::min(drawn, Highest(integer).ToInt()) : drawn;
}

// Integers in [0, bound), as they may be indices; floats in [-1, 1), or in [0, bound).
Scalar DrawScalar(DType type, absl::optional<int64_t> bound, Random& random) {
  const uint64_t bits = random.Next();
  if (type == DType::kBool) return Scalar::Of(type, bits >> 63 != 0);
  if (IsInteger(type)) {
    return Scalar::Integer(
        type, static_cast<int64_t>((bits >> 1) % (GreatestDrawn(type, bound) + uint64_t{1})));
  }
  // As many bits as the significand has, so that no value is rounded up to the end of its range.
  const int precision = FactsOf(type).significand;
  const double unit =
      static_cast<double>(bits >> (64 - precision)) / static_cast<double>(int64_t{1} << precision);
  return Scalar::Float(type, bound ? unit * static_cast<double>(*bound) : 2 * unit - 1);
}

// "" for plain floats; else the range of the values.
std::string RangeText(DType type, absl::optional<int64_t> bound) {
  if (type == DType::kBool) return "";
  if (IsInteger(type)) return absl::StrCat(" of 0..", GreatestDrawn(type, bound));
  return bound ? absl::StrCat(" in [0, ", *bound, ")") : "";
}

absl::optional<int64_t> SampleBound(const MacroOp* macro, absl::string_view name) {
  if (macro == nullptr) return absl::nullopt;
  for (const Sample& sample : macro->samples) {
    for (const SampleArgument& arg : sample.args) {
      if (arg.name == name && arg.bound) return arg.bound;
    }
  }
  return absl::nullopt;
}

class InputMaker {
 public:
  InputMaker(const Op& op, const Given& given, const MacroOp* macro, uint64_t seed,
             int64_t* max_bytes)
      : op_(op), given_(given), macro_(macro), seed_(seed), max_bytes_(*max_bytes) {}

  absl::StatusOr<Inputs> Run() {
    NESTOR_ASSIGN_OR_RETURN(GivenSizes sizes, ReadSizes(op_, given_));
    inputs_.run = std::move(sizes.run);
    ChooseDims(sizes.known);
    for (const auto& [name, tensor] : given_.tensors) inputs_.run.tensors[name] = tensor.view();
    for (const Argument& arg : op_.args) {
      if (!given_.tensors.contains(arg.name)) NESTOR_RETURN_IF_ERROR(MakeUp(arg));
    }
    return std::move(inputs_);
  }

 private:
  void ChooseDims(const KnownSizes& known) {
    ChosenSizes chosen = ChooseSizes(op_, known);
    for (const auto& [name, extent] : chosen.chosen) {
      inputs_.run.dims[name] = extent;
      const auto reason = chosen.reasons.find(name);
      const std::string why =
          reason != chosen.reasons.end() ? EqualityText(name, *reason->second) : "";
      inputs_.remarks.push_back(absl::StrCat(name, ": ", extent, " chosen", why));
    }
    binding_.symbols = std::move(chosen.symbols);
  }

  // ", equal to K by ...": the equality that determines `name`.
  std::string EqualityText(const std::string& name, const Equality& equality) const {
    std::string left = SymbolicText(op_.graph.pool(), equality.left),
                right = SymbolicText(op_.graph.pool(), equality.right);
    if (right == name) std::swap(left, right);
    if (left == name) return absl::StrCat(", equal to ", right, " by this: ", equality.message);
    return absl::StrCat(", so that ", left, " == ", right, " by this: ", equality.message);
  }

  absl::StatusOr<Dims> ShapeOf(const Argument& arg) const {
    const auto given = given_.shapes.find(arg.name);
    if (given != given_.shapes.end()) return given->second.shape;
    return EvaluateShape(op_.graph.pool(), arg.shape, binding_,
                         absl::StrCat("op ", op_.name, ": argument ", arg.name));
  }

  // Each argument draws from its own stream of the seed, so that giving one tensor does not change
  // the others.
  absl::Status MakeUp(const Argument& arg) {
    NESTOR_ASSIGN_OR_RETURN(const Dims shape, ShapeOf(arg));
    if (arg.shape_only) return MakeUpShape(arg, shape);
    const absl::StatusOr<int64_t> bytes = NumBytes(arg.type, shape);
    if (!bytes.ok())
      return Error(op_, absl::StrCat("argument ", arg.name, ": ", bytes.status().message()));
    if (*bytes > max_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("op ", op_.name, ": argument ", arg.name, " ", ShapeText(shape),
                       " exceeds the limit of ", max_bytes_, " bytes"));
    }
    max_bytes_ -= *bytes;
    NESTOR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(arg.type, shape));
    const absl::optional<int64_t> bound = SampleBound(macro_, arg.name);
    Random random(seed_, arg.name);
    char* element = static_cast<char*>(tensor.data());
    for (int64_t i = 0; i < tensor.num_elements(); ++i, element += ByteSize(arg.type)) {
      Store(DrawScalar(arg.type, bound, random), element);
    }
    inputs_.run.tensors[arg.name] = tensor.view();
    inputs_.drawn.push_back(std::move(tensor));
    inputs_.remarks.push_back(absl::StrCat(arg.name, ": ", Name(arg.type), ShapeText(shape),
                                           RangeText(arg.type, bound), " drawn from seed ", seed_));
    return absl::OkStatus();
  }

  // Only the dimensions are read: all elements share one place.
  absl::Status MakeUpShape(const Argument& arg, const Dims& shape) {
    NESTOR_ASSIGN_OR_RETURN(Tensor element, Tensor::Create(arg.type, {}));
    TensorView view = element.view();
    view.shape = shape;
    view.strides.assign(shape.size(), 0);
    inputs_.run.tensors[arg.name] = view;
    inputs_.drawn.push_back(std::move(element));
    inputs_.remarks.push_back(
        absl::StrCat(arg.name, ": shape ", Name(arg.type), ShapeText(shape), " made up"));
    return absl::OkStatus();
  }

  const Op& op_;
  const Given& given_;
  const MacroOp* macro_;
  const uint64_t seed_;
  int64_t& max_bytes_;
  Binding binding_;  // of which only the symbols are set
  Inputs inputs_;
};

}  // namespace

// The sample's sizes only if none are given: they fit each other, and need not fit any others.
void FillFromSample(const MacroOp& macro, const Program& program, Given& given,
                    std::vector<std::string>& remarks) {
  if (macro.samples.empty()) return;
  const Sample& sample = macro.samples[0];
  const bool sizes = given.tensors.empty() && given.shapes.empty() && given.dims.empty();
  if (sizes) {
    for (const SampleArgument& arg : sample.args) {
      given.shapes[arg.name] = {absl::nullopt, Dims(arg.shape.begin(), arg.shape.end())};
    }
  }
  for (const auto& [name, text] : sample.params) {
    const auto is_it = [&, &name = name](const auto& other) { return other.first == name; };
    if (absl::c_any_of(given.params, is_it)) continue;
    const auto has_default = [&, &name = name](const ast::Param& p) {
      return p.name == name && p.value;
    };
    if (!sizes && absl::c_any_of(program.Syntax().params, has_default)) continue;
    given.params.emplace_back(name, text);
    remarks.push_back(absl::StrCat(name, ": ", text, " from the sample of ", macro.name));
  }
}

absl::StatusOr<Inputs> MakeInputs(const Op& op, const Given& given, const MacroOp* macro,
                                  uint64_t seed, int64_t* max_bytes) {
  return InputMaker(op, given, macro, seed, max_bytes).Run();
}

}  // namespace nestor::cli
