// Names, limits and literals of the element types. Literals are read straight
// into the type that they meet, so that they are rounded once; the printed form
// is the shortest decimal that reads back to the same bits.
#include "uops/dtype.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "uops/arithmetic.h"

namespace nestor {
namespace {

constexpr DType kAllTypes[] = {
#define ELEMENT(Enumerator, ...) DType::k##Enumerator,
#include "uops/element_types.inc"
#undef ELEMENT
};

// ---- Floats as bits: the sign, the exponent, the significand but its hidden bit.

constexpr Bits InfinityOf(const TypeFacts& facts) {
  const int fraction = facts.significand - 1;
  return ((Bits{1} << (8 * facts.bytes - facts.significand)) - 1) << fraction;
}

// The one NaN: the first bit of the fraction.
constexpr Bits NaNOf(const TypeFacts& facts) {
  return InfinityOf(facts) | Bits{1} << (facts.significand - 2);
}

// Without the sign; bits above those of the type are dropped, too.
constexpr Bits MagnitudeOf(const TypeFacts& facts, Bits bits) {
  return bits & (~Bits{0} >> (65 - 8 * facts.bytes));
}

bool IsDecimal(absl::string_view text) {
  for (char c : text) {
    if (!(c >= '0' && c <= '9')) return false;
  }
  return !text.empty();
}

absl::optional<Scalar> ParseFloat(absl::string_view text, DType type) {
  // A terminated copy: strtof and strtod round correctly; the 16-bit types go
  // through double, whose 53 bits leave no second rounding for literals of up
  // to 15 digits.
  const std::string copy(text);
  char* end = nullptr;
  const Scalar value = type == DType::kF32 ? Scalar::Of(type, std::strtof(copy.c_str(), &end))
                                           : Scalar::Float(type, std::strtod(copy.c_str(), &end));
  if (copy.empty() || end != copy.c_str() + copy.size()) return absl::nullopt;
  const bool literal_is_finite = !absl::StrContains(text, "inf") && !absl::StrContains(text, "nan");
  // 1e39 does not fit f32: an overflow that nobody wrote is an error, not an infinity.
  if (literal_is_finite && !std::isfinite(value.ToDouble())) return absl::nullopt;
  return value;
}

// `wide` where it is a value of the type. Its bits are, modulo 2^64; so is its sign.
template <class T>
absl::optional<Scalar> Fitting(T wide, DType type) {
  const Scalar narrow = Scalar::Of(type, wide);
  const bool is_negative = IsSigned(type) && narrow.ToInt() < 0;
  if (narrow.bits != static_cast<Bits>(wide) || is_negative != (wide < 0)) return absl::nullopt;
  return narrow;
}

// Read as the widest type of its sign, so that both -2^63 and 2^64 - 1 can be read.
absl::optional<Scalar> ParseInteger(absl::string_view text, DType type) {
  const bool minus = !text.empty() && text[0] == '-';
  int64_t number;
  uint64_t magnitude;
  if (!IsDecimal(minus ? text.substr(1) : text)) return absl::nullopt;
  if (minus) return absl::SimpleAtoi(text, &number) ? Fitting(number, type) : absl::nullopt;
  return absl::SimpleAtoi(text, &magnitude) ? Fitting(magnitude, type) : absl::nullopt;
}

template <class T>
std::string ShortestFloat(T v) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  return std::string(buffer, end);
}

// The shortest decimal that rounds to the same 16-bit value.
std::string ShortestHalf(const Scalar& value) {
  for (int digits = 1; digits <= 9; ++digits) {
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value.ToDouble(),
                                   std::chars_format::general, digits)
                         .ptr;
    std::string text(buffer, end);
    if (Scalar::Float(value.type, std::strtod(text.c_str(), nullptr)) == value) return text;
  }
  return ShortestFloat(value.ToDouble());
}

// `v`, rounded to odd where it is no float, so that rounding it once more, to fewer
// bits, cannot undo a tie (Boldo and Melquiond, "Emulation of FMA and correctly
// rounded sums: proved algorithms using rounding to odd", 2008).
float OddFloat(double v) {
  const float f = static_cast<float>(v);
  if (static_cast<double>(f) == v || !std::isfinite(f)) return f;
  const uint32_t u = absl::bit_cast<uint32_t>(f);
  if ((u & 1) != 0) return f;
  // f is even; its odd neighbour is on the side of v.
  const bool away = std::fabs(static_cast<double>(f)) > std::fabs(v);
  return absl::bit_cast<float>(away ? u - 1 : u | 1);
}

