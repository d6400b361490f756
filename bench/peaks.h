// The peak rates of this machine, with which other rates are compared.
#ifndef NESTOR_BENCH_PEAKS_H_
#define NESTOR_BENCH_PEAKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/thread_team.h"

namespace nestor::bench {

// Each is the best of all ways to do it; 0 where this CPU has none.
struct Peaks {
  double gigaflops = 0;       // of f32 multiply-adds in registers
  double read_gigabytes = 0;  // a second, of 64 MiB that are read
  double copy_gigabytes = 0;  // ... that are read and written, both counted
};

// Takes a few seconds.
Peaks MeasurePeaks(ThreadTeam& team);

struct CacheRate {
  std::string name;  // "first cache", "second cache", "last cache"
  int64_t bytes;     // of it
  double gigabytes;  // a second, that one thread reads where they lie in it
};

// The rates of the caches that the processor reports, the nearest first, without those that are no
// larger than the one before; `bytes` has the size of each level.
std::vector<CacheRate> MeasureCacheRates(absl::Span<const int64_t> bytes);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_PEAKS_H_
