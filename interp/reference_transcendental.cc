// Exact images come from the C library's long double functions at a few points:
//  - a monotone function takes its extremes at the ends, cosh and hypot on magnitudes;
//  - sine and cosine also at pi/2 + k pi or k pi, where one lies between; the tangent is
//    unbounded there;
//  - atan2(a, b) is monotone in each operand while both keep their signs;
//  - fmod(a, b) keeps a's sign and is below both magnitudes; it is a less one multiple of b
//    where a moves by less than b and the remainders do not fall;
//  - pow(a, b) = exp(b log a) is monotone in each operand on the four boxes into
//    which a = 1 and b = 0 cut a >= 0; a negative a gives the power of |a|, with
//    the sign that b's parity says, or both and NaN where b is not decided.
// Every such value is stepped outwards by the library's error, then by the row's ulps. One
// subtlety: the ulp doubles at a power of two, so y - k ulp(y) is least either at the image's low
// end or at the first power of two above it.
//
// Our own bodies are no help here: their error is proven for points, and interval
// arithmetic on their steps loses all, since they are built on cancellation.
#include "interp/reference_transcendental.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace nestor {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
constexpr long double kPi = 3.14159265358979323846264338327950288L;
constexpr int kLibraryUnits = 8;

// An interval that holds an exact value, or the values between two.
struct Range {
  long double low, high;
};

Range Hull(const Range& a, const Range& b) {
  return {LesserOf(a.low, b.low), GreaterOf(a.high, b.high)};
}

// The range around a value of the library, with the same sign.
Range Around(long double y) {
  Range r{StepDown(y, kLibraryUnits), StepUp(y, kLibraryUnits)};
  if (std::signbit(y)) r.high = LesserOf(r.high, -0.0L);
  else r.low = GreaterOf(r.low, 0.0L);
  return r;
}

// ---- The row's error

// The least of y - ulps * ulp(y) over y in [low, high], on y's side of zero.
long double WidenedLow(const FloatFormat& format, int ulps, long double low, long double high) {
  if (low == 0) return low;
  const auto at = [&](long double y) { return StepDown(y - ulps * format.Ulp(y)); };
  long double least = at(low);
  if (low < 0) return least;
  const long double power = std::ldexp(1.0L, std::ilogb(low) + 1);
  if (power <= high) least = std::min(least, at(power));
  return GreaterOf(least, 0.0L);
}

// The values that may be returned for exact values in `exact`: within `ulps` of them, and a value
// of the type.
Enclosure Widened(DType type, int ulps, const Range& exact) {
  if (exact.low == exact.high && std::isinf(exact.low))
    return FromEnds(type, exact.low, exact.high);
  const FloatFormat& format = FormatOf(type);
  const long double limit = std::ldexp(1.0L, format.max_exponent + 1);
  const long double l = std::clamp(exact.low, -limit, limit),
                    h = std::clamp(exact.high, -limit, limit);
  long double low = WidenedLow(format, ulps, l, h), high = -WidenedLow(format, ulps, -h, -l);
  // Results are values of the type, so the ends move inwards to the nearest.
  low = low <= -limit ? -kInfinity : std::ceil(low / format.Ulp(low)) * format.Ulp(low);
  high = high >= limit ? kInfinity : std::floor(high / format.Ulp(high)) * format.Ulp(high);
  return FromEnds(type, low, high);
}

// ---- Monotone functions

struct Monotone {
  long double (*f)(long double);
  long double zero;  // where it is exactly zero, or NaN
  // Outside of this domain the function is NaN; in it, it is infinite only where that is exact.
  long double least_argument = -kInfinity, greatest_argument = kInfinity;
  bool decreasing = false;
};

