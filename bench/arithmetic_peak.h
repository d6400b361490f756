// How fast this machine computes f32 numbers in registers.
#ifndef NESTOR_BENCH_ARITHMETIC_PEAK_H_
#define NESTOR_BENCH_ARITHMETIC_PEAK_H_

#include <cstdint>
#include <vector>

namespace nestor::bench {

// The kinds of operations that a core has pipes for.
enum class Arithmetic {
  kProducts,   // fused multiply-adds
  kAny,        // these and sums in turns, which have pipes of their own on some processors
  kQuotients,  // which take a pipe for several cycles
};

// A loop of such operations without loads and stores, for one thread.
struct PeakVariant {
  void (*run)(int64_t steps);
  int64_t operations;  // of one step, on one number each
};

// One for each vector width of this CPU; empty where it lacks AVX2 and FMA.
std::vector<PeakVariant> PeakVariants(Arithmetic kind = Arithmetic::kProducts);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ARITHMETIC_PEAK_H_
