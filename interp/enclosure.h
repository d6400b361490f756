// Enclosures: sets that hold every value which an allowed evaluation can give.
//
// The finite part is an interval of `long double` (x87: 64 bits of significand,
// exponents to 2^16383), ends included; infinities and NaN are members of their
// own. One representation serves every element type:
//  - soundness: results computed on ends are rounded outwards, so the interval
//    holds the exact image;
//  - tightness: 64 bits are 11 more than f64's 53, so an outward step costs 1/1024
//    of f64's half ulp, and far less for the others; sums and products of f32 and
//    narrower values are mostly exact;
//  - range: no product of two f64 overflows or underflows there;
//  - integers: every int64 and uint64 is a long double.
// The ends order -0 below +0, so an interval also says which zeros it holds:
// [-0, -0] is -0 alone, [+0, 1] does not hold -0. Integers have +0 only.
#ifndef NESTOR_INTERP_ENCLOSURE_H_
#define NESTOR_INTERP_ENCLOSURE_H_

#include <limits>
#include <string>

#include "absl/types/optional.h"
#include "uops/dtype.h"

namespace nestor {

static_assert(std::numeric_limits<long double>::digits == 64,
              "enclosures need the x87 long double");

struct Enclosure {
  // The finite members; none where low > high.
  long double low = 1, high = 0;
  bool nan = false, plus_infinity = false, minus_infinity = false;
  // The origin, for messages: a sum or product of many terms that led to this value may overflow
  // in some order.
  bool may_overflow = false;

  // Which members there are. A finite set may be empty: then `low` is above `high`.
  bool HasFinite() const { return low <= high; }
  bool HasNumber() const { return HasFinite() || plus_infinity || minus_infinity; }
  bool HasNonFinite() const { return nan || plus_infinity || minus_infinity; }
  bool HasZero() const { return low <= 0 && high >= 0; }
  // The least and greatest member but NaN. REQUIRES: HasNumber().
  long double Least() const;
  long double Greatest() const;
};

// a below b where -0 is below +0.
bool Below(long double a, long double b);
inline long double LesserOf(long double a, long double b) { return Below(b, a) ? b : a; }
inline long double GreaterOf(long double a, long double b) { return Below(a, b) ? b : a; }

// The set of one member.
Enclosure Point(const Scalar& value);
// All of [low, high]. An infinite end stands for the infinity and, where the other end is finite,
// for the finite values of `type` up to it.
Enclosure FromEnds(DType type, long double low, long double high);
// Every value of the type.
Enclosure Everything(DType type);
// The members of both; and the members with their signs changed.
Enclosure Join(const Enclosure& a, const Enclosure& b);
Enclosure Negated(const Enclosure& e);

// Whether `value` may be the answer.
bool Encloses(const Enclosure& e, const Scalar& value);
// The only member, where there is one and it is a value of `type`.
absl::optional<Scalar> OnlyMember(DType type, const Enclosure& e);

// "[0.1, 0.25] or nan"; a single value alone.
std::string ToString(const Enclosure& e);
// Where `value` or a member is inf or NaN, says whether inf and NaN are possible, and where they
// come from; else empty.
std::string NonFiniteText(const Enclosure& e, const Scalar& value);

// ---- Float types

struct FloatFormat {
  int precision;                   // bits of the significand, p
  int min_exponent, max_exponent;  // of normal numbers: 1.m * 2^e

  long double UnitRoundoff() const;  // 2^-p
  long double LeastNormal() const;
  long double LeastSubnormal() const;
  long double Largest() const;  // finite
  // The least magnitude that rounds to infinity: half a unit in the last place beyond Largest.
  long double OverflowThreshold() const;
  // The unit in the last place at x, with the exponent clamped to that of normal numbers.
  long double Ulp(long double x) const;
  // To nearest, ties to even; overflows to infinity.
  long double Nearest(long double x) const;
};
// REQUIRES: IsFloat(type).
FloatFormat FormatOf(DType type);

// The set of e's members rounded to `type`, in one step or, for a 16-bit float, by way of f32. An
// integer's enclosure is itself.
Enclosure Rounded(DType type, const Enclosure& e);

// The value as the long double that it is. REQUIRES: a number, not NaN.
long double ToLongDouble(const Scalar& value);
// REQUIRES: x is a value of `type`.
Scalar FromLongDouble(DType type, long double x);

// ---- Long double arithmetic, rounded outwards. Operands are finite; a result
// beyond the range is infinite or the largest finite, whichever lies outwards.

long double AddDown(long double a, long double b);
long double AddUp(long double a, long double b);
long double MultiplyDown(long double a, long double b);
long double MultiplyUp(long double a, long double b);
// `units` times the spacing of long doubles away from x.
long double StepDown(long double x, int units = 1);
long double StepUp(long double x, int units = 1);
// The products of finite members.
Enclosure ExactProduct(const Enclosure& a, const Enclosure& b);

}  // namespace nestor

#endif  // NESTOR_INTERP_ENCLOSURE_H_