long double Sigmoid(long double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
long double Softplus(long double x) {
  return std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(x)));
}
long double Exp(long double x) { return std::exp(x); }
long double Log(long double x) { return std::log(x); }
long double Tanh(long double x) { return std::tanh(x); }
long double Erf(long double x) { return std::erf(x); }
long double Sin(long double x) { return std::sin(x); }
long double Cos(long double x) { return std::cos(x); }

long double Exp2(long double x) { return std::exp2(x); }
long double Expm1(long double x) { return std::expm1(x); }
long double Log2(long double x) { return std::log2(x); }
long double Log10(long double x) { return std::log10(x); }
long double Log1p(long double x) { return std::log1p(x); }
long double Tan(long double x) { return std::tan(x); }
long double Asin(long double x) { return std::asin(x); }
long double Acos(long double x) { return std::acos(x); }
long double Atan(long double x) { return std::atan(x); }
long double Sinh(long double x) { return std::sinh(x); }
long double Cosh(long double x) { return std::cosh(x); }
long double Asinh(long double x) { return std::asinh(x); }
long double Acosh(long double x) { return std::acosh(x); }
long double Atanh(long double x) { return std::atanh(x); }
long double Erfc(long double x) { return std::erfc(x); }

Range ValueAt(const Monotone& row, long double x) {
  const long double y = row.f(x);
  const bool at_end = x == row.least_argument || x == row.greatest_argument;
  const bool exact = x == row.zero || (std::isinf(y) && at_end);
  return exact ? Range{y, y} : Around(y);
}

// The values at both ends, which are the extremes; NaN where x leaves the domain.
Enclosure Image(const Monotone& row, DType type, int ulps, const Enclosure& x) {
  Enclosure image;
  const auto add = [&](long double low, long double high) {
    image.nan |= low < row.least_argument || high > row.greatest_argument;
    if (high < row.least_argument || low > row.greatest_argument) return;
    Range first = ValueAt(row, std::max(low, row.least_argument)),
          last = ValueAt(row, std::min(high, row.greatest_argument));
    if (row.decreasing) std::swap(first, last);
    image = Join(image, Widened(type, ulps, {first.low, last.high}));
  };
  if (x.HasFinite()) add(x.low, x.high);
  if (x.minus_infinity) add(-kInfinity, -kInfinity);
  if (x.plus_infinity) add(kInfinity, kInfinity);
  image.nan |= x.nan;
  return image;
}

// ---- Functions of magnitudes

// The enclosure of |x|, for functions that are even.
Enclosure Magnitudes(const Enclosure& x) {
  Enclosure m = x;
  m.plus_infinity |= x.minus_infinity;
  m.minus_infinity = false;
  if (!x.HasFinite()) return m;
  m.low = x.HasZero() ? 0 : std::min(std::fabs(x.low), std::fabs(x.high));
  m.high = std::max(std::fabs(x.low), std::fabs(x.high));
  return m;
}

struct Even {
  Monotone of_magnitude;
};

Enclosure Image(const Even& row, DType type, int ulps, const Enclosure& x) {
  return Image(row.of_magnitude, type, ulps, Magnitudes(x));
}

// For finite magnitudes; an infinite one wins even over NaN.
Enclosure Hypotenuse(DType type, int ulps, const Enclosure& a, const Enclosure& b) {
  Enclosure image;
  image.plus_infinity = (a.plus_infinity && (b.HasNumber() || b.nan)) ||
                        (b.plus_infinity && (a.HasNumber() || a.nan));
  image.nan = (a.nan && (b.HasFinite() || b.nan)) || (b.nan && (a.HasFinite() || a.nan));
  if (!a.HasFinite() || !b.HasFinite()) return image;
  const auto at = [](long double x, long double y) {
    const long double h = std::hypot(x, y);
    return h == 0 ? Range{h, h} : Around(h);
  };
  return Join(image, Widened(type, ulps, {at(a.low, b.low).low, at(a.high, b.high).high}));
}

// ---- Sine, cosine and tangent

struct Wave {
  long double (*f)(long double);
  long double zero;     // where it is exactly zero, or NaN
  long double maximum;  // one of the places of its maximum
};

