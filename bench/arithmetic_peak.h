// How fast this machine multiplies and adds f32 numbers in registers.
#ifndef NESTOR_BENCH_ARITHMETIC_PEAK_H_
#define NESTOR_BENCH_ARITHMETIC_PEAK_H_

#include <cstdint>
#include <vector>

namespace nestor::bench {

// A loop of fused multiply-adds without a load or store, for one thread.
struct PeakVariant {
  void (*run)(int64_t steps);
  int64_t multiply_adds;  // of one step
};

// One for each vector width of this CPU; empty where it lacks AVX2 and FMA.
std::vector<PeakVariant> PeakVariants();

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ARITHMETIC_PEAK_H_
