// Extents lie near multiples of the sizes of vectors and tiles, where code changes from one path to
// another; one in three is small, so that the interpreter keeps up.
#include "check/engines/large_inputs.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "tensor/binding.h"
#include "uops/index/index_expr.h"
#include "uops/invariant.h"

namespace nestor {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// The least subnormal, the least normal and about the largest number of each type of float, ties of
// rounding, 2^31, and where exp of an f32 leaves the normal numbers.
constexpr double kSpecials[] = {0.0,     -0.0,         kInf,      -kInf,    kNaN,      1.0,
                                -1.0,    0x1p-149,     -0x1p-140, 0x1p-126, 0x1p-1074, 0x1p-24,
                                0x1p-14, 65504.0,      3.4e38,    -3.4e38,  1.7e308,   0.5,
                                1.5,     2147483648.0, -88.0,     1e-20,    2.5,       127.0};

// Special values, any bits, or exact small fractions, whose sums are exact in any order.
Scalar DrawFloat(DType type, std::mt19937_64& random) {
  switch (random() % 4) {
    case 0: return Scalar::Float(type, kSpecials[random() % std::size(kSpecials)]);
    case 1: return Scalar{type, random() & (~Bits{0} >> (64 - 8 * ByteSize(type)))}.Canonical();
    default: return Scalar::Float(type, static_cast<double>(random() % 4096) / 256 - 8);
  }
}

// The ends of the range, small numbers, or any bits.
Scalar DrawInteger(DType type, std::mt19937_64& random) {
  const int bits = BitWidth(type);
  const int64_t highest = Highest(type).ToInt(), lowest = Lowest(type).ToInt();
  const int64_t specials[] = {0, 1, highest, lowest, highest - 1, lowest + 1};
  switch (random() % 4) {
    case 0: return Scalar::Integer(type, specials[random() % std::size(specials)]);
    case 1: return Scalar::Integer(type, static_cast<int64_t>(random() % 4));
    default: return Scalar::Integer(type, static_cast<int64_t>(random() >> (64 - bits)));
  }
}

Scalar DrawModerate(DType type, std::mt19937_64& random) {
  if (IsFloat(type)) return Scalar::Float(type, static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  const auto value = static_cast<int64_t>(random() % 6) - 1;
  return Scalar::Integer(type, IsUnsigned(type) ? std::abs(value) : value);
}

Scalar DrawSmallInteger(DType type, std::mt19937_64& random) {
  const auto value = static_cast<int64_t>(random() % 7) - 3;
  if (IsFloat(type))
    return Scalar::Float(type, value == 0 && random() % 2 == 0 ? -0.0 : static_cast<double>(value));
  const int64_t high = BitWidth(type) == 64 && random() % 4 == 0 ? int64_t{1} << 32 : 0;
  return Scalar::Integer(type, (IsUnsigned(type) ? std::abs(value) : value) + high);
}

Scalar DrawOfAnyKind(DType type, std::mt19937_64& random) {
  return IsFloat(type) ? DrawFloat(type, random) : DrawInteger(type, random);
}

Scalar DrawScalar(DType type, ValueKind kind, std::mt19937_64& random) {
  switch (kind) {
    case ValueKind::kEvery: return DrawOfAnyKind(type, random);
    case ValueKind::kFewSpecials:
      return random() % 32 == 0 ? DrawOfAnyKind(type, random) : DrawModerate(type, random);
    case ValueKind::kModerate: return DrawModerate(type, random);
    case ValueKind::kSmallIntegers: return DrawSmallInteger(type, random);
  }
  NESTOR_CHECK(false, "no such kind");
}

}  // namespace

// A bool in memory may be any byte, of which all but 0 are true.
Tensor DrawTensor(DType type, const Dims& shape, std::mt19937_64& random, ValueKind kind) {
  Tensor tensor = Tensor::Create(type, shape).value();
  char* element = static_cast<char*>(tensor.data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i, element += ByteSize(type)) {
    constexpr char kBools[] = {0, 1, 0, 2, 0, -1};
    if (type == DType::kBool) *element = kBools[random() % std::size(kBools)];
    else Store(DrawScalar(type, kind, random), element);
  }
  return tensor;
}

namespace {

// Extents for the symbols, and tensors of those shapes.
// $params are those of RandomInputs, which draws them within their ranges.
absl::optional<RandomInputsResult> DrawOnce(const Op& op, const RunInputs& small,
                                            std::mt19937_64& random, int64_t max_extent) {
  constexpr int64_t kExtents[] = {1,  2,  3,  7,  8,  9,  15, 16,  17, 31,
                                  32, 33, 34, 63, 64, 65, 66, 127, 129};
  const int64_t common = kExtents[random() % std::size(kExtents)];
  const bool equal = random() % 2 == 0;
  // Some extents are small, as many large ones would take the interpreter too long.
  const auto draw = [&] {
    if (random() % 3 == 0) return static_cast<int64_t>(1 + random() % 3);
    return std::min(max_extent, equal ? common : kExtents[random() % std::size(kExtents)]);
  };
  const Signature signature = SignatureOf(op);
  Binding binding;
  const auto bind = [&](IndexId, const IndexNode& node) {
    if (node.kind != IndexKind::kSymbol) return;
    const std::string& name = signature.pool->SymbolNameAt(node.value);
    if (name[0] == '$' || binding.symbols.contains(name)) return;
    binding.symbols[name] = draw();
  };
  for (const ParamInfo& param : *signature.params) {
    const auto given = small.params.find(param.name);
    const absl::optional<Scalar> value = given != small.params.end() ? given->second : param.value;
    if (value && IsInteger(param.type)) binding.symbols[param.name] = value->ToInt();
  }
  RandomInputsResult made;
  made.inputs.params = small.params;
  for (const SignatureArgument& arg : signature.args) {
    for (IndexId extent : *arg.shape) VisitIndex(*signature.pool, extent, bind);
    const auto shape = EvaluateShape(*signature.pool, *arg.shape, binding, arg.name);
    if (!shape.ok() || *NumElements(*shape) > 20000) return absl::nullopt;
    made.tensors.push_back(DrawTensor(arg.type, *shape, random));
  }
  for (size_t i = 0; i < made.tensors.size(); ++i)
    made.inputs.tensors[signature.args[i].name] = made.tensors[i];
  for (const auto& [name, value] : binding.symbols) {
    if (name[0] != '$') made.inputs.dims[name] = value;
  }
  return made;
}

}  // namespace

// Draws again where the op refuses the sizes, up to 30 times.
absl::optional<RandomInputsResult> DrawLargeInputs(const Op& op, uint64_t seed,
                                                   int64_t max_extent) {
  std::mt19937_64 random(seed);
  const RandomInputsResult small = RandomInputs(op, seed);
  for (int attempt = 0; attempt < 30; ++attempt) {
    absl::optional<RandomInputsResult> made = DrawOnce(op, small.inputs, random, max_extent);
    if (made && Bind(SignatureOf(op), made->inputs).ok()) return made;
  }
  return absl::nullopt;
}

}  // namespace nestor
