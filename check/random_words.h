// Random words by the block, the same on every machine, for those who draw many: eight
// generators run side by side, which a compiler turns into vector instructions. Each is
// xoshiro128++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021),
// seeded by SplitMix64 (Steele, Lea and Flood, 2014).
#ifndef NESTOR_CHECK_RANDOM_WORDS_H_
#define NESTOR_CHECK_RANDOM_WORDS_H_

#include <cstddef>
#include <cstdint>

namespace nestor {

class RandomWords {
 public:
  static constexpr size_t kLanes = 8;

  explicit RandomWords(uint64_t seed) {
    for (Lanes& word : state_) {
      for (size_t lane = 0; lane < kLanes; lane += 2) {
        const uint64_t mixed = Mixed(seed += 0x9e3779b97f4a7c15);
        word[lane] = static_cast<uint32_t>(mixed);
        word[lane + 1] = static_cast<uint32_t>(mixed >> 32);
      }
    }
  }

  // Word: uint32_t or uint64_t. The bytes of `words` must be a multiple of those of all lanes.
  template <class Word, size_t count>
  void Fill(Word (&words)[count]) {
    static_assert(sizeof(words) % sizeof(Lanes) == 0, "the last block of words is not whole");
    FillBytes(reinterpret_cast<char*>(words), sizeof(words));
  }

 private:
  typedef uint32_t Lanes __attribute__((vector_size(4 * kLanes)));

  static uint64_t Mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  void FillBytes(char* bytes, size_t count);

  Lanes state_[4];
};

}  // namespace nestor

#endif  // NESTOR_CHECK_RANDOM_WORDS_H_
