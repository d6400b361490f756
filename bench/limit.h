// The limit of a row: how fast this machine moves the bytes that the row's work must touch, or
// does its arithmetic.
#ifndef NESTOR_BENCH_LIMIT_H_
#define NESTOR_BENCH_LIMIT_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/buffers.h"
#include "bench/goal.h"
#include "bench/measure.h"
#include "bench/thread_team.h"

namespace nestor::bench {

// Buffers of the same number of bytes that are read and written side by side: one or two reads, at
// most one write.
struct Traffic {
  std::vector<std::string> reads, writes;
};

// Contenders of the engines kLimit and kLimitInParts that walk all of `traffic`, in
// order: one for each way to do it. The values that they write have no meaning. `buffers` and
// `team` must outlive them. Empty where the traffic is empty, or where this CPU has no sweeps.
std::vector<Contender> LimitContenders(absl::Span<const Traffic> traffic, Buffers& buffers,
                                       ThreadTeam& team);

// Vector operations, by the number of f32 results.
struct Operations {
  double all = 0;
  double products = 0;   // of these, also fused with a sum, and quotients
  double quotients = 0;  // of these, also roots
};

// Contenders of an engine for each kind of operations, which do that many of them in registers and
// nothing else. `team` must outlive them. A kernel cannot be faster than any of these engines, nor
// than its traffic.
std::vector<Contender> OperationContenders(const Operations& operations, ThreadTeam& team);

// Makes kLimit the slowest of the limits of the traffic and of operations.
void JoinLimits(RowResult& result);

// Contenders of the engine kLimit that do that many f32 multiply-adds in registers, without loads
// and stores. `team` must outlive them. Empty where there is nothing to do, or where this CPU has
// no loops for it (bench/arithmetic_peak.h).
std::vector<Contender> ArithmeticContenders(double multiply_adds, ThreadTeam& team);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_LIMIT_H_
