// The element types of Nestor and scalar values of them.
//
// A Scalar is a type and its bits, so that constants compare by bits (-0.0 is
// not 0.0) and every engine can hold a value of any type in eight bytes. There
// is one NaN per type: constructors canonicalise.
#ifndef NESTOR_UOPS_DTYPE_H_
#define NESTOR_UOPS_DTYPE_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/base/casts.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/half.h"

namespace nestor {

enum class DType : uint8_t { kBool, kU8, kI8, kI32, kI64, kBF16, kF16, kF32, kF64 };

// Every type, in the order of the enumeration.
absl::Span<const DType> AllTypes();

// "f32", "i64", ...: the name in the notation.
absl::string_view Name(DType type);
absl::optional<DType> TypeByName(absl::string_view name);

// Bytes of one element.
int ByteSize(DType type);

inline bool IsFloat(DType t) { return t >= DType::kBF16; }
inline bool IsInteger(DType t) { return t >= DType::kU8 && t <= DType::kI64; }

// The type that sums and products of `type` accumulate in: f32 for the two
// half-width floats, else the type itself.
inline DType AccumulatorType(DType type) {
  return type == DType::kBF16 || type == DType::kF16 ? DType::kF32 : type;
}

// The bits of one value, in the low bytes. An i32 is stored sign-extended to 64
// bits, a bool as 0 or 1, so that equal values have equal Bits.
using Bits = uint64_t;

template <class T>
Bits ToBits(T v) {
  if constexpr (std::is_same_v<T, float>) {
    return absl::bit_cast<uint32_t>(v);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::bit_cast<uint64_t>(v);
  } else if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) {
    return v.bits;
  } else if constexpr (std::is_same_v<T, bool>) {
    return v ? 1 : 0;
  } else {
    return static_cast<Bits>(static_cast<int64_t>(v));
  }
}

template <class T>
T FromBits(Bits b) {
  if constexpr (std::is_same_v<T, float>) {
    return absl::bit_cast<float>(static_cast<uint32_t>(b));
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::bit_cast<double>(b);
  } else if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) {
    return T{static_cast<uint16_t>(b)};
  } else if constexpr (std::is_same_v<T, bool>) {
    return b != 0;
  } else {
    return static_cast<T>(b);
  }
}

// Calls f with a value-initialised C++ object of the element type and returns
// what f returns: VisitType(t, [](auto zero) { using T = decltype(zero); ... }).
template <class F>
decltype(auto) VisitType(DType type, F&& f) {
  switch (type) {
    case DType::kBool: return f(bool{});
    case DType::kU8: return f(uint8_t{});
    case DType::kI8: return f(int8_t{});
    case DType::kI32: return f(int32_t{});
    case DType::kI64: return f(int64_t{});
    case DType::kBF16: return f(BF16{});
    case DType::kF16: return f(F16{});
    case DType::kF32: return f(float{});
    case DType::kF64: return f(double{});
  }
  __builtin_unreachable();
}

// One value of one type; see the head of this file.
struct Scalar {
  DType type = DType::kF32;
  Bits bits = 0;

  // Each of these three stores `v` cast to `type` as the notation's TYPE(v) casts
  // (SEMANTICS 3), whatever the two types are: a float is rounded once, to nearest even;
  // to an integer, a float truncates and saturates, NaN gives 0, and an integer wraps;
  // to bool it is whether v is not zero. So Of(kI64, 2.5) is 2, Of(kU8, 300) is 44, and
  // Of(kBool, 3) is true. Text that must fit is read by ParseLiteral.
  template <class T>
  static Scalar Of(DType type, T v);
  static Scalar Float(DType type, double v);
  static Scalar Integer(DType type, int64_t v);
  static Scalar Zero(DType type) { return Scalar{type, 0}; }
  static Scalar I64(int64_t v) { return Scalar{DType::kI64, ToBits(v)}; }

  bool IsNaN() const;
  // The same value with the one NaN of its type.
  Scalar Canonical() const;
  // The value as a double; exact but for large i64.
  double ToDouble() const;
  // REQUIRES: an integer or bool type.
  int64_t ToInt() const { return static_cast<int64_t>(bits); }

  friend bool operator==(const Scalar& a, const Scalar& b) {
    return a.type == b.type && a.bits == b.bits;
  }
  template <class H>
  friend H AbslHashValue(H h, const Scalar& s) {
    return H::combine(std::move(h), s.type, s.bits);
  }

 private:
  static Scalar Unsigned(DType type, uint64_t v);
};

template <class T>
Scalar Scalar::Of(DType type, T v) {
  if constexpr (std::is_same_v<T, BF16>) {
    return type == DType::kBF16 ? Scalar{type, v.bits}.Canonical() : Float(type, v.Widen());
  } else if constexpr (std::is_same_v<T, F16>) {
    return type == DType::kF16 ? Scalar{type, v.bits}.Canonical() : Float(type, v.Widen());
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) <= sizeof(double), "a long double would be rounded twice");
    return Float(type, v);
  } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(uint64_t)) {
    return Unsigned(type, v);
  } else {
    static_assert(std::is_integral_v<T>, "a Scalar is made from a number or a bool");
    return Integer(type, v);
  }
}

// The least and greatest value of a type: for floats the infinities.
Scalar Lowest(DType type);
Scalar Highest(DType type);

// The shortest literal of the notation that reads back as `value` where a value
// of its type is expected: "0.1", "-3", "inf", "true". Floats always carry a
// point, an exponent, or are inf or nan.
std::string LiteralText(const Scalar& value);

// Reads the text of a numeric literal ("12", "1.5e3", "inf", "nan", with an
// optional minus) as `type`, rounding once; nullopt where it does not fit.
absl::optional<Scalar> ParseLiteral(absl::string_view text, DType type);

}  // namespace nestor

#endif  // NESTOR_UOPS_DTYPE_H_
