// Draws that come out the same on every platform: the standard fixes the engine's
// numbers, but not what its distributions make of them.
#ifndef NESTOR_CHECK_RANDOM_H_
#define NESTOR_CHECK_RANDOM_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <utility>

namespace nestor {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Bits() { return engine_(); }
  // In [0, n). REQUIRES: n > 0.
  int64_t Below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  // In [low, high].
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int percent) { return Below(100) < percent; }
  // REQUIRES: the list is not empty.
  template <class List>
  auto Pick(const List& list) -> typename List::value_type {
    return list[Below(static_cast<int64_t>(list.size()))];
  }
  template <class T>
  T Pick(std::initializer_list<T> list) {
    return list.begin()[Below(static_cast<int64_t>(list.size()))];
  }
  // Near the ends of int64, at powers of two beyond 32 bits, or small.
  int64_t Extreme() {
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(),
                      kMost = std::numeric_limits<int64_t>::max();
    const int64_t large =
        Pick({kLeast, kMost, int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 48, int64_t{1} << 61,
              int64_t{1} << 62, -(int64_t{1} << 31), -(int64_t{1} << 32), -(int64_t{1} << 62)});
    const int64_t near = Pick({0, 0, 1, -1, 2, -2, 8, -8});
    return static_cast<int64_t>(static_cast<uint64_t>(large) + static_cast<uint64_t>(near));
  }
  template <class List>
  void Shuffle(List& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[Below(static_cast<int64_t>(i))]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_RANDOM_H_
