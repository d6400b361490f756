// The speed of a machine drifts within seconds (clock rates, neighbours, page
// placement), by more than the differences that matter here. Two engines timed one
// after the other are compared with that drift; so they take turns:
//
//   round 1:  A B C     round 2:  B C A     round 3:  C A B ...
//
// and the median over the rounds is kept, which one disturbed round does not move.
// A turn is a batch of calls long enough for the clock, behind a short one that is
// not timed: it fetches the data again that the engine before has displaced, and
// waits out that engine's threads, which spin for a while when their work is done.
#include "bench/measure.h"

#include <algorithm>
#include <chrono>

namespace nestor::bench {
namespace {

// The untimed part of a turn: 2 of 20 milliseconds.
constexpr double kWarmUp = 0.1;

double SecondsPerCall(const Contender& contender, int chunk, double least_seconds, const MeasureOptions& options) {
  const double start = options.now();
  double elapsed = 0;
  int64_t calls = 0;
  do {
    for (int i = 0; i < chunk; ++i) contender.run();
    calls += chunk;
    elapsed = options.now() - start;
  } while (elapsed < least_seconds);
  return elapsed / static_cast<double>(calls);
}

// Calls between two looks at the clock: so many that the looks cost nothing, so few
// that a batch does not become much longer than asked.
int ChunkFor(const Contender& contender, const MeasureOptions& options) {
  constexpr int kLooksPerBatch = 16;
  int chunk = 1;
  while (SecondsPerCall(contender, chunk, 0, options) * chunk < options.batch_seconds / kLooksPerBatch) chunk *= 2;
  return chunk;
}

void KeepBest(const Reading& reading, std::vector<Reading>& best) {
  for (Reading& other : best) {
    if (other.engine != reading.engine) continue;
    other.cost = std::min(other.cost, reading.cost);
    return;
  }
  best.push_back(reading);
}

}  // namespace

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<Reading> MeasureAlternating(absl::Span<const Contender> contenders, const MeasureOptions& options) {
  std::vector<int> chunks;
  for (const Contender& contender : contenders) {
    contender.run();
    chunks.push_back(ChunkFor(contender, options));
  }
  std::vector<std::vector<double>> seconds(contenders.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t turn = 0; turn < contenders.size(); ++turn) {
      const size_t i = (turn + round) % contenders.size();
      SecondsPerCall(contenders[i], chunks[i], options.batch_seconds * kWarmUp, options);
      seconds[i].push_back(SecondsPerCall(contenders[i], chunks[i], options.batch_seconds, options));
    }
  }
  std::vector<Reading> best;
  for (size_t i = 0; i < contenders.size(); ++i) KeepBest({contenders[i].engine, Median(seconds[i])}, best);
  return best;
}

}  // namespace nestor::bench
