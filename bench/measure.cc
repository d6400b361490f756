// The speed of a machine drifts within seconds (clock rates, neighbours, page
// placement), by more than the differences that matter here. Two engines timed one
// after the other are compared with that drift; so they take turns:
//
//   round 1:  A B C     round 2:  B C A     round 3:  C A B ...
//
// and the median over the rounds is kept, which one disturbed round does not move.
// A turn begins when the threads of the engine before sleep: they spin for a while when
// their work is done, those of OpenBLAS for a tenth of a second. It is a batch of calls long enough
// for the clock, after a short batch that is not timed, which fetches the data again that the
// engine before has displaced. A call that takes many times as long as this needs neither; and
// where calls are so long that the rounds take too much time, there are fewer rounds, the same
// number for all engines, so that they stay paired.
#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace nestor::bench {
namespace {

// The untimed part of a turn: 2 of 20 milliseconds.
constexpr double kWarmUp = 0.1;
// A call that takes as long as this many batches is not warmed up.
constexpr double kLongCall = 10;

// The clock is read once in a chunk of calls, as reading it takes time as well.
double SecondsPerCall(const Contender& contender, int chunk, double least_seconds,
                      const MeasureOptions& options) {
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

// The number of threads that run or could run, this one included, by their status in Linux: "id
// (name) R ..".
int RunningThreads() {
  int running = 0;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string line;
    std::getline(std::ifstream(thread.path() / "stat"), line);
    running += line.find(") R ") != std::string::npos;
  }
  return running;
}

// Calls between two looks at the clock: so many that the looks cost nothing, so few
// that a batch does not become much longer than asked.
int ChunkFor(const Contender& contender, const MeasureOptions& options) {
  constexpr int kLooksPerBatch = 16;
  int chunk = 1;
  while (SecondsPerCall(contender, chunk, 0, options) * chunk <
         options.batch_seconds / kLooksPerBatch)
    chunk *= 2;
  return chunk;
}

// A contender and its measurements so far.
struct Player {
  const Contender* contender;
  int chunk = 1;
  bool warms_up = false;
  std::vector<double> seconds = {};  // per call, one for each turn
};

// Runs the contender until it is known how to measure it. A long call counts as its first turn.
Player Enter(const Contender& contender, const MeasureOptions& options) {
  Player player{&contender};
  options.rest();
  const double first = SecondsPerCall(contender, 1, 0, options);
  if (first >= kLongCall * options.batch_seconds) {
    player.seconds = {first};
    return player;
  }
  player.chunk = ChunkFor(contender, options);
  player.warms_up = true;
  return player;
}

void TakeTurn(int round, Player& player, const MeasureOptions& options) {
  const Contender& contender = *player.contender;
  if (player.seconds.size() > static_cast<size_t>(round)) return;  // it had its turn
  options.rest();
  if (player.warms_up)
    SecondsPerCall(contender, player.chunk, options.batch_seconds * kWarmUp, options);
  player.seconds.push_back(SecondsPerCall(contender, player.chunk, options.batch_seconds, options));
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

void WaitForIdle() {
  for (int nap = 0; nap < 300 && RunningThreads() > 1; ++nap) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// All contenders play each round, and another one begins in each: what changes in the machine over
// time meets all of them alike. The median is little moved by rounds that were disturbed.
std::vector<Reading> MeasureAlternating(absl::Span<const Contender> contenders,
                                        const MeasureOptions& options) {
  const double start = options.now();
  std::vector<Player> players;
  for (const Contender& contender : contenders) players.push_back(Enter(contender, options));
  for (int round = 0; round < options.rounds; ++round) {
    if (round > 0 && options.now() - start > options.most_seconds) break;
    for (size_t turn = 0; turn < players.size(); ++turn) {
      TakeTurn(round, players[(turn + round) % players.size()], options);
    }
  }
  std::vector<Reading> best;
  for (const Player& player : players) {
    KeepBest({player.contender->engine, Median(player.seconds) / player.contender->part}, best);
  }
  return best;
}

}  // namespace nestor::bench
