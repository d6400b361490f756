// A fused multiply-add has a latency of four or five cycles and two can start in
// each: ten independent chains keep both units busy, twelve leave some room and fit
// in the sixteen registers of AVX2 beside the factor and the addend. The chains
// converge to addend / (1 - factor), so that nothing overflows or becomes subnormal; those of
// sums count up, those of quotients stay at 1.
#include "bench/arithmetic_peak.h"

#include <immintrin.h>

namespace nestor::bench {
namespace {

constexpr int kChains = 12;

template <Arithmetic kKind>
__attribute__((target("avx2,fma"))) void RunAvx2(int64_t steps) {
  __m256 factor = _mm256_set1_ps(0.5f), addend = _mm256_set1_ps(1), chains[kChains];
  asm("" : "+x"(factor), "+x"(addend));  // not to be computed at compile time
  for (int c = 0; c < kChains; ++c) chains[c] = addend;
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      if (kKind == Arithmetic::kQuotients) chains[c] = _mm256_div_ps(chains[c], addend);
      else if (kKind == Arithmetic::kAny && c % 2 == 1)
        chains[c] = _mm256_add_ps(chains[c], addend);
      else chains[c] = _mm256_fmadd_ps(chains[c], factor, addend);
    }
  }
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "x"(chains[c]));
}

template <Arithmetic kKind>
__attribute__((target("avx512f"))) void RunAvx512(int64_t steps) {
  __m512 factor = _mm512_set1_ps(0.5f), addend = _mm512_set1_ps(1), chains[kChains];
  asm("" : "+v"(factor), "+v"(addend));
  for (int c = 0; c < kChains; ++c) chains[c] = addend;
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      if (kKind == Arithmetic::kQuotients) chains[c] = _mm512_div_ps(chains[c], addend);
      else if (kKind == Arithmetic::kAny && c % 2 == 1)
        chains[c] = _mm512_add_ps(chains[c], addend);
      else chains[c] = _mm512_fmadd_ps(chains[c], factor, addend);
    }
  }
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "v"(chains[c]));
}

template <Arithmetic kKind>
std::vector<PeakVariant> VariantsOf() {
  std::vector<PeakVariant> variants;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    variants.push_back({RunAvx2<kKind>, 8 * kChains});
  if (__builtin_cpu_supports("avx512f")) variants.push_back({RunAvx512<kKind>, 16 * kChains});
  return variants;
}

}  // namespace

std::vector<PeakVariant> PeakVariants(Arithmetic kind) {
  switch (kind) {
    case Arithmetic::kProducts: return VariantsOf<Arithmetic::kProducts>();
    case Arithmetic::kAny: return VariantsOf<Arithmetic::kAny>();
    case Arithmetic::kQuotients: return VariantsOf<Arithmetic::kQuotients>();
  }
  return {};
}

}  // namespace nestor::bench
