#include "check/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/types/variant.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double Uniform(Random& random) { return static_cast<double>(random.Bits() >> 11) * 0x1p-53; }
double UniformIn(double low, double high, Random& random) { return low + (high - low) * Uniform(random); }
double Signed(double magnitude, Random& random) { return random.Chance(50) ? -magnitude : magnitude; }

double LargestOf(DType type) {
  return type == DType::kF16 ? 65504 : type == DType::kF64 ? std::numeric_limits<double>::max() : 3.38e38;
}
double LeastNormalOf(DType type) {
  return type == DType::kF16 ? 0x1p-14 : type == DType::kF64 ? std::numeric_limits<double>::min() : 0x1p-126;
}

enum class Character {
  kModerate,
  kIntegers,
  kCancelling,
  kWide,
  kLarge,
  kSubnormal,
  kEqual,
  kSpikes,
  kPositive,
  kAnyBits,
};
constexpr Character kCharacters[] = {
    Character::kModerate,   Character::kModerate, Character::kModerate, Character::kIntegers, Character::kIntegers,
    Character::kCancelling, Character::kWide,     Character::kLarge,    Character::kLarge,    Character::kSubnormal,
    Character::kEqual,      Character::kSpikes,   Character::kPositive, Character::kAnyBits,
};

// `overflows`: what makes most results inf or NaN may be drawn.
Character DrawCharacter(bool overflows, Random& random) {
  const int64_t count = static_cast<int64_t>(std::size(kCharacters)) - (overflows ? 0 : 1);
  return kCharacters[random.Below(count)];
}

// Draws the floats of one tensor.
class FloatDrawer {
 public:
  FloatDrawer(DType type, const ValueOptions& options, bool overflows, Random& random)
      : type_(type), options_(options), random_(random), character_(DrawCharacter(overflows, random)) {
    common_ = Signed(std::exp2(static_cast<double>(random.Between(-3, 8))), random);
  }

  Scalar Next() {
    if (options_.special && random_.Chance(4)) return Special();
    const double value = std::min(std::max(Value(), -LargestOf(type_)), LargestOf(type_));
    return Scalar::Float(type_, InRange(value));
  }

 private:
  Scalar Special() { return Scalar::Float(type_, random_.Pick({kInf, -kInf, std::nan(""), -0.0})); }

  // Brought into the range that the kernel asks for.
  double InRange(double value) {
    if (value >= options_.low && value <= options_.high) return value;
    const double width = options_.high - options_.low;
    if (std::abs(value) <= 16 && width < 1e6) return UniformIn(options_.low, options_.high, random_);
    return value < options_.low ? options_.low : options_.high;
  }

  double Value() {
    switch (character_) {
      case Character::kModerate: return UniformIn(-2, 2, random_);
      case Character::kIntegers: return static_cast<double>(random_.Between(-3, 3));
      case Character::kCancelling: return Cancelling();
      case Character::kWide: return Signed(std::exp2(UniformIn(-30, 30, random_)), random_);
      case Character::kLarge: return Signed(UniformIn(60, 1000, random_), random_);
      case Character::kSubnormal: return Signed(LeastNormalOf(type_) * UniformIn(0, 2, random_), random_);
      case Character::kEqual: return common_;
      case Character::kSpikes: return random_.Chance(85) ? 0 : UniformIn(-200, 200, random_);
      case Character::kPositive: return Uniform(random_);
      case Character::kAnyBits: return AnyFinite();
    }
    return 0;
  }

  // The one before with the other sign, nearly.
  double Cancelling() {
    if (random_.Chance(50)) return last_ = Signed(UniformIn(100, 10000, random_), random_);
    return -last_ + UniformIn(-0.01, 0.01, random_);
  }

  double AnyFinite() {
    const uint64_t bits = random_.Bits();
    const Scalar value =
        VisitType(type_, [&](auto zero) { return Scalar{type_, ToBits(FromBits<decltype(zero)>(bits))}.Canonical(); });
    const double number = value.ToDouble();
    return std::isfinite(number) ? number : 1.5;
  }

  const DType type_;
  const ValueOptions& options_;
  Random& random_;
  const Character character_;
  double common_ = 1, last_ = 1;
};

}  // namespace

