// What this machine does at best: the rates that others are seen against.
#ifndef NESTOR_BENCH_PEAKS_H_
#define NESTOR_BENCH_PEAKS_H_

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

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_PEAKS_H_
