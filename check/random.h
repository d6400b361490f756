// Draws that come out the same on every platform: the standard fixes the engine's
// numbers, but not what its distributions make of them.
#ifndef NESTOR_CHECK_RANDOM_H_
#define NESTOR_CHECK_RANDOM_H_

#include <cstdint>
#include <initializer_list>
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
  template <class List>
  void Shuffle(List& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[Below(static_cast<int64_t>(i))]);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_RANDOM_H_
