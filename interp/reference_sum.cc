// A tree over n terms rounds n - 1 times, each time by at most u times the sum that
// it rounds. Errors add up unchanged, so with B the largest magnitude of an exact
// partial sum and E the whole error, E <= (n - 1) u (B + E), that is
// E <= gamma_{n-1} B, whatever the tree. B is the sum of the positive terms or that
// of the negative ones: at most Higham's sum of magnitudes, half of it where signs
// are mixed. Additions never underflow, but an FMA's result may. Terms are sets
// here; B follows from their ends.
//
// A product is off by gamma_{n-1} times itself while no partial product leaves the
// normal numbers. The magnitude of each partial product lies between `small`, the
// product of all factors below 1, and `large`, that of all above. Where small is
// subnormal, every rounding may lose half the least subnormal, and what comes
// after may magnify that by `large`.
//
// Overflow needs no bound of the whole error. A negative term never makes a partial sum
// greater, nor does a factor below 1 a product, since rounding is monotone and what is
// added to is a value of the type. So a partial result beyond the largest value is there
// only if the n positive terms (factors above 1) alone give one; before the last rounding,
// which may make it infinite, n - 2 have been. Likewise a partial product vanishes only if
// the factors below 1 alone do; there a rounding that does not give 0 loses at most a
// third.
//
// An example of three f32: 1e30 + 1e30 - 1e30 has one possible result up to
// roundings, but 3e38 + 3e38 - 3e38 may be inf: the positive terms overflow alone. It is
// never -inf or NaN.
#include "interp/reference_sum.h"

#include <algorithm>
#include <cmath>

namespace nestor {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
// Beyond this, long double products may overflow.
constexpr long double kLargest = 0x1p16000L;

long double Magnitude(const Enclosure& e) { return std::max(std::fabs(e.low), std::fabs(e.high)); }

long double LeastMagnitude(const Enclosure& e) {
  return e.HasZero() ? 0 : std::min(std::fabs(e.low), std::fabs(e.high));
}

bool IsPoint(const Enclosure& e) {
  return e.low == e.high && !e.nan && !e.plus_infinity && !e.minus_infinity;
}

// The exponent of the last bit that is set, and the number of bits to the first.
struct Bits64 {
  int last, count;
};
// REQUIRES: x is finite, not 0.
Bits64 SignificantBits(long double x) {
  int exponent;
  const uint64_t significand =
      static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 64));
  const int zeros = __builtin_ctzll(significand);
  return {exponent - 64 + zeros, 64 - zeros};
}

}  // namespace

Enclosure Unbounded(DType type) {
  Enclosure e = Everything(type);
  e.may_overflow = true;
  return e;
}

long double RoundingError(DType type) {
  const long double u = FormatOf(type).UnitRoundoff();
  if (AccumulatorType(type) == type) return u;
  return u + 2 * FormatOf(AccumulatorType(type)).UnitRoundoff();
}

void Accumulation::Take(const Enclosure& term) {
  ++terms_;
  may_be_finite_ &= term.HasFinite();
  nan_ |= term.nan;
  certain_nan_ |= !term.HasNumber();
  may_overflow_ |= term.may_overflow;
  points_ &= IsPoint(term);
  if (op_ == ReduceOp::kSum) AddTerm(term);
  else MultiplyFactor(term);
}

long double Accumulation::Gamma(int64_t roundings) const {
  const long double k = static_cast<long double>(std::max<int64_t>(roundings, 0));
  const long double ku = k * RoundingError(type_);
  if (ku >= 0.5L) return kInfinity;
  return StepUp(ku / (1 - ku), 4);
}

bool Accumulation::MayOverflow(const Extreme& extreme) const {
  const FloatFormat& format = FormatOf(type_);
  // The last rounding of a 16-bit float is two roundings.
  const int last = AccumulatorType(type_) == type_ ? 1 : 0;
  const long double rounding = MultiplyUp(Gamma(extreme.count - 1 - last), extreme.value);
  const long double error = AddUp(rounding, (extreme.count - 1) * format.LeastSubnormal());
  return extreme.count > 0 && AddUp(extreme.value, error) >= format.OverflowThreshold();
}

bool Accumulation::MayVanish(const Extreme& extreme) const {
  const FloatFormat& format = FormatOf(type_);
  if (extreme.count < 2 || MultiplyDown(extreme.value, 1 - Gamma()) >= format.LeastNormal())
    return false;
  const long double kept = std::pow(2.0L / 3, static_cast<long double>(extreme.count - 2));
  return MultiplyDown(extreme.value, kept) <= format.LeastSubnormal() / 2;
}

// ---- Sums

// The exact sum's bounds, and apart from them the sums of the positive and of the negative terms:
// in any order, no partial sum is larger than these, which bounds both roundings and overflow.
void Accumulation::AddTerm(const Enclosure& term) {
  plus_infinity_ |= term.plus_infinity;
  minus_infinity_ |= term.minus_infinity;
  if (!term.HasFinite()) {
    certain_plus_infinity_ |= !term.minus_infinity && !term.nan;
    certain_minus_infinity_ |= !term.plus_infinity && !term.nan;
    return;
  }
  low_ = AddDown(low_, term.low);
  high_ = AddUp(high_, term.high);
  if (term.high > 0) positive_ = {AddUp(positive_.value, term.high), positive_.count + 1};
  if (term.low < 0) negative_ = {AddUp(negative_.value, -term.low), negative_.count + 1};
  if (term.low == 0 && term.high == 0) return;
  ++changing_;
  if (points_) grid_ = std::min(grid_, SignificantBits(term.low).last);
}

