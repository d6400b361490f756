// A fused multiply-add has a latency of four or five cycles and two can start in
// each: ten independent chains keep both units busy, twelve leave some room and fit
// in the sixteen registers of AVX2 beside the factor and the addend. The chains
// converge to addend / (1 - factor), so that nothing overflows or becomes subnormal.
#include "bench/arithmetic_peak.h"

#include <immintrin.h>

namespace nestor::bench {
namespace {

constexpr int kChains = 12;

__attribute__((target("avx2,fma"))) void RunAvx2(int64_t steps) {
  __m256 factor = _mm256_set1_ps(0.5f), addend = _mm256_set1_ps(1), chains[kChains];
  asm("" : "+x"(factor), "+x"(addend));  // not to be computed at compile time
  for (int c = 0; c < kChains; ++c) chains[c] = addend;
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) chains[c] = _mm256_fmadd_ps(chains[c], factor, addend);
  }
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "x"(chains[c]));
}

__attribute__((target("avx512f"))) void RunAvx512(int64_t steps) {
  __m512 factor = _mm512_set1_ps(0.5f), addend = _mm512_set1_ps(1), chains[kChains];
  asm("" : "+v"(factor), "+v"(addend));
  for (int c = 0; c < kChains; ++c) chains[c] = addend;
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) chains[c] = _mm512_fmadd_ps(chains[c], factor, addend);
  }
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "v"(chains[c]));
}

}  // namespace

std::vector<PeakVariant> PeakVariants() {
  std::vector<PeakVariant> variants;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) variants.push_back({RunAvx2, 8 * kChains});
  if (__builtin_cpu_supports("avx512f")) variants.push_back({RunAvx512, 16 * kChains});
  return variants;
}

}  // namespace nestor::bench
