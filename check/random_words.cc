// The same steps are compiled twice: with the flags of the whole program, and for AVX2, which has
// all lanes in one register.
#include "check/random_words.h"

#include <cstring>

namespace nestor {
namespace {

template <class Lanes>
__attribute__((always_inline)) inline void Steps(Lanes (&state)[4], char* bytes, size_t count) {
  // Copies of the object's state, so that they stay in registers.
  Lanes a = state[0], b = state[1], c = state[2], d = state[3];
  for (size_t at = 0; at < count; at += sizeof(Lanes)) {
    // xoshiro128++ (Blackman and Vigna, Scrambled linear pseudorandom number generators, 2021), one
    // generator in each lane. There are eight lanes whatever the registers are, so the bits are the
    // same on every machine.
    const Lanes sum = a + d, next = (sum << 7 | sum >> 25) + a, shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = d << 11 | d >> 21;
    std::memcpy(bytes + at, &next, sizeof(next));
  }
  state[0] = a, state[1] = b, state[2] = c, state[3] = d;
}

template <class Lanes>
__attribute__((target("avx2"))) void StepsOfAvx2(Lanes (&state)[4], char* bytes, size_t count) {
  Steps(state, bytes, count);
}

}  // namespace

void RandomWords::FillBytes(char* bytes, size_t count) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) StepsOfAvx2(state_, bytes, count);
  else Steps(state_, bytes, count);
}

}  // namespace nestor
