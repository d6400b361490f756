// Decides as Judge::DecideOne does, but in double arithmetic and typed: nearly all elements
// pass here. Whether a bound is narrow and how far an element is from its middle matters only
// for the histogram.
#include "check/accept.h"

#include <algorithm>
#include <cmath>

#include "absl/base/casts.h"
#include "check/bounds/fast_judge.h"
#include "check/elements.h"

namespace nestor {
namespace {

// One result of type T against its bounds. It is a template because this is the inner loop of a
// check: the element is read and compared without a Scalar in between.
template <class T>
class Acceptor {
 public:
  Acceptor(const TensorView& got, bool signed_zeros)
      : elements_(got.data), signed_zeros_(signed_zeros) {
    if (!IsFloat(got.type)) return;
    const FloatFormat& format = FormatOf(got.type);
    least_exponent_ = format.min_exponent;
    units_ = std::ldexp(1.0, format.precision - 1);
  }

  // Whether the element lies in its bound; if so, counts it.
  bool Accept(int64_t number, double low, double high) {
    const double value = NumberAt<T>(elements_, number);
    if (!Holds(low, high, value)) return false;
    ++accepted_;
    if (IsNarrow(low, high)) ++exact_;
    else Count(low, high, value);
    return true;
  }

  void AddTo(Verdict& verdict) {
    verdict.by_bounds += accepted_;
    histogram_.exact = exact_;
    verdict.histogram.Add(histogram_);
  }

 private:
  static constexpr bool kIsFloat = !std::is_integral_v<T>;

  bool Holds(double low, double high, double value) const {
    if (signed_zeros_) return HoldsInner(low, high, value);
    // Infinite or NaN ends say nothing.
    return low <= value && value <= high && std::isfinite(low) && std::isfinite(high);
  }

  // The bound is at most a unit in the last place wide: none of so few values is nearer to the
  // exact result than another.
  bool IsNarrow(double low, double high) const {
    if constexpr (!kIsFloat) return true;
    // The exponent is read from the bits of a double, where it is biased by 1023, instead of by
    // frexp. Below the least normal number of T the unit no longer shrinks.
    const uint64_t largest = absl::bit_cast<uint64_t>(std::max(std::abs(low), std::abs(high)));
    const int64_t exponent =
        std::max<int64_t>(static_cast<int64_t>(largest >> 52) - 1023, least_exponent_);
    return (high - low) * units_ <=
           absl::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
  }

  // Counts the element by its distance from the middle, in tenths of the half width.
  void Count(double low, double high, double value) {
    // Not 0 / 0: a bound that is no wider than a unit, so also one of a single value, is counted as
    // exact.
    const double half = (high - low) / 2, distance = std::abs(value - (low + half));
    const double in_half_widths = std::min(distance / half, 1.0);
    ++histogram_
          .counts[std::min<size_t>(static_cast<size_t>(in_half_widths * ErrorHistogram::kTenths),
                                   ErrorHistogram::kTenths - 1)];
    histogram_.largest = std::max(histogram_.largest, in_half_widths);
  }

  const void* const elements_;
  const bool signed_zeros_;
  int64_t least_exponent_ = 0;
  double units_ = 0;  // in the last place, of 1
  int64_t accepted_ = 0, exact_ = 0;
  ErrorHistogram histogram_;
};

}  // namespace

std::vector<int64_t> AcceptElements(const TensorView& got, const ElementBounds& bounds,
                                    bool signed_zeros, Verdict& verdict) {
  std::vector<int64_t> open;
  VisitType(got.type, [&](auto zero) {
    Acceptor<decltype(zero)> acceptor(got, signed_zeros);
    for (size_t p = 0; p < bounds.low.size(); ++p) {
      // Of a sample, entries without an element are -1; they are neither right nor open.
      const int64_t number =
          bounds.numbers != nullptr ? bounds.numbers[p] : static_cast<int64_t>(p);
      if (number >= 0 && !acceptor.Accept(number, bounds.low[p], bounds.high[p]))
        open.push_back(number);
    }
    acceptor.AddTo(verdict);
  });
  return open;
}

}  // namespace nestor
