// Random numbers that are the same on every machine and library: splitmix64
// (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
// 2014).
#ifndef NESTOR_EXAMPLES_DIGITS_RANDOM_H_
#define NESTOR_EXAMPLES_DIGITS_RANDOM_H_

#include <cstdint>

namespace nestor::digits {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // In [0, n), for n far below 2^64. REQUIRES: n > 0.
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }

  // In [-bound, bound).
  float Uniform(float bound) {
    const float unit = static_cast<float>(Next() >> 40) * 0x1p-24f;  // in [0, 1)
    return (2 * unit - 1) * bound;
  }

 private:
  uint64_t state_;
};

}  // namespace nestor::digits

#endif  // NESTOR_EXAMPLES_DIGITS_RANDOM_H_
