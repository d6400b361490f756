// The two 16-bit floating-point formats as storage types: values are widened to
// float, computed there, and rounded once, to nearest even (SEMANTICS 3).
#ifndef NESTOR_UOPS_HALF_H_
#define NESTOR_UOPS_HALF_H_

#include "uops/cpp20.h"

#include <cstdint>

#include "absl/base/casts.h"

namespace nestor {

// bfloat16: the upper half of an IEEE binary32.
struct BF16 {
  uint16_t bits = 0;

  // To nearest even; beyond the range to infinity; every NaN becomes the one NaN.
  static BF16 Round(float f) {
    const uint32_t u = absl::bit_cast<uint32_t>(f);
    if (f != f) return BF16{0x7fc0};
    return BF16{static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16)};
  }
  // Exact: a binary32 whose lower half is zero.
  float Widen() const { return absl::bit_cast<float>(uint32_t{bits} << 16); }
};

// IEEE binary16.
struct F16 {
  uint16_t bits = 0;

  // Likewise. Widen is exact.
  static F16 Round(float f) {
    const uint32_t u = absl::bit_cast<uint32_t>(f);
    const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000);
    if (f != f) return F16{0x7e00};
    const uint32_t magnitude = u & 0x7fffffff;
    // 65520 is the tie between the largest finite value and infinity.
    if (magnitude >= 0x477ff000) return F16{static_cast<uint16_t>(sign | 0x7c00)};
    if (magnitude < 0x38800000) {
      // Subnormal: adding 0.5 aligns the last kept bit with float's last bit,
      // so the addition itself rounds to nearest even.
      const float aligned = absl::bit_cast<float>(magnitude) + 0.5f;
      return F16{static_cast<uint16_t>(sign | (absl::bit_cast<uint32_t>(aligned) - 0x3f000000))};
    }
    const uint32_t odd = (magnitude >> 13) & 1;
    return F16{static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13))};
  }
  // Exact. The exponent is rebiased from 15 to 127; a subnormal is a multiple of 2^-24.
  float Widen() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00)
      return absl::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude < 0x400) {
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return absl::bit_cast<float>(sign | absl::bit_cast<uint32_t>(value));
    }
    return absl::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
  }
};

// One of these formats.
template <class T>
concept Half = requires(T v, float f) {
  v.bits;
  v.Widen();
  T::Round(f);
};

// A 16-bit float as a float; any other value as it is.
template <class T>
auto Widened(T v) {
  if constexpr (Half<T>) return v.Widen();
  else return v;
}

}  // namespace nestor

#endif  // NESTOR_UOPS_HALF_H_
