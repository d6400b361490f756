// How fast this machine moves memory: the limit that rows are held against.
#ifndef NESTOR_BENCH_SWEEP_H_
#define NESTOR_BENCH_SWEEP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace nestor::bench {

// Streams of `bytes` bytes each that are walked side by side: every element of the
// reads is added up and, where there is a write, stored there. All begin at 64-byte
// boundaries.
struct Streams {
  std::vector<const char*> reads;  // one or two
  std::vector<char*> writes;       // none or one
  size_t bytes = 0;
};

// One way to walk them from byte `begin` to `end`, both multiples of kSweepStep.
using SweepFunction = void (*)(const Streams& streams, size_t begin, size_t end);
inline constexpr size_t kSweepStep = 256;

inline constexpr int kSweepParts = 4;

struct SweepVariant {
  std::string name;  // "avx2 streaming"
  int parts;         // walked at the same time: 1, from end to end, or kSweepParts
  SweepFunction sweep;
};

// The ways that this CPU knows for that many reads and writes: each vector width, with ordinary and
// with streaming stores, in one and in several parts. Empty where the CPU lacks AVX2. REQUIRES:
// reads and writes as in Streams.
std::vector<SweepVariant> SweepVariants(int reads, int writes);

// Bytes [begin, end) of member `member` of `team_size`. The last bytes, fewer than kSweepStep,
// belong to no member, which flatters a limit by next to nothing.
struct SweepSlice {
  size_t begin, end;
};
SweepSlice SliceFor(size_t bytes, int member, int team_size);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_SWEEP_H_
