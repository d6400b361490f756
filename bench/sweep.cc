// A kernel that does little arithmetic cannot be faster than the memory under it.
// The memory's speed depends on the mix of reads and writes, on the sizes and on other processes
// that share the machine at the moment; a number from a data sheet, or from another program, says
// little. So the limit of a row is a loop written by hand that moves the same streams, measured in
// turns with the row itself. Several such loops are tried, as none is best everywhere: a streaming
// store does not fetch the line that it overwrites, which saves a third of a copy's traffic in
// memory, but throws a small array out of the cache. Walking several parts of the arrays at once is
// faster still where one core's prefetchers run only so far ahead in one stream.
#include "bench/sweep.h"

#include <immintrin.h>

#include "uops/invariant.h"

namespace nestor::bench {
namespace {

namespace avx2 {
#define NESTOR_SWEEP_TARGET __attribute__((target("avx2")))
struct Lanes {
  using Vector = __m256i;
  NESTOR_SWEEP_TARGET static Vector Load(const char* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  NESTOR_SWEEP_TARGET static Vector Add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  template <bool kStreaming>
  NESTOR_SWEEP_TARGET static void Store(char* to, Vector value) {
    if constexpr (kStreaming) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), value);
    } else {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to), value);
    }
  }
  // Tells the compiler that the values are used.
  template <int kCount>
  NESTOR_SWEEP_TARGET static void Keep(const Vector (&values)[kCount]) {
    for (const Vector& value : values) asm volatile("" : : "x"(value));
  }
};
#include "bench/sweep_kernels.inc"
#undef NESTOR_SWEEP_TARGET
}  // namespace avx2

namespace avx512 {
#define NESTOR_SWEEP_TARGET __attribute__((target("avx512f")))
struct Lanes {
  using Vector = __m512i;
  NESTOR_SWEEP_TARGET static Vector Load(const char* from) { return _mm512_load_si512(from); }
  NESTOR_SWEEP_TARGET static Vector Add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  template <bool kStreaming>
  NESTOR_SWEEP_TARGET static void Store(char* to, Vector value) {
    if constexpr (kStreaming) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), value);
    } else {
      _mm512_store_si512(to, value);
    }
  }
  template <int kCount>
  NESTOR_SWEEP_TARGET static void Keep(const Vector (&values)[kCount]) {
    for (const Vector& value : values) asm volatile("" : : "v"(value));
  }
};
#include "bench/sweep_kernels.inc"
#undef NESTOR_SWEEP_TARGET
}  // namespace avx512

}  // namespace

std::vector<SweepVariant> SweepVariants(int reads, int writes) {
  NESTOR_CHECK(reads >= 1 && reads <= 2 && writes >= 0 && writes <= 1, "no such sweep");
  std::vector<SweepVariant> variants;
  if (__builtin_cpu_supports("avx2")) avx2::AddVariants(reads, writes, "avx2", variants);
  if (__builtin_cpu_supports("avx512f")) avx512::AddVariants(reads, writes, "avx512", variants);
  return variants;
}

SweepSlice SliceFor(size_t bytes, int member, int team_size) {
  const size_t steps = bytes / kSweepStep;
  return {steps * member / team_size * kSweepStep, steps * (member + 1) / team_size * kSweepStep};
}

}  // namespace nestor::bench