// Whether x + 2 k pi may lie in [low, high] for some integer k.
bool MayHold(long double low, long double high, long double x) {
  const long double first = (low - x) / (2 * kPi), last = (high - x) / (2 * kPi);
  const long double slack = std::ldexp(std::fabs(first) + std::fabs(last) + 2, -60);
  return std::floor(last + slack) >= std::ceil(first - slack);
}

// The hull of the values at the ends, and of 1 or -1 if a maximum or a minimum may lie between
// them.
Range RangeOf(const Wave& row, long double low, long double high) {
  const auto at = [&](long double x) {
    return x == row.zero ? Range{row.f(x), row.f(x)} : Around(row.f(x));
  };
  Range r = at(low);
  if (low == high) return Hull(r, at(high));
  // Beyond 2^40, kPi is not precise enough to tell one period from the next.
  if (high - low > 6 || std::max(std::fabs(low), std::fabs(high)) > 0x1p40L) return {-1, 1};
  r = Hull(r, at(high));
  if (MayHold(low, high, row.maximum)) r.high = 1;
  if (MayHold(low, high, row.maximum + kPi)) r.low = -1;
  return r;
}

Enclosure Image(const Wave& row, DType type, int ulps, const Enclosure& x) {
  Enclosure image;
  if (x.HasFinite()) {
    const Range r = RangeOf(row, x.low, x.high);
    image = Widened(type, ulps, {std::max(r.low, -1.0L), std::min(r.high, 1.0L)});
  }
  image.nan = x.nan || x.plus_infinity || x.minus_infinity;
  return image;
}

struct Tangent {};

// Rises between two poles; from an interval that may hold a pole comes any number.
Enclosure Image(const Tangent&, DType type, int ulps, const Enclosure& x) {
  Enclosure image;
  if (x.HasFinite()) {
    const auto at = [](long double v) { return v == 0 ? Range{v, v} : Around(Tan(v)); };
    const bool far = x.high - x.low > 3 || std::max(std::fabs(x.low), std::fabs(x.high)) > 0x1p40L;
    const bool pole = far || MayHold(x.low, x.high, kPi / 2) || MayHold(x.low, x.high, -kPi / 2);
    const bool whole = x.low != x.high && pole;
    image = Widened(type, ulps,
                    whole ? Range{-kInfinity, kInfinity} : Range{at(x.low).low, at(x.high).high});
  }
  image.nan = x.nan || x.plus_infinity || x.minus_infinity;
  return image;
}

// ---- Powers

// The members of a set as ranges of one sign, infinities being ends of their own;
// NaN as {NaN, NaN}.
std::vector<Range> Cut(const Enclosure& e, long double at) {
  std::vector<Range> ranges;
  if (e.nan) ranges.push_back({NAN, NAN});
  if (e.minus_infinity) ranges.push_back({-kInfinity, -kInfinity});
  if (e.plus_infinity) ranges.push_back({kInfinity, kInfinity});
  if (!e.HasFinite()) return ranges;
  if (std::signbit(e.low)) ranges.push_back({e.low, LesserOf(e.high, -0.0L)});
  if (std::signbit(e.high)) return ranges;
  const long double low = GreaterOf(e.low, 0.0L);
  if (low < at) ranges.push_back({low, std::min(e.high, at)});
  if (e.high >= at) ranges.push_back({std::max(low, at), e.high});
  return ranges;
}

// The exact value, NaN included. It is exactly known at zeros, infinities and 1.
Range PowerAt(long double a, long double b) {
  const long double y = std::pow(a, b);
  const bool known = a == 0 || a == 1 || b == 0 || std::isinf(a) || std::isinf(b) || std::isnan(y);
  return known ? Range{y, y} : Around(y);
}