bool Accumulation::SumIsExact() const {
  const FloatFormat& format = FormatOf(type_);
  if (changing_ <= 1) return true;
  const long double largest = std::max(positive_.value, negative_.value);
  return points_ && grid_ >= format.min_exponent + 1 - format.precision &&
         largest <= format.Largest() && largest <= std::ldexp(1.0L, grid_ + format.precision);
}

// The exact bounds, widened by gamma times the greatest partial sum and by what subnormal results
// may lose. An infinity is a member if partial sums may overflow in some order.
Enclosure Accumulation::Sum() const {
  const FloatFormat& format = FormatOf(type_);
  const bool exact = SumIsExact();
  const long double gamma = exact ? 0 : Gamma();
  if (std::isinf(gamma)) return Unbounded(type_);
  const long double rounding = MultiplyUp(gamma, std::max(positive_.value, negative_.value));
  const long double error = exact ? 0 : AddUp(rounding, changing_ * format.LeastSubnormal());
  Enclosure e;
  if (may_be_finite_) {
    e.low = AddDown(low_, -error);
    e.high = AddUp(high_, error);
    // The identity may take part or not: +0 + -0 is +0.
    if (terms_ == 0) e.low = 0;
    if (e.high == 0) e.high = 0;
  }
  const bool above = !exact && MayOverflow(positive_), below = !exact && MayOverflow(negative_);
  if (!exact && !above) e.high = std::min(e.high, format.Largest());
  if (!exact && !below) e.low = std::max(e.low, -format.Largest());
  const bool plus = plus_infinity_ || above, minus = minus_infinity_ || below;
  e.plus_infinity = plus && !certain_minus_infinity_ && !certain_nan_;
  e.minus_infinity = minus && !certain_plus_infinity_ && !certain_nan_;
  e.nan = nan_ || (plus && minus);
  e.may_overflow = may_overflow_ || above || below;
  return Rounded(type_, e);
}

// ---- Products

// As for sums: the product of the factors above 1 and of those below 1 bound each partial product
// in any order, and so tell whether some order overflows or underflows.
void Accumulation::MultiplyFactor(const Enclosure& factor) {
  infinity_ |= factor.plus_infinity || factor.minus_infinity;
  zero_ |= factor.HasFinite() && factor.HasZero();
  certain_zero_ |= IsPoint(factor) && factor.low == 0;
  const bool may_be_negative =
      factor.minus_infinity || (factor.HasFinite() && std::signbit(factor.low));
  const bool may_be_positive =
      factor.plus_infinity || (factor.HasFinite() && !std::signbit(factor.high));
  sign_known_ &= !(may_be_negative && may_be_positive);
  negative_sign_ ^= may_be_negative;
  if (!factor.HasFinite()) return;
  const Enclosure product = ExactProduct({low_, high_}, factor);
  low_ = product.low;
  high_ = product.high;
  const long double most = Magnitude(factor), least = LeastMagnitude(factor);
  if (most > 1) large_ = {std::min(kLargest, MultiplyUp(large_.value, most)), large_.count + 1};
  if (least < 1) small_ = {MultiplyDown(small_.value, least), small_.count + 1};
  if (factor.low == 1 && factor.high == 1) return;
  ++changing_;
  if (!points_ || factor.low == 0) return;
  const int bits = SignificantBits(factor.low).count;
  bits_ += bits == 1 ? 0 : bits;
}

bool Accumulation::ProductIsExact() const {
  const FloatFormat& format = FormatOf(type_);
  if (changing_ <= 1) return true;
  return points_ && !zero_ && bits_ <= format.precision && large_.value <= format.Largest() &&
         small_.value >= format.LeastNormal();
}

// The exact bounds, widened by gamma; if some order underflows, by what it loses, enlarged by all
// factors that may follow. Infinity times zero is NaN, where some order may meet both.
Enclosure Accumulation::Product() const {
  const FloatFormat& format = FormatOf(type_);
  if (terms_ == 0) return FromEnds(type_, 1, 1);
  const bool exact = ProductIsExact();
  const long double gamma = exact ? 0 : Gamma();
  if (large_.value >= kLargest || std::isinf(gamma)) return Unbounded(type_);
  const bool underflows = !exact && MultiplyDown(small_.value, 1 - gamma) < format.LeastNormal();
  const bool overflows = !exact && MayOverflow(large_);
  const bool is_zero = low_ == 0 && high_ == 0;
  Enclosure e;
  if (may_be_finite_) {
    const long double magnitude = std::max(std::fabs(low_), std::fabs(high_));
    long double error = MultiplyUp(gamma, magnitude);
    const long double lost =
        MultiplyUp(changing_ * format.LeastSubnormal(), MultiplyUp(large_.value, 1 + gamma));
    if (underflows && !is_zero) error = AddUp(error, lost);
    e.low = AddDown(low_, -error);
    e.high = AddUp(high_, error);
    if (is_zero) e.low = low_, e.high = high_;
    if (!exact && !overflows) {
      e.high = std::min(e.high, format.Largest());
      e.low = std::max(e.low, -format.Largest());
    }
    // Roundings keep the sign.
    if (sign_known_ && negative_sign_) e.high = LesserOf(e.high, -0.0L);
    if (sign_known_ && !negative_sign_) e.low = GreaterOf(e.low, 0.0L);
  }
  const bool infinity = infinity_ || overflows, stays = infinity && !certain_zero_ && !certain_nan_;
  e.plus_infinity = stays && (!sign_known_ || !negative_sign_);
  e.minus_infinity = stays && (!sign_known_ || negative_sign_);
  e.nan = nan_ || (infinity && (zero_ || (!exact && MayVanish(small_))));
  e.may_overflow = may_overflow_ || overflows;
  return Rounded(type_, e);
}

}  // namespace nestor
