// Values that index an axis must be below its extent, so the arguments that hold indices are
// found first, with the extents that they index. All other values are drawn from one character
// for each tensor.
#include "check/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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
  const int exponent = static_cast<int>(random.Between(-3, 8));
  draw.common = std::ldexp(random.Chance(50) ? -1 : 1, exponent);
  draw.low = options.low, draw.high = options.high;
  draw.special = options.special;
  return draw;
}

// Whether the author says what a read outside of the tensor gives.
bool HasFill(const Graph& graph, const Reindex& reindex) {
  const Constant* fill = graph.As<Constant>(reindex.fill);
  return fill == nullptr || fill->value.bits != 0;
}

// In which directions an index expression keeps a value that it reads from growing.
struct Limited {
  bool below = false, above = false;
};

// Visits the tensors that an index expression reads, each with what limits the value.
template <class Visit>
void VisitLoads(const IndexPool& pool, IndexId e, Limited limited, const Visit& visit) {
  const IndexNode& node = pool[e];
  if (node.kind == IndexKind::kLoad) visit(NodeId{static_cast<int32_t>(node.value)}, limited);
  limited.below |= node.kind == IndexKind::kMax || node.kind == IndexKind::kMod;
  limited.above |= node.kind == IndexKind::kMin || node.kind == IndexKind::kMod;
  for (IndexId arg : node.args) VisitLoads(pool, arg, limited, visit);
}

// Places in an axis of `bound`; some beyond its ends where `outside`.
IntegerDraw PlacesIn(DType type, int64_t bound, bool outside) {
  if (type == DType::kBool) return {0, 1};
  const int64_t last = Scalar::Float(type, static_cast<double>(bound - 1)).ToInt();  // saturates
  return {0, std::max<int64_t>(last, 0), outside ? 10 : 0, -bound - 2, 2 * bound + 2};
}

}  // namespace

ValueDrawer::ValueDrawer(const Op& op, const ValueOptions& options,
                         absl::flat_hash_map<std::string, int64_t> bounds)
    : op_(op), options_(options), bounds_(std::move(bounds)) {
  FindIndexed();
}

// ---- Indices

// y[i, j] = x[ids[i], j]: values of ids index the first extent of x.
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
  const auto find = [&](const IndexList& place, const Shape& shape, bool has_fill) {
    for (size_t axis = 0; axis < place.size(); ++axis) {
      VisitLoads(graph.pool(), place[axis], {}, [&](NodeId tensor, Limited limited) {
        const int argument = argument_of(tensor);
        if (argument < 0) return;
        const bool may_be_outside = has_fill || (limited.below && limited.above);
        indexed_.push_back({argument, shape[axis], may_be_outside});
      });
    }
  };
  for (int i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    if (const Reindex* reindex = graph.As<Reindex>(id))
      find(reindex->place, graph.shape(reindex->x), HasFill(graph, *reindex));
    if (const Scatter* scatter = graph.As<Scatter>(id))
      find(scatter->place, graph.shape(id), false);
  }
}

// Whether the op itself says what all of the argument's places outside of their axes stand for.
bool ValueDrawer::MayBeOutside(int number) const {
  bool is_index = false;
  for (const Indexed& indexed : indexed_) {
    if (indexed.argument != number) continue;
    if (!indexed.may_be_outside) return options_.indices_outside;
    is_index = true;
  }
  return is_index || options_.indices_outside;
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

// Integers that index nothing have one of four reaches: a few, so that many are equal; up to 100;
// up to 30000; or all of the type, its ends often, which shows what is computed in another type.
IntegerDraw ValueDrawer::IntegersOf(DType type, Random& random) const {
  if (type == DType::kBool) return {0, 1};
  const Scalar least = Lowest(type), most = Highest(type);
  const double reach = random.Pick({3.0, 100.0, 30000.0, std::numeric_limits<double>::infinity()});
  const double low = std::ceil(std::max(-reach, options_.low)),
               high = std::floor(std::min(reach, options_.high));
  // The casts saturate.
  IntegerDraw draw{Scalar::Float(type, low).ToInt(),
                   Scalar::Float(type, std::max(low, high)).ToInt()};
  if (draw.low == least.ToInt() && draw.high == most.ToInt()) {
    // most - 1 .. most + 2, which wraps: two numbers at each end
    draw.few_percent = 20;
    draw.few_low = draw.high - 1;
    draw.few_high = static_cast<int64_t>(static_cast<uint64_t>(draw.high) + 2);
  }
  return draw;
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
  if (!IsInteger(value.type)) return true;
  const int64_t bound = BoundOf(number, sizes);
  if (bound >= 0) return MayBeOutside(number) || (value.ToInt() >= 0 && value.ToInt() < bound);
  return value.ToDouble() >= options_.low && value.ToDouble() <= options_.high;
}

bool ValueDrawer::Draw(int number, const SymbolValues& sizes, bool overflows, Random& random,
                       Tensor& tensor) const {
  const int64_t bound = BoundOf(number, sizes);
  const bool is_float = IsFloat(tensor.type());
  const FloatDraw floats =
      is_float ? FloatsOf(OptionsOf(number, sizes), overflows, random) : FloatDraw();
  const IntegerDraw integers = is_float     ? IntegerDraw()
                               : bound >= 0 ? PlacesIn(tensor.type(), bound, MayBeOutside(number))
                                            : IntegersOf(tensor.type(), random);
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
      MayBeOutside(number) || !IsInteger(tensor.type()) ? -1 : IndexBound(number, sizes);
  if (bound <= 0) return true;
  ReplaceElements(tensor, 0, tensor.num_elements(), [bound](const Scalar& index) {
    return Scalar::Integer(index.type, ((index.ToInt() % bound) + bound) % bound);
  });
  return true;
}

// Without a range a $param lies in [-1, 1], or in [0, 1] if its default is positive. A very wide
// range is cut at a million: its middle would be of no use.
Scalar ValueDrawer::DrawParam(const ParamInfo& param, Random& random) const {
  if (param.value && random.Chance(50)) return *param.value;
  if (param.type == DType::kBool) return Scalar::Of(param.type, random.Chance(50));
  const double most = param.high ? std::min(param.high->ToDouble(), 1e6) : 1;
  const double least = param.value && param.value->ToDouble() > 0 ? 0 : -1;
  const double low = param.low ? std::max(param.low->ToDouble(), -1e6) : std::min(least, most - 1);
  const double high = std::max(most, low + (param.high ? 0 : 1));
  const double inside = UniformIn(low, high, random);
  const double drawn = random.Pick({inside, inside, low, high, 1e-5, 0.5, 1.0});
  return Scalar::Float(param.type, std::min(std::max(drawn, low), high));
}

}  // namespace nestor
