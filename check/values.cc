// Values that index an axis must be below its extent, so the arguments that hold indices are
// found first, with the extents that they index. All other values are drawn from one character
// for each tensor.
#include "check/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/types/variant.h"
#include "check/elements.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

double UniformIn(double low, double high, Random& random) {
  return low + (high - low) * (static_cast<double>(random.Bits() >> 11) * 0x1p-53);
}

constexpr Character kCharacters[] = {
    Character::kModerate, Character::kModerate,   Character::kModerate, Character::kIntegers,
    Character::kIntegers, Character::kCancelling, Character::kWide,     Character::kLarge,
    Character::kLarge,    Character::kSubnormal,  Character::kEqual,    Character::kSpikes,
    Character::kPositive, Character::kAnyBits,
};

// `overflows`: characters that make most results inf or NaN may be drawn.
// The last one, any bits, is left out otherwise: its exponents are as large as they get.
Character DrawCharacter(bool overflows, Random& random) {
  const int64_t count = static_cast<int64_t>(std::size(kCharacters)) - (overflows ? 0 : 1);
  return kCharacters[random.Below(count)];
}

FloatDraw FloatsOf(const ValueOptions& options, bool overflows, Random& random) {
  FloatDraw draw;
  draw.character = DrawCharacter(overflows, random);
  draw.common = std::ldexp(random.Chance(50) ? -1 : 1, static_cast<int>(random.Between(-3, 8)));
  draw.low = options.low, draw.high = options.high;
  draw.special = options.special;
  return draw;
}

}  // namespace

ValueDrawer::ValueDrawer(const Op& op, const ValueOptions& options,
                         absl::flat_hash_map<std::string, int64_t> bounds)
    : op_(op), options_(options), bounds_(std::move(bounds)) {
  FindIndexed();
}

// ---- Indices

// y[i, j] = x[ids[i], j]: values of ids index the first extent of x
void ValueDrawer::FindIndexed() {
  const Graph& graph = op_.graph;
  // ids[i] may be read through a broadcast or a transposition, which leave its values as they are.
  const auto argument_of = [&](NodeId node) {
    while (const Reindex* reindex = graph.As<Reindex>(node)) node = reindex->x;
    for (size_t i = 0; i < op_.args.size(); ++i) {
      if (op_.args[i].node == node && !op_.args[i].shape_only) return static_cast<int>(i);
    }
    return -1;
  };
  const auto find = [&](const IndexList& place, const Shape& shape) {
    for (size_t axis = 0; axis < place.size(); ++axis) {
      VisitIndex(graph.pool(), place[axis], [&](IndexId, const IndexNode& index) {
        if (index.kind != IndexKind::kLoad) return;
        const int argument = argument_of(NodeId{static_cast<int32_t>(index.value)});
        if (argument >= 0) indexed_.push_back({argument, shape[axis]});
      });
    }
  };
  for (int i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    if (const Reindex* reindex = graph.As<Reindex>(id))
      find(reindex->place, graph.shape(reindex->x));
    if (const Scatter* scatter = graph.As<Scatter>(id)) find(scatter->place, graph.shape(id));
  }
}

// The least extent that the argument's integers index; -1 where they index none.
int64_t ValueDrawer::IndexBound(int number, const SymbolValues& sizes) const {
  int64_t bound = -1;
  for (const Indexed& indexed : indexed_) {
    if (indexed.argument != number) continue;
    const auto extent = EvaluateIndex(
        op_.graph.pool(), indexed.extent,
        [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
          if (node.kind != IndexKind::kSymbol) return absl::nullopt;
          const auto it = sizes.find(op_.graph.pool().SymbolNameAt(node.value));
          if (it == sizes.end()) return absl::nullopt;
          return it->second;
        });
    if (extent && (bound < 0 || *extent < bound)) bound = *extent;
  }
  return bound;
}

// ---- Tensors

