// Floats narrower than float as storage types: values are widened to float, computed
// there, and rounded once, to nearest even (SEMANTICS 3).
#ifndef NESTOR_UOPS_HALF_H_
#define NESTOR_UOPS_HALF_H_

#include "uops/cpp20.h"

#include <algorithm>
#include <cstdint>

#include "absl/base/casts.h"

namespace nestor {

// A format of IEEE 754 with fewer bits than binary32 has: the significand's, of which one is
// hidden, the sign's, and the exponent's, which are all others of `Word`.
template <class Word, int kSignificand>
struct NarrowFloat {
  Word bits = 0;

  // To nearest even; beyond the range to infinity; every NaN becomes the one NaN.
  static NarrowFloat Round(float f) {
    const uint32_t u = absl::bit_cast<uint32_t>(f);
    if (f != f) return {kInfinity | Word{1} << (kSignificand - 2)};
    const uint32_t magnitude = std::min<uint32_t>(RoundedMagnitude(u & 0x7fffffff), kInfinity);
    return {static_cast<Word>(u >> 31 << (kBits - 1) | magnitude)};
  }

  // Exact. The exponent is rebiased to 127; that of an infinity or a NaN keeps all bits set.
  float Widen() const {
    const uint32_t sign = uint32_t{bits} >> (kBits - 1) << 31;
    const uint32_t magnitude = bits & ((1u << (kBits - 1)) - 1);
    if (kHasOwnSubnormals && magnitude < kLeastNormal) {
      const float value =
          absl::bit_cast<float>(kAnchor + magnitude) - absl::bit_cast<float>(kAnchor);
      return absl::bit_cast<float>(sign | absl::bit_cast<uint32_t>(value));
    }
    const uint32_t rebias = magnitude < kInfinity ? kRebias : 2 * kRebias;
    return absl::bit_cast<float>(sign | ((magnitude << kDropped) + rebias));
  }

 private:
  static constexpr int kBits = 8 * sizeof(Word), kDropped = 24 - kSignificand;
  static constexpr uint32_t kLeastNormal = 1u << (kSignificand - 1);
  static constexpr Word kInfinity = (1u << (kBits - 1)) - kLeastNormal;
  // What is added to the exponent when widening, at its place in a float.
  static constexpr uint32_t kRebias = (128 - (1u << (kBits - kSignificand - 1))) << 23;
  // Else subnormals are those of a float, which round and widen as other numbers do.
  static constexpr bool kHasOwnSubnormals = kRebias != 0;
  // The float whose last bit is the least subnormal: adding it aligns a subnormal's last kept bit
  // with its own, so that the addition itself rounds to nearest even.
  static constexpr uint32_t kAnchor = kRebias + ((kDropped + 1u) << 23);

  // Of the bits of a float without its sign, and not less than infinity beyond the range.
  static uint32_t RoundedMagnitude(uint32_t magnitude) {
    if (kHasOwnSubnormals && magnitude < kRebias + (1u << 23)) {
      const float aligned = absl::bit_cast<float>(magnitude) + absl::bit_cast<float>(kAnchor);
      return absl::bit_cast<uint32_t>(aligned) - kAnchor;
    }
    const uint32_t odd = (magnitude >> kDropped) & 1;
    return (magnitude - kRebias + ((1u << (kDropped - 1)) - 1) + odd) >> kDropped;
  }
};

using BF16 = NarrowFloat<uint16_t, 8>;  // bfloat16: the upper half of an IEEE binary32
using F16 = NarrowFloat<uint16_t, 11>;  // IEEE binary16

// One of these formats.
template <class T>
concept Half = requires(T v, float f) {
  v.bits;
  v.Widen();
  T::Round(f);
};

// A narrow float as a float; any other value as it is.
template <class T>
auto Widened(T v) {
  if constexpr (Half<T>) return v.Widen();
  else return v;
}

}  // namespace nestor

#endif  // NESTOR_UOPS_HALF_H_
