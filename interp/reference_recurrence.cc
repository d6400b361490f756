// The largest product of consecutive factors is computed step by step: the largest that ends at a
// step is its factor alone, or its factor times the largest that ended one step earlier.
#include "interp/reference_recurrence.h"

#include <algorithm>
#include <cmath>

#include "interp/reference_sum.h"

namespace nestor {
namespace {

// Beyond this, products of three such numbers may overflow.
constexpr long double kLargest = 0x1p4000L;

long double Magnitude(const Enclosure& e) { return std::max(std::fabs(e.low), std::fabs(e.high)); }

bool IsInteger(const Enclosure& e) { return e.low == e.high && std::nearbyint(e.low) == e.low; }

// (1 + u)^count.
long double Grown(DType type, int64_t count) {
  long double power = AddUp(1, RoundingError(type)), grown = 1;
  for (; count > 0; count /= 2) {
    if (count % 2 == 1) grown = MultiplyUp(grown, power);
    power = MultiplyUp(power, power);
  }
  return grown;
}

}  // namespace

LinearRecurrence::LinearRecurrence(DType type, const Enclosure& start) : type_(type) {
  if (!Meet(start)) return;
  low_ = start.low;
  high_ = start.high;
  least_ = most_ = most_ever_ = Magnitude(start);
  integers_ = IsInteger(start);
}

bool LinearRecurrence::Meet(const Enclosure& value) {
  nan_ |= value.nan;
  infinity_ |= value.plus_infinity || value.minus_infinity;
  certain_nan_ |= !value.HasNumber();
  certain_infinity_ |= !value.HasFinite();
  return value.HasFinite();
}

// Errors made so far are multiplied, too: both sums of magnitudes scale with the factor's, and the
// one that includes errors grows by one rounding.
void LinearRecurrence::Multiply(const Enclosure& factor) {
  ++operations_;
  if (!Meet(factor)) return;
  const Enclosure product = ExactProduct({low_, high_}, factor);
  low_ = product.low;
  high_ = product.high;
  const long double magnitude = Magnitude(factor), grown = Grown(type_, 1);
  least_ = MultiplyDown(least_, magnitude);
  most_ = std::min(kLargest, MultiplyUp(MultiplyUp(most_, magnitude), grown));
  factors_ = std::min(kLargest, std::max(1.0L, MultiplyUp(MultiplyUp(factors_, magnitude), grown)));
  most_factors_ = std::max(most_factors_, factors_);
  most_ever_ = std::max(most_ever_, most_);
  integers_ &= IsInteger(factor);
}

// The bounds are those of the exact recurrence; `most_` is S in the header, which an addition grows
// by the term and by one rounding.
void LinearRecurrence::Add(const Enclosure& term) {
  ++operations_;
  ++additions_;
  if (!Meet(term)) return;
  low_ = AddDown(low_, term.low);
  high_ = AddUp(high_, term.high);
  const long double magnitude = Magnitude(term);
  least_ = AddDown(least_, magnitude);
  most_ = std::min(kLargest, MultiplyUp(AddUp(most_, magnitude), Grown(type_, 1)));
  most_ever_ = std::max(most_ever_, most_);
  integers_ &= IsInteger(term);
}

Enclosure LinearRecurrence::Value() const {
  Enclosure e;
  if (certain_nan_) {
    e.nan = true;
    return e;
  }
  if (certain_infinity_) {
    e.nan = e.plus_infinity = e.minus_infinity = true;
    return e;
  }
  if (infinity_) return Everything(type_);
  e = Rest();
  e.nan |= nan_;
  return e;
}

bool LinearRecurrence::IsExact() const {
  return integers_ &&
         std::max(most_ever_, most_factors_) <= std::ldexp(1.0L, FormatOf(type_).precision);
}

// The exact ends, widened by what all roundings together may have done to the terms, and by what
// results below the normal numbers may have lost. If something may overflow half-way, there is no
// bound.
Enclosure LinearRecurrence::Rest() const {
  const FloatFormat& format = FormatOf(type_);
  const int64_t levels = std::clamp<int64_t>(additions_ - 1, 0, kMostLevels);
  const long double grown = Grown(type_, levels);
  const long double least_lost = MultiplyUp(3 * (operations_ + levels) * format.LeastSubnormal(),
                                            MultiplyUp(most_factors_, most_factors_));
  const long double lost = MultiplyUp(least_lost, std::max(1.0L, most_ever_));
  const long double greatest = AddUp(MultiplyUp(std::max(most_ever_, most_factors_), grown), lost);
  Enclosure e;
  e.low = low_;
  e.high = high_;
  if (!IsExact() && operations_ > 0) {
    if (greatest >= format.OverflowThreshold()) return Unbounded(type_);
    const long double error = AddUp(AddUp(MultiplyUp(most_, grown), -least_), lost);
    e.low = AddDown(low_, -error);
    e.high = AddUp(high_, error);
  }
  // Zeros of either sign may be added.
  if (e.low == 0) e.low = -0.0L;
  if (e.high == 0) e.high = 0.0L;
  return Rounded(type_, e);
}

}  // namespace nestor
