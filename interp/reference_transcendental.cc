// Exact images come from the C library's long double functions at a few points:
//  - a monotone function takes its extremes at the ends;
//  - sine and cosine also at pi/2 + k pi or k pi, where one lies between;
//  - pow(a, b) = exp(b log a) is monotone in each operand on the four boxes into
//    which a = 1 and b = 0 cut a >= 0; a negative a gives the power of |a|, with
//    the sign that b's parity says, or both and NaN where b is not decided.
// Every such value is stepped outwards by what the library may be off, then by the
// row's ulps. One subtlety: the ulp doubles at a power of two, so y - k ulp(y) is
// least either at the image's low end or at the first power of two above it.
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

Range Hull(const Range& a, const Range& b) { return {LesserOf(a.low, b.low), GreaterOf(a.high, b.high)}; }

// Around a value that the library gave, on its own side of zero.
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

Enclosure Widened(DType type, int ulps, const Range& exact) {
  if (exact.low == exact.high && std::isinf(exact.low)) return FromEnds(type, exact.low, exact.high);
  const FloatFormat& format = FormatOf(type);
  const long double limit = std::ldexp(1.0L, format.max_exponent + 1);
  const long double l = std::clamp(exact.low, -limit, limit), h = std::clamp(exact.high, -limit, limit);
  long double low = WidenedLow(format, ulps, l, h), high = -WidenedLow(format, ulps, -h, -l);
  // Results are values of the type, so the ends move inwards to the nearest.
  low = low <= -limit ? -kInfinity : std::ceil(low / format.Ulp(low)) * format.Ulp(low);
  high = high >= limit ? kInfinity : std::floor(high / format.Ulp(high)) * format.Ulp(high);
  return FromEnds(type, low, high);
}

// ---- Monotone functions

struct Monotone {
  long double (*f)(long double);  // increasing
  long double zero;               // where it is exactly zero
  long double least_argument;     // below, it is NaN
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

Range ValueAt(const Monotone& row, long double x) {
  const long double y = row.f(x);
  const bool exact = x == row.zero || (std::isinf(y) && (std::isinf(x) || x == 0));
  return exact ? Range{y, y} : Around(y);
}

Enclosure Image(const Monotone& row, DType type, int ulps, const Enclosure& x) {
  Enclosure image;
  const auto add = [&](long double low, long double high) {
    if (low < row.least_argument) image.nan = true;
    if (high < row.least_argument) return;
    low = std::max(low, row.least_argument);
    const Range ends{ValueAt(row, low).low, ValueAt(row, high).high};
    image = Join(image, Widened(type, ulps, ends));
  };
  if (x.HasFinite()) add(x.low, x.high);
  if (x.minus_infinity) add(-kInfinity, -kInfinity);
  if (x.plus_infinity) add(kInfinity, kInfinity);
  image.nan |= x.nan;
  return image;
}

// ---- Sine and cosine

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

Range RangeOf(const Wave& row, long double low, long double high) {
  const auto at = [&](long double x) { return x == row.zero ? Range{row.f(x), row.f(x)} : Around(row.f(x)); };
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

Enclosure Power(DType type, int ulps, const Enclosure& a, const Enclosure& b) {
  Enclosure image;
  for (const Range& x : Cut(a, 1)) {
    for (const Range& y : Cut(b, 0)) {
      const bool negative = std::signbit(x.low) && !std::isnan(x.low);
      image = Join(image, negative ? PowerOfNegative(type, ulps, x, y) : PowerOnBox(type, ulps, x, y));
    }
  }
  return image;
}

// ---- The rows

constexpr Monotone kExp{Exp, -kInfinity, -kInfinity};
constexpr Monotone kLog{Log, 1, 0};
constexpr Monotone kTanh{Tanh, 0, -kInfinity};
constexpr Monotone kSigmoid{Sigmoid, -kInfinity, -kInfinity};
constexpr Monotone kErf{Erf, 0, -kInfinity};
constexpr Monotone kSoftplus{Softplus, -kInfinity, -kInfinity};
constexpr Wave kSin{Sin, 0, kPi / 2};
constexpr Wave kCos{Cos, std::numeric_limits<long double>::quiet_NaN(), 0};

struct PowerRow {};
constexpr PowerRow kPow{};

template <class Row>
Enclosure ImageOf(const Row& row, DType type, int ulps, absl::Span<const Enclosure> args) {
  if constexpr (std::is_same_v<Row, PowerRow>) return Power(type, ulps, args[0], args[1]);
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
  case ScalarOp::k##E: return ImageOf(k##E, type, ulps, args);
#include "uops/scalar_ops.inc"
#undef PRIMITIVE
#undef COMPOSED
#undef MIXED
#undef TRANSCENDENTAL
    default: return Everything(type);
  }
}

}  // namespace nestor
