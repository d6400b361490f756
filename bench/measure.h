// Timing several engines against each other in one process.
#ifndef NESTOR_BENCH_MEASURE_H_
#define NESTOR_BENCH_MEASURE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace nestor::bench {

// One way to do a piece of work. Contenders may share an engine's name: they are
// then variants of which the best counts.
struct Contender {
  std::string engine;
  std::function<void()> run;
  // The part of the work that one run does, where doing all of it would only take longer.
  double part = 1;
};

// The cost of one piece of work for an engine: less is better. The unit (seconds, milliseconds,
// bytes) depends on the context.
struct Reading {
  std::string engine;
  double cost = 0;
};

// Seconds from some fixed time.
double SteadySeconds();

// Returns when every other thread of this process sleeps, so that none spins waiting for more work;
// at the latest after some tenths of a second.
void WaitForIdle();

struct MeasureOptions {
  int rounds = 5;
  double batch_seconds = 0.02;  // one measurement repeats calls for at least this time
  double most_seconds = 10;     // no round but the first begins later than this after the start
  std::function<double()> now = SteadySeconds;
  std::function<void()> rest = WaitForIdle;  // before each turn
};

// The seconds that the work takes each engine, in the order in which engines first appear:
// the median of the rounds, in each of which every contender has a turn.
// REQUIRES: rounds > 0.
std::vector<Reading> MeasureAlternating(absl::Span<const Contender> contenders,
                                        const MeasureOptions& options = {});

// The middle value; for an even number of values, the mean of the two in the middle.
// REQUIRES: not empty.
double Median(std::vector<double> values);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_MEASURE_H_