// Integers that index nothing lie in one of three ranges: a few, so that many are equal; up to 100;
// or large ones. Those are all of an 8- or 16-bit type, and all of a wider one where the caller
// asks for extremes.
// `bound`: as BoundOf gives it.
IntegerDraw ValueDrawer::IntegersOf(DType type, int64_t bound, Random& random) const {
  if (type == DType::kBool) return {0, 1};
  if (bound >= 0)
    return {0, std::max<int64_t>(bound - 1, 0), options_.indices_outside ? 10 : 0, -2, bound + 2};
  const int64_t character = random.Below(3);
  const Scalar least = Lowest(type), most = Highest(type);
  const bool is_any = character == 2 && (ByteSize(type) <= 2 || options_.special);
  if (is_any) return {least.ToInt(), most.ToInt()};
  const int64_t reach = character == 0 ? 3 : character == 1 ? 100 : 30000;
  return {std::max(least.ToInt(), -reach),
          most.FitsInt64() ? std::min(most.ToInt(), reach) : reach};
}

// The bound of the argument's values: the extent of an axis that they index, or the given one; -1
// if there is neither.
int64_t ValueDrawer::BoundOf(int number, const SymbolValues& sizes) const {
  const Argument& arg = op_.args[static_cast<size_t>(number)];
  const int64_t index_bound = IsInteger(arg.type) ? IndexBound(number, sizes) : -1;
  const auto given = bounds_.find(arg.name);
  return index_bound >= 0 ? index_bound : given == bounds_.end() ? -1 : given->second;
}

ValueOptions ValueDrawer::OptionsOf(int number, const SymbolValues& sizes) const {
  const int64_t bound = BoundOf(number, sizes);
  ValueOptions options = options_;
  if (bound >= 0 && IsFloat(op_.args[static_cast<size_t>(number)].type)) {
    options.low = 0, options.high = static_cast<double>(bound);
  }
  return options;
}

bool ValueDrawer::Allows(int number, const SymbolValues& sizes, const Scalar& value) const {
  if (IsFloat(value.type)) {
    const ValueOptions options = OptionsOf(number, sizes);
    return value.ToDouble() >= options.low && value.ToDouble() <= options.high;
  }
  const int64_t bound =
      IsInteger(value.type) && !options_.indices_outside ? BoundOf(number, sizes) : -1;
  return bound < 0 || (value.ToInt() >= 0 && value.ToInt() < bound);
}

bool ValueDrawer::Draw(int number, const SymbolValues& sizes, bool overflows, Random& random,
                       Tensor& tensor) const {
  const int64_t bound = BoundOf(number, sizes);
  const bool is_float = IsFloat(tensor.type());
  const FloatDraw floats =
      is_float ? FloatsOf(OptionsOf(number, sizes), overflows, random) : FloatDraw();
  const IntegerDraw integers = is_float ? IntegerDraw() : IntegersOf(tensor.type(), bound, random);
  RandomWords words(random.Bits());
  if (is_float) DrawFloats(floats, words, tensor);
  else DrawIntegers(integers, words, tensor);
  return HasPlaces(number, sizes, tensor);
}

bool ValueDrawer::HasPlaces(int number, const SymbolValues& sizes, const Tensor& tensor) const {
  const bool is_free =
      options_.indices_outside || !IsInteger(tensor.type()) || tensor.num_elements() == 0;
  return is_free || IndexBound(number, sizes) != 0;
}

bool ValueDrawer::FitIndices(int number, const SymbolValues& sizes, Tensor& tensor) const {
  if (!HasPlaces(number, sizes, tensor)) return false;
  const int64_t bound =
      options_.indices_outside || !IsInteger(tensor.type()) ? -1 : IndexBound(number, sizes);
  if (bound <= 0) return true;
  ReplaceElements(tensor, 0, tensor.num_elements(), [bound](const Scalar& index) {
    return Scalar::Integer(index.type, ((index.ToInt() % bound) + bound) % bound);
  });
  return true;
}

// Without a range a $param lies in [0, 1]. A very wide range is cut at a million: its middle would
// be of no use.
Scalar ValueDrawer::DrawParam(const ParamInfo& param, Random& random) const {
  if (param.value && random.Chance(50)) return *param.value;
  if (param.type == DType::kBool) return Scalar::Of(param.type, random.Chance(50));
  const double low = param.low ? param.low->ToDouble() : 0,
               high = param.high ? param.high->ToDouble() : low + 1;
  const double inside = UniformIn(std::max(low, -1e6), std::min(high, 1e6), random);
  const double drawn = random.Pick({inside, inside, low, 1e-5, 0.5, 1.0});
  return Scalar::Float(param.type, std::min(std::max(drawn, low), high));
}

}  // namespace nestor