// REQUIRES: a and b lie on one side of 1 and 0, and of zero.
Enclosure PowerOnBox(DType type, int ulps, const Range& a, const Range& b) {
  if ((a.low == 1 && a.high == 1) || (b.low == 0 && b.high == 0)) return FromEnds(type, 1, 1);
  Range exact{1, 0};
  Enclosure image;
  for (long double x : {a.low, a.high}) {
    for (long double y : {b.low, b.high}) {
      const Range corner = PowerAt(x, y);
      if (std::isnan(corner.low)) image.nan = true;
      else exact = exact.low > exact.high ? corner : Hull(exact, corner);
    }
  }
  return exact.low > exact.high ? image : Join(image, Widened(type, ulps, exact));
}

// An even or odd integer exponent decides the sign; one that is not decided may give both signs, or
// NaN.
Enclosure PowerOfNegative(DType type, int ulps, const Range& a, const Range& b) {
  if (a.low == a.high && b.low == b.high) return PowerOnBox(type, ulps, a, b);
  const Range magnitude{-a.high, -a.low};
  Enclosure image;
  for (const auto& [low, high] : {Range{magnitude.low, std::min(magnitude.high, 1.0L)},
                                  Range{std::max(magnitude.low, 1.0L), magnitude.high}}) {
    if (low <= high) image = Join(image, PowerOnBox(type, ulps, {low, high}, b));
  }
  const bool decided = b.low == b.high && !std::isinf(b.low) && std::trunc(b.low) == b.low;
  if (decided) return std::fmod(b.low, 2.0L) == 0 ? image : Negated(image);
  image = Join(image, Negated(image));
  image.nan = true;
  return image;
}

// Cut at 1 and at 0, pow is monotone in each operand on each box, so its corners bound it.
Enclosure Power(DType type, int ulps, const Enclosure& a, const Enclosure& b) {
  Enclosure image;
  for (const Range& x : Cut(a, 1)) {
    for (const Range& y : Cut(b, 0)) {
      const bool negative = std::signbit(x.low) && !std::isnan(x.low);
      image =
          Join(image, negative ? PowerOfNegative(type, ulps, x, y) : PowerOnBox(type, ulps, x, y));
    }
  }
  return image;
}

// ---- Angles

// REQUIRES: a and b lie on one side of zero.
Enclosure AngleOnBox(DType type, int ulps, const Range& a, const Range& b) {
  const auto at = [](long double y, long double x) {
    const long double angle = std::atan2(y, x);
    return angle == 0 ? Range{angle, angle} : Around(angle);
  };
  Enclosure image;
  if (std::isnan(a.low) || std::isnan(b.low)) {
    image.nan = true;
    return image;
  }
  const Range low = Hull(at(a.low, b.low), at(a.low, b.high)),
              high = Hull(at(a.high, b.low), at(a.high, b.high));
  return Widened(type, ulps, Hull(low, high));
}

Enclosure Angle(DType type, int ulps, const Enclosure& a, const Enclosure& b) {
  Enclosure image;
  for (const Range& y : Cut(a, 0)) {
    for (const Range& x : Cut(b, 0)) image = Join(image, AngleOnBox(type, ulps, y, x));
  }
  return image;
}

// ---- Remainders

// For magnitudes, where b is not 0; exact.
Range Remainders(const Range& a, const Range& b) {
  if (a.high < b.low) return a;
  const Range any{0, std::min(a.high, b.high)};
  if (b.low != b.high || !(AddUp(a.high, -a.low) < b.low)) return any;
  const Range r{std::fmod(a.low, b.low), std::fmod(a.high, b.low)};
  return r.low <= r.high ? r : any;
}

