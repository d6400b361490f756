// The element types of Nestor and scalar values of them. The types are the rows of
// element_types.inc; this header gives access to them.
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

enum class DType : uint8_t {
#define ELEMENT(Enumerator, ...) k##Enumerator,
#include "uops/element_types.inc"
#undef ELEMENT
};

// The kind of a value of the type.
enum class TypeKind : uint8_t { kBoolean, kUnsigned, kSigned, kFloat };

// A row; see element_types.inc.
struct TypeFacts {
  DType type;
  const char* name;  // in the notation
  TypeKind kind;
  int bytes;
  int significand;
  int least_exponent;
  DType accumulator;
};

inline constexpr TypeFacts kTypeFacts[] = {
#define ELEMENT(Enumerator, Type, name, kind, significand, least_exponent, accumulator) \
  {DType::k##Enumerator, name,           TypeKind::kind,       sizeof(Type),            \
   significand,          least_exponent, DType::k##accumulator},
#include "uops/element_types.inc"
#undef ELEMENT
};
inline constexpr int kNumTypes = sizeof(kTypeFacts) / sizeof(kTypeFacts[0]);

constexpr const TypeFacts& FactsOf(DType type) { return kTypeFacts[static_cast<int>(type)]; }

// The element type that T stores: DTypeOf<float>() is f32.
template <class T>
constexpr DType DTypeOf() {
#define ELEMENT(Enumerator, Type, ...)                                \
  if constexpr (std::is_same_v<T, Type>) return DType::k##Enumerator; \
  else
#include "uops/element_types.inc"
#undef ELEMENT
  static_assert(!std::is_same_v<T, T>, "not an element type");
}

// Every type, in the order of the enumeration.
absl::Span<const DType> AllTypes();

// "f32", "i64", ...: the name in the notation.
absl::string_view Name(DType type);
absl::optional<DType> TypeByName(absl::string_view name);

// Bytes and bits of one element in memory.
constexpr int ByteSize(DType type) { return FactsOf(type).bytes; }
constexpr int BitWidth(DType type) { return 8 * ByteSize(type); }

constexpr bool IsFloat(DType t) { return FactsOf(t).kind == TypeKind::kFloat; }
constexpr bool IsSigned(DType t) { return FactsOf(t).kind == TypeKind::kSigned; }
constexpr bool IsUnsigned(DType t) { return FactsOf(t).kind == TypeKind::kUnsigned; }
constexpr bool IsInteger(DType t) { return IsSigned(t) || IsUnsigned(t); }
// Whether every value of the type is an i64: true for all integers except u64.
constexpr bool WidensToI64(DType t) { return IsInteger(t) && FactsOf(t).significand < 64; }

// The type that sums and products of `type` accumulate in: f32 for the two
// half-width floats, else the type itself.
constexpr DType AccumulatorType(DType type) { return FactsOf(type).accumulator; }
// Whether `type` is a float that is computed in a wider one.
constexpr bool IsNarrowFloat(DType type) { return AccumulatorType(type) != type; }

// Whether the product of two values of `narrow` is a value of `wide`, unless it is too large or too
// small for the type.
constexpr bool HoldsProducts(DType wide, DType narrow) {
  return IsFloat(wide) && IsFloat(narrow) &&
         FactsOf(wide).significand >= 2 * FactsOf(narrow).significand;
}

// The bits of one value, in the low bytes. An integer is stored extended to 64 bits
// by its own signedness, a bool as 0 or 1, so that equal values have equal Bits.
using Bits = uint64_t;

// A NaN keeps its bits here; Scalar's constructors and Canonical() make it the one NaN.
template <class T>
Bits ToBits(T v) {
  if constexpr (std::is_same_v<T, float>) {
    return absl::bit_cast<uint32_t>(v);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::bit_cast<uint64_t>(v);
  } else if constexpr (Half<T>) {
    return v.bits;
  } else if constexpr (std::is_same_v<T, bool>) {
    return v ? 1 : 0;
  } else {
    return static_cast<Bits>(static_cast<int64_t>(v));
  }
}

// REQUIRES: `b` holds a value of the type.
template <class T>
T FromBits(Bits b) {
  if constexpr (std::is_same_v<T, float>) {
    return absl::bit_cast<float>(static_cast<uint32_t>(b));
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::bit_cast<double>(b);
  } else if constexpr (Half<T>) {
    return T{static_cast<decltype(T::bits)>(b)};
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
#define ELEMENT(Enumerator, Type, ...) \
  case DType::k##Enumerator:           \
    return f(Type{});
#include "uops/element_types.inc"
#undef ELEMENT
  }
  __builtin_unreachable();
}

// One value of one type; see the top of this file.
struct Scalar {
  DType type = DType::kF32;
  Bits bits = 0;

  // Each of these three stores `v` cast to `type` as the notation's TYPE(v) casts (SEMANTICS 3),
  // whatever the two types are: a float is rounded once, to nearest even; to an integer, a float
  // truncates and saturates, NaN gives 0, and an integer wraps; a bool says whether v is not zero.
  // So Of(kI64, 2.5) is 2, Of(kU8, 300) is 44, and Of(kBool, 3) is true. Text that must fit is read
  // by ParseLiteral.
  template <class T>
  static Scalar Of(DType type, T v);
  static Scalar Float(DType type, double v);
  static Scalar Integer(DType type, int64_t v);
  static Scalar Zero(DType type) { return Scalar{type, 0}; }
  static Scalar I64(int64_t v) { return Scalar{DType::kI64, ToBits(v)}; }

  // False for types that are no floats.
  bool IsNaN() const;
  // The same value with the one NaN of its type.
  Scalar Canonical() const;
  // The value as a double; exact except for large i64 and u64.
  double ToDouble() const;
  // Whether the value, of an integer or bool type, is an int64_t: all are, except a u64 of 2^63
  // or more.
  bool FitsInt64() const { return !IsUnsigned(type) || static_cast<int64_t>(bits) >= 0; }
  // The value modulo 2^64; where it fits, the value. REQUIRES: an integer or bool type.
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
  if constexpr (Half<T>) {
    return type == DTypeOf<T>() ? Scalar{type, v.bits}.Canonical() : Float(type, v.Widen());
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

// The least and greatest value of a type; the infinities for floats.
Scalar Lowest(DType type);
Scalar Highest(DType type);

// The shortest literal of the notation that reads back as `value` where a value
// of its type is expected: "0.1", "-3", "inf", "true". Floats always carry a
// point, an exponent, or are inf or nan.
std::string LiteralText(const Scalar& value);

// Reads the text of a numeric literal ("12", "1.5e3", "inf", "nan", with an
// optional minus) as `type`, rounding once; nullopt where it does not fit.
absl::optional<Scalar> ParseLiteral(absl::string_view text, DType type);

// The same for a `$param`. A $param of an integer type is an index value, and so an i64
// (SEMANTICS 2).
absl::optional<Scalar> ParseParamLiteral(absl::string_view text, DType type);

}  // namespace nestor

#endif  // NESTOR_UOPS_DTYPE_H_
