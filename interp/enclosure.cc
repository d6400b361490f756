// Interval arithmetic (Moore, "Interval Analysis", 1966) on long doubles, whose ends must lie
// outside of the exact result but hardly so.
//
// Ends are computed to nearest and stepped outwards only where the result was not exact: the
// rounding errors of long double sums and products are themselves long doubles, found by Knuth's
// two-sum and by Dekker's product over halves (Higham, "Accuracy and Stability of Numerical
// Algorithms", 2nd ed., 2002, ch. 4). Switching the rounding mode instead would be at the mercy of
// a compiler that moves arithmetic across the switch. So 0.5 + 0.25 stays a point, and the product
// of two f32 always does.
#include "interp/enclosure.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

// Sum and product with their exact rounding errors.
struct Inexact {
  long double value;
  long double error;  // exact result - value, or just its sign
};

Inexact TwoSum(long double a, long double b) {
  const long double s = a + b;
  const long double t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

// Veltkamp's split into two halves of 32 bits.
void Split(long double a, long double& high, long double& low) {
  const long double c = 4294967297.0L * a;  // 2^32 + 1
  high = c - (c - a);
  low = a - high;
}

// Whether Dekker's product of a and b neither overflows nor loses bits below.
bool IsOrdinary(long double a, long double b, long double product) {
  const long double huge = 0x1p16300L, tiny = 0x1p-16200L;
  return std::fabs(a) < huge && std::fabs(b) < huge && std::fabs(product) < huge &&
         std::fabs(product) > tiny;
}

// REQUIRES: IsOrdinary(a, b, a * b).
Inexact TwoProduct(long double a, long double b) {
  const long double p = a * b;
  long double a1, a2, b1, b2;
  Split(a, a1, a2);
  Split(b, b1, b2);
  return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

long double Outward(const Inexact& r, long double towards) {
  const bool step = towards < 0 ? r.error < 0 : r.error > 0;
  return step ? std::nextafter(r.value, towards) : r.value;
}

// 0.5 + 0.25 is exact: 0.75;   1 + 2^-80 rounds to 1, with the error 2^-80: upwards it is 1 + 2^-63
long double Add(long double a, long double b, long double towards) {
  const Inexact sum = TwoSum(a, b);
  if (!std::isfinite(sum.value)) return std::nextafter(sum.value, towards);
  return Outward(sum, towards);
}

long double Multiply(long double a, long double b, long double towards) {
  const long double p = a * b;
  if (a == 0 || b == 0) return p;
  // Dekker's error is not exact there; one step is always enough for a product rounded to nearest.
  if (!IsOrdinary(a, b, p)) return std::nextafter(p, towards);
  return Outward(TwoProduct(a, b), towards);
}

std::string NumberText(long double x) { return absl::StrFormat("%.21Lg", x); }

}  // namespace

// ---- Sets

long double Enclosure::Least() const {
  if (minus_infinity) return -kInfinity;
  return HasFinite() ? low : kInfinity;
}

long double Enclosure::Greatest() const {
  if (plus_infinity) return kInfinity;
  return HasFinite() ? high : -kInfinity;
}

// -0 is below +0, as the ends of sets tell zeros apart.
bool Below(long double a, long double b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

Enclosure Point(const Scalar& value) {
  Enclosure e;
  e.nan = value.IsNaN();
  if (e.nan) return e;
  const long double x = ToLongDouble(value);
  return FromEnds(value.type, x, x);
}

// An infinite end says that the infinity is a member and that nothing bounds the finite members.
Enclosure FromEnds(DType type, long double low, long double high) {
  Enclosure e;
  e.plus_infinity = high == kInfinity;
  e.minus_infinity = low == -kInfinity;
  if (low == kInfinity || high == -kInfinity) return e;
  e.low = e.minus_infinity ? -FormatOf(type).Largest() : low;
  e.high = e.plus_infinity ? FormatOf(type).Largest() : high;
  return e;
}

Enclosure Everything(DType type) {
  Enclosure e = FromEnds(type, ToLongDouble(Lowest(type)), ToLongDouble(Highest(type)));
  e.nan = IsFloat(type);
  return e;
}

// The least enclosure of the members of both.
Enclosure Join(const Enclosure& a, const Enclosure& b) {
  Enclosure e = a.HasFinite() ? a : b;
  if (a.HasFinite() && b.HasFinite()) {
    e.low = LesserOf(a.low, b.low);
    e.high = GreaterOf(a.high, b.high);
  }
  e.nan = a.nan || b.nan;
  e.plus_infinity = a.plus_infinity || b.plus_infinity;
  e.minus_infinity = a.minus_infinity || b.minus_infinity;
  e.may_overflow = a.may_overflow || b.may_overflow;
  return e;
}

Enclosure Negated(const Enclosure& e) {
  Enclosure negated = e;
  if (e.HasFinite()) negated.low = -e.high, negated.high = -e.low;
  std::swap(negated.plus_infinity, negated.minus_infinity);
  return negated;
}

bool Encloses(const Enclosure& e, const Scalar& value) {
  if (value.IsNaN()) return e.nan;
  const long double x = ToLongDouble(value);
  if (std::isinf(x)) return x > 0 ? e.plus_infinity : e.minus_infinity;
  return e.HasFinite() && !Below(x, e.low) && !Below(e.high, x);
}

// The member if there is exactly one: NaN, an infinity, or a number that the type can hold.
absl::optional<Scalar> OnlyMember(DType type, const Enclosure& e) {
  const int kinds = e.HasFinite() + e.nan + e.plus_infinity + e.minus_infinity;
  if (kinds != 1) return absl::nullopt;
  if (e.nan) return Scalar::Float(type, std::numeric_limits<double>::quiet_NaN());
  const long double x = e.Least();
  if (Below(x, e.Greatest())) return absl::nullopt;
  if (IsFloat(type) && FormatOf(type).Nearest(x) != x) return absl::nullopt;
  return FromLongDouble(type, x);
}

std::string ToString(const Enclosure& e) {
  std::string text;
  const auto add = [&](const std::string& piece) {
    absl::StrAppend(&text, text.empty() ? "" : " or ", piece);
  };
  if (e.HasFinite() && !Below(e.low, e.high)) add(NumberText(e.low));
  else if (e.HasFinite()) add(absl::StrCat("[", NumberText(e.low), ", ", NumberText(e.high), "]"));
  if (e.plus_infinity) add("inf");
  if (e.minus_infinity) add("-inf");
  if (e.nan) add("nan");
  return text.empty() ? "nothing" : text;
}

std::string NonFiniteText(const Enclosure& e, const Scalar& value) {
  std::string text;
  const bool finite = !value.IsNaN() && std::isfinite(ToLongDouble(value));
  if (!finite && !Encloses(e, value)) {
    absl::StrAppend(&text, "; ", LiteralText(value),
                    " is not possible here, in any order of sums and products");
  }
  if (!e.HasNonFinite()) return text;
  Enclosure others = e;
  others.low = 1, others.high = 0;
  absl::StrAppend(&text, "; ", ToString(others), " is possible here",
                  e.may_overflow
                      ? ": a sum or product may overflow half-way, in some order of its terms"
                      : ", but no sum or product overflows in another order");
  return text;
}

// ---- Float types

long double FloatFormat::UnitRoundoff() const { return std::ldexp(1.0L, -precision); }
long double FloatFormat::LeastNormal() const { return std::ldexp(1.0L, min_exponent); }
long double FloatFormat::LeastSubnormal() const {
  return std::ldexp(1.0L, min_exponent + 1 - precision);
}
long double FloatFormat::Largest() const {
  return std::ldexp(2 - std::ldexp(1.0L, 1 - precision), max_exponent);
}

long double FloatFormat::OverflowThreshold() const {
  return Largest() + std::ldexp(1.0L, max_exponent - precision);
}

long double FloatFormat::Ulp(long double x) const {
  const int exponent = x == 0 ? min_exponent : std::isinf(x) ? max_exponent : std::ilogb(x);
  return std::ldexp(1.0L, std::min(std::max(exponent, min_exponent), max_exponent) + 1 - precision);
}

long double FloatFormat::Nearest(long double x) const {
  if (precision == 24) return static_cast<float>(x);
  if (precision == 53) return static_cast<double>(x);
  if (x == 0 || std::isinf(x)) return x;
  // Beyond the largest exponent Ulp does not grow, and the rounded value is out of range.
  const long double ulp = Ulp(x);
  const long double r = std::fabs(x) > 2 * Largest() ? x : std::nearbyint(x / ulp) * ulp;
  return std::fabs(r) > Largest() ? std::copysign(kInfinity, x) : std::copysign(r, x);
}

FloatFormat FormatOf(DType type) {
  NESTOR_CHECK(IsFloat(type), std::string(Name(type)));
  const TypeFacts& facts = FactsOf(type);
  return {facts.significand, facts.least_exponent, 1 - facts.least_exponent};
}

// Rounding is monotone, so the ends' roundings are the ends of the set of roundings; either way of
// rounding a 16-bit float may give the lower one.
Enclosure Rounded(DType type, const Enclosure& e) {
  if (!IsFloat(type) || !e.HasFinite()) return e;
  const FloatFormat format = FormatOf(type);
  long double low = format.Nearest(e.low), high = format.Nearest(e.high);
  if (AccumulatorType(type) != type) {
    const FloatFormat wide = FormatOf(AccumulatorType(type));
    low = LesserOf(low, format.Nearest(wide.Nearest(e.low)));
    high = GreaterOf(high, format.Nearest(wide.Nearest(e.high)));
  }
  Enclosure rounded = FromEnds(type, low, high);
  rounded.nan = e.nan;
  rounded.plus_infinity |= e.plus_infinity;
  rounded.minus_infinity |= e.minus_infinity;
  rounded.may_overflow = e.may_overflow;
  return rounded;
}

long double ToLongDouble(const Scalar& value) {
  if (IsFloat(value.type)) return value.ToDouble();
  return IsUnsigned(value.type) ? static_cast<long double>(value.bits)
                                : static_cast<long double>(value.ToInt());
}

Scalar FromLongDouble(DType type, long double x) {
  if (IsFloat(type)) return Scalar::Float(type, static_cast<double>(x));
  return Scalar{
      type, IsUnsigned(type) ? ToBits(static_cast<uint64_t>(x)) : ToBits(static_cast<int64_t>(x))};
}

// ---- Outward arithmetic

long double AddDown(long double a, long double b) { return Add(a, b, -kInfinity); }
long double AddUp(long double a, long double b) { return Add(a, b, kInfinity); }
long double MultiplyDown(long double a, long double b) { return Multiply(a, b, -kInfinity); }
long double MultiplyUp(long double a, long double b) { return Multiply(a, b, kInfinity); }

long double StepDown(long double x, int units) {
  for (int i = 0; i < units; ++i) x = std::nextafter(x, -kInfinity);
  return x;
}

long double StepUp(long double x, int units) {
  for (int i = 0; i < units; ++i) x = std::nextafter(x, kInfinity);
  return x;
}

Enclosure ExactProduct(const Enclosure& a, const Enclosure& b) {
  Enclosure e;
  if (!a.HasFinite() || !b.HasFinite()) return e;
  e.low = MultiplyDown(a.low, b.low);
  e.high = MultiplyUp(a.low, b.low);
  for (const auto& [x, y] :
       {std::pair(a.low, b.high), std::pair(a.high, b.low), std::pair(a.high, b.high)}) {
    e.low = LesserOf(e.low, MultiplyDown(x, y));
    e.high = GreaterOf(e.high, MultiplyUp(x, y));
  }
  return e;
}

}  // namespace nestor
