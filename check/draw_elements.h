// Fills tensors with drawn values: typed, a block at a time, the same on every machine. Values are
// made only by integer operations, conversions and operations that IEEE 754 defines.
#ifndef NESTOR_CHECK_DRAW_ELEMENTS_H_
#define NESTOR_CHECK_DRAW_ELEMENTS_H_

#include <cstdint>

#include "check/random_words.h"
#include "tensor/tensor.h"

namespace nestor {

// The common character of the floats of one tensor; each one finds other faults.
enum class Character {
  kModerate,
  kIntegers,    // small, so that many are equal
  kCancelling,  // half of them nearly negate the one before
  kWide,        // of all magnitudes
  kLarge,       // exp overflows
  kSubnormal,
  kEqual,
  kSpikes,  // few in zeros
  kPositive,
  kAnyBits,  // any finite ones
};

struct FloatDraw {
  Character character = Character::kModerate;
  double common = 1;  // of kEqual
  double low = 0, high = 0;
  // Infinities, NaN and -0 among the others, which lie in [low, high].
  bool special = false;
};

// REQUIRES: a float type.
void DrawFloats(const FloatDraw& draw, RandomWords& words, Tensor& tensor);

// Integers in [low, high], and for few_percent of the elements in [few_low, few_high].
struct IntegerDraw {
  int64_t low = 0, high = 0;
  int few_percent = 0;
  int64_t few_low = 0, few_high = 0;
};

// Numbers wrap to the type. REQUIRES: an integer type, or bool, for which 0 and 1 are drawn.
void DrawIntegers(const IntegerDraw& draw, RandomWords& words, Tensor& tensor);

}  // namespace nestor

#endif  // NESTOR_CHECK_DRAW_ELEMENTS_H_