// The same of an integer: where it has more bits than a double, the low 11 are folded
// into a sticky one, which makes the conversion exact.
double OddDouble(int64_t v) {
  if (v <= (int64_t{1} << 52) && v >= -(int64_t{1} << 52)) return static_cast<double>(v);
  const bool sticky = (v & 0x7ff) != 0;
  return static_cast<double>((v & ~int64_t{0x7ff}) | (int64_t{sticky} << 11));
}

template <class T>
Scalar Stored(DType type, T v) {
  return Scalar{type, ToBits(v)}.Canonical();
}

}  // namespace

absl::Span<const DType> AllTypes() { return kAllTypes; }

absl::string_view Name(DType type) { return FactsOf(type).name; }

absl::optional<DType> TypeByName(absl::string_view name) {
  for (const TypeFacts& row : kTypeFacts) {
    if (name == row.name) return row.type;
  }
  return absl::nullopt;
}

Scalar Scalar::Float(DType type, double v) {
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (Half<T>) return Stored(type, T::Round(OddFloat(v)));
    else return Stored(type, arith::Cast<T>(v));
  });
}

Scalar Scalar::Integer(DType type, int64_t v) {
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (Half<T>) return Float(type, OddDouble(v));
    else return Stored(type, arith::Cast<T>(v));
  });
}

// A number from 2^63 on is no int64_t, but half of it is, with a sticky bit for the lost bit.
Scalar Scalar::Unsigned(DType type, uint64_t v) {
  if (type == DType::kF64) return Stored(type, static_cast<double>(v));
  if (v >> 63 == 0 || !IsFloat(type)) return Integer(type, static_cast<int64_t>(v));
  return Float(type, 2 * OddDouble(static_cast<int64_t>((v >> 1) | (v & 1))));
}

// All exponent bits and some bit of the fraction: above infinity's bits.
bool Scalar::IsNaN() const {
  const TypeFacts& facts = FactsOf(type);
  return facts.kind == TypeKind::kFloat && MagnitudeOf(facts, bits) > InfinityOf(facts);
}

Scalar Scalar::Canonical() const { return IsNaN() ? Scalar{type, NaNOf(FactsOf(type))} : *this; }

// By the C++ type of each row of element_types.inc.
double Scalar::ToDouble() const {
  return VisitType(type, [&](auto zero) -> double {
    using T = decltype(zero);
    return static_cast<double>(Widened(FromBits<T>(bits)));
  });
}

Scalar Lowest(DType type) {
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    if (IsFloat(type)) return Scalar::Float(type, -std::numeric_limits<double>::infinity());
    return Stored(type, std::numeric_limits<T>::lowest());
  });
}

Scalar Highest(DType type) {
  return VisitType(type, [&](auto zero) {
    using T = decltype(zero);
    if (IsFloat(type)) return Scalar::Float(type, std::numeric_limits<double>::infinity());
    return Stored(type, std::numeric_limits<T>::max());
  });
}

// f32 1.0 -> "1.0", u8 7 -> "7", bool -> "true", f64 1e300 -> "1e+300", -inf -> "-inf"
std::string LiteralText(const Scalar& value) {
  if (value.type == DType::kBool) return value.bits ? "true" : "false";
  if (IsUnsigned(value.type)) return absl::StrCat(value.bits);
  if (IsInteger(value.type)) return absl::StrCat(value.ToInt());
  const double d = value.ToDouble();
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  std::string text = value.type == DType::kF32   ? ShortestFloat(static_cast<float>(d))
                     : value.type == DType::kF64 ? ShortestFloat(d)
                                                 : ShortestHalf(value);
  // Else the notation would read an integer.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// true and false are literals of bool only, and bool has no others.
absl::optional<Scalar> ParseLiteral(absl::string_view text, DType type) {
  if (text == "true" || text == "false") {
    if (type != DType::kBool) return absl::nullopt;
    return Scalar::Of(type, text == "true");
  }
  if (type == DType::kBool) return absl::nullopt;
  if (IsFloat(type)) return ParseFloat(text, type);
  return ParseInteger(text, type);
}

absl::optional<Scalar> ParseParamLiteral(absl::string_view text, DType type) {
  const absl::optional<Scalar> value = ParseLiteral(text, type);
  return value && value->FitsInt64() ? value : absl::nullopt;
}

}  // namespace nestor
