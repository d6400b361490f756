// The reference of each primitive scalar op, as C++ on one value: SEMANTICS 3 in
// code. Integers wrap, `/` and `%` by zero give 0, max and min are those of
// IEEE 754-2019; each float operation rounds once. Generic over the element
// types; the 16-bit floats arrive here widened to float.
#ifndef NESTOR_UOPS_ARITHMETIC_H_
#define NESTOR_UOPS_ARITHMETIC_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace nestor::arith {

// Arithmetic modulo 2^n, free of C++'s undefined overflow.
template <class T>
using Wide = uint64_t;

template <class T>
T Add(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(Wide<T>(a) + Wide<T>(b));
  else return a + b;
}
template <class T>
T Sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(Wide<T>(a) - Wide<T>(b));
  else return a - b;
}
template <class T>
T Mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(Wide<T>(a) * Wide<T>(b));
  else return a * b;
}
template <class T>
T Neg(T a) {
  if constexpr (std::is_integral_v<T>) return Sub(T{0}, a);
  else return -a;
}
template <class T>
T Abs(T a) {
  if constexpr (std::is_integral_v<T>) return a < T{0} ? Neg(a) : a;
  else return std::fabs(a);
}
template <class T>
T Sign(T a) {
  // A zero keeps its sign, a NaN stays NaN.
  return a > T{0} ? T{1} : a < T{0} ? static_cast<T>(-1) : a;
}

// The quotient rounded down; 0 for b == 0. The least number over -1 wraps to itself.
template <class T>
T FloorDiv(T a, T b) {
  if (b == T{0}) return T{0};
  if constexpr (std::is_signed_v<T>) {
    if (b == T{-1}) return Neg(a);
    const T q = static_cast<T>(a / b);
    return (a % b != 0 && (a < 0) != (b < 0)) ? static_cast<T>(q - 1) : q;
  } else {
    return static_cast<T>(a / b);
  }
}
// a - b * FloorDiv(a, b): it has b's sign; 0 for b == 0.
template <class T>
T FloorMod(T a, T b) {
  if (b == T{0}) return T{0};
  return Sub(a, Mul(b, FloorDiv(a, b)));
}

template <class T>
bool Eq(T a, T b) {
  return a == b;
}
// IEEE 754-2019 maximum: NaN if any operand is, and +0 above -0. Min likewise.
template <class T>
T Max(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a > b ? a : b;
}
template <class T>
T Min(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

// a * 2^floor(n), rounded once.
template <class T>
T Ldexp(T a, T n) {
  if (a != a || n != n) return std::numeric_limits<T>::quiet_NaN();
  if (std::isinf(n)) return a * std::max(n, T{0});
  constexpr T kBeyondAll = 5000;
  return std::ldexp(a, static_cast<int>(std::floor(std::clamp(n, -kBeyondAll, kBeyondAll))));
}

template <class T>
T Not(T a) {
  if constexpr (std::is_same_v<T, bool>) return !a;
  else return static_cast<T>(~a);
}
template <class T>
T And(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
T Or(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
T Xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
// Whether nothing is left of the operand's bits but its sign: counts outside of [0, bits).
template <class T>
bool ShiftIsWide(T n) {
  return n < T{0} || n >= static_cast<T>(sizeof(T) * 8);
}
// Zeros come in; Shr brings in the sign of a signed number. A wide shift
// leaves the same as one by all bits.
template <class T>
T Shl(T a, T n) {
  return ShiftIsWide(n) ? T{0} : static_cast<T>(Wide<T>(a) << n);
}
template <class T>
T Shr(T a, T n) {
  if (ShiftIsWide(n)) return a < T{0} ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> n);
}

// Counts only the bits that the type has.
template <class T>
T PopCount(T a) {
  return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
}
template <class T>
T LeadingZeros(T a) {
  return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a)));
}

// c + the product of the low halves + the product of the high halves, each a signed number; the
// sums wrap.
template <class T>
T DotHalves(T a, T b, T c) {
  constexpr int kHalf = 4 * sizeof(T);
  const auto low = [](T v) { return static_cast<T>(static_cast<T>(Wide<T>(v) << kHalf) >> kHalf); };
  const auto high = [](T v) { return static_cast<T>(v >> kHalf); };
  return Add(c, Add(Mul(low(a), low(b)), Mul(high(a), high(b))));
}

// Float to integer truncates and saturates, NaN gives 0; integer to integer
// wraps; anything to bool is "is not zero".
template <class To, class From>
To Cast(From a) {
  if constexpr (std::is_same_v<To, bool>) {
    return a != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (a != a) return 0;
    // The first value past the range is a power of two, so exact in From.
    const From end = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    if (a >= end) return std::numeric_limits<To>::max();
    if (a <= (std::is_signed_v<To> ? -end : From{0})) return std::numeric_limits<To>::min();
    return static_cast<To>(a);
  } else {
    return static_cast<To>(a);
  }
}

}  // namespace nestor::arith

#endif  // NESTOR_UOPS_ARITHMETIC_H_