// By magnitudes, with a's sign; an infinite divisor leaves a as it is, a zero gives NaN.
Enclosure Remainder(DType type, const Enclosure& a, const Enclosure& b) {
  Enclosure image;
  const Enclosure divisors = Magnitudes(b);
  image.nan = a.HasNonFinite() || b.nan || (b.HasFinite() && b.HasZero());
  for (const Range& x : Cut(a, 0)) {
    if (!std::isfinite(x.low)) continue;
    const bool negative = std::signbit(x.low);
    const Range magnitude = negative ? Range{-x.high, -x.low} : x;
    const auto add = [&](const Range& r) {
      const Enclosure e = FromEnds(type, std::fabs(r.low), std::fabs(r.high));
      image = Join(image, negative ? Negated(e) : e);
    };
    if (divisors.plus_infinity) add(magnitude);
    if (divisors.HasFinite() && divisors.high > 0)
      add(Remainders(magnitude, {divisors.low, divisors.high}));
  }
  return image;
}

// ---- The rows

constexpr long double kNowhere = std::numeric_limits<long double>::quiet_NaN();
constexpr Monotone kExp{Exp, -kInfinity};
constexpr Monotone kExp2{Exp2, -kInfinity};
constexpr Monotone kExpm1{Expm1, 0};
constexpr Monotone kLog{Log, 1, 0};
constexpr Monotone kLog2{Log2, 1, 0};
constexpr Monotone kLog10{Log10, 1, 0};
constexpr Monotone kLog1p{Log1p, 0, -1};
constexpr Monotone kAsin{Asin, 0, -1, 1};
constexpr Monotone kAcos{Acos, 1, -1, 1, true};
constexpr Monotone kAtan{Atan, 0};
constexpr Monotone kSinh{Sinh, 0};
constexpr Even kCosh{{Cosh, kNowhere}};
constexpr Monotone kAsinh{Asinh, 0};
constexpr Monotone kAcosh{Acosh, 1, 1};
constexpr Monotone kAtanh{Atanh, 0, -1, 1};
constexpr Monotone kTanh{Tanh, 0};
constexpr Monotone kSigmoid{Sigmoid, -kInfinity};
constexpr Monotone kErf{Erf, 0};
constexpr Monotone kErfc{Erfc, kInfinity, -kInfinity, kInfinity, true};
constexpr Monotone kSoftplus{Softplus, -kInfinity};
constexpr Wave kSin{Sin, 0, kPi / 2};
constexpr Wave kCos{Cos, kNowhere, 0};
constexpr Tangent kTan{};

// The image of a function of two operands.
struct Binary {
  Enclosure (*image)(DType type, int ulps, const Enclosure& a, const Enclosure& b);
};
constexpr Binary kPow{Power};
constexpr Binary kAtan2{Angle};
constexpr Binary kHypot{[](DType type, int ulps, const Enclosure& a, const Enclosure& b) {
  return Hypotenuse(type, ulps, Magnitudes(a), Magnitudes(b));
}};
constexpr Binary kFmod{
    [](DType type, int, const Enclosure& a, const Enclosure& b) { return Remainder(type, a, b); }};

template <class Row>
Enclosure ImageOf(const Row& row, DType type, int ulps, absl::Span<const Enclosure> args) {
  if constexpr (std::is_same_v<Row, Binary>) return row.image(type, ulps, args[0], args[1]);
  else return Image(row, type, ulps, args[0]);
}

}  // namespace

// A row of scalar_ops.inc without an exact image above does not compile.
Enclosure TranscendentalImage(ScalarOp op, DType type, absl::Span<const Enclosure> args) {
  const int ulps = type == DType::kF64 ? Row(op).ulp64 : Row(op).ulp32;
  switch (op) {
#define PRIMITIVE(...)
#define COMPOSED(...)
#define MIXED(...)
#define TRANSCENDENTAL(E, ...) \
  case ScalarOp::k##E:         \
    return ImageOf(k##E, type, ulps, args);
#include "uops/scalar_ops.inc"
#undef PRIMITIVE
#undef COMPOSED
#undef MIXED
#undef TRANSCENDENTAL
    default: return Everything(type);
  }
}

}  // namespace nestor