ValueDrawer::ValueDrawer(const Op& op, const ValueOptions& options, absl::flat_hash_map<std::string, int64_t> bounds)
    : op_(op), options_(options), bounds_(std::move(bounds)) {
  FindIndexed();
}

// ---- Indices

void ValueDrawer::FindIndexed() {
  const Graph& graph = op_.graph;
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
    if (const Reindex* reindex = graph.As<Reindex>(id)) find(reindex->place, graph.shape(reindex->x));
    if (const Scatter* scatter = graph.As<Scatter>(id)) find(scatter->place, graph.shape(id));
  }
}

// The least extent that the argument's integers index; -1 where they index none.
int64_t ValueDrawer::IndexBound(int number, const SymbolValues& sizes) const {
  int64_t bound = -1;
  for (const Indexed& indexed : indexed_) {
    if (indexed.argument != number) continue;
    const auto extent = EvaluateIndex(op_.graph.pool(), indexed.extent,
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

Scalar ValueDrawer::DrawInteger(DType type, int64_t character, Random& random) const {
  const bool is_unsigned = type == DType::kU8;
  if (character == 0) return Scalar::Integer(type, random.Between(is_unsigned ? 0 : -3, 3));
  if (character == 1) return Scalar::Integer(type, random.Between(is_unsigned ? 0 : -100, 100));
  const bool is_narrow = type == DType::kU8 || type == DType::kI8;
  if (is_narrow || options_.special) {
    return Scalar{type, Scalar::Integer(type, static_cast<int64_t>(random.Bits())).bits};
  }
  return Scalar::Integer(type, random.Between(-30000, 30000));
}

// What the argument's values are below: the extent of an axis that they index, or what is
// given; -1 where nothing is.
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
  const int64_t bound = IsInteger(value.type) && !options_.indices_outside ? BoundOf(number, sizes) : -1;
  return bound < 0 || (value.ToInt() >= 0 && value.ToInt() < bound);
}

Tensor ValueDrawer::Draw(int number, const Dims& shape, const SymbolValues& sizes, bool overflows,
                         Random& random) const {
  const Argument& arg = op_.args[static_cast<size_t>(number)];
  Tensor tensor = Tensor::Create(arg.type, shape).value();
  char* element = static_cast<char*>(tensor.data());
  const auto store = [&](const Scalar& value) {
    Store(value, element);
    element += ByteSize(arg.type);
  };
  const int64_t bound = BoundOf(number, sizes);
  const int64_t character = random.Below(3);
  const ValueOptions options = OptionsOf(number, sizes);
  FloatDrawer floats(arg.type, options, overflows, random);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (arg.type == DType::kBool) {
      store(Scalar::Of(arg.type, random.Chance(50)));
    } else if (IsFloat(arg.type)) {
      store(floats.Next());
    } else if (bound >= 0) {
      const bool outside = options_.indices_outside && random.Chance(10);
      store(Scalar::Integer(arg.type, outside ? random.Between(-2, bound + 2) : bound == 0 ? 0 : random.Below(bound)));
    } else {
      store(DrawInteger(arg.type, character, random));
    }
  }
  return tensor;
}

bool ValueDrawer::FitIndices(int number, const SymbolValues& sizes, Tensor& tensor) const {
  if (options_.indices_outside || !IsInteger(tensor.type())) return true;
  const int64_t bound = IndexBound(number, sizes);
  if (bound < 0 || tensor.num_elements() == 0) return true;
  if (bound == 0) return false;
  char* element = static_cast<char*>(tensor.data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i, element += ByteSize(tensor.type())) {
    const int64_t value = Load(tensor.type(), element).ToInt();
    if (value < 0 || value >= bound) Store(Scalar::Integer(tensor.type(), ((value % bound) + bound) % bound), element);
  }
  return true;
}

Scalar ValueDrawer::DrawParam(const ParamInfo& param, Random& random) const {
  if (param.value && random.Chance(50)) return *param.value;
  if (param.type == DType::kBool) return Scalar::Of(param.type, random.Chance(50));
  const double low = param.low ? param.low->ToDouble() : 0, high = param.high ? param.high->ToDouble() : low + 1;
  const double inside = UniformIn(std::max(low, -1e6), std::min(high, 1e6), random);
  const double drawn = random.Pick({inside, inside, low, 1e-5, 0.5, 1.0});
  return Scalar::Float(param.type, std::min(std::max(drawn, low), high));
}

}  // namespace nestor
