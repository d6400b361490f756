// One row of the benchmark: a piece of work, who does it, and how fast Nestor must
// be at it.
#ifndef NESTOR_BENCH_ROW_H_
#define NESTOR_BENCH_ROW_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/buffers.h"
#include "bench/goal.h"
#include "bench/limit.h"
#include "bench/measure.h"
#include "bench/thread_team.h"

namespace nestor::bench {

// A program of Nestor's. Its arguments and results are the buffers of those names.
struct Step {
  std::string notation;
  bool gradient = false;
  std::vector<std::string> wrt = {};  // the arguments of the gradient; empty: every float one
  // Arguments that are bound before anything is measured: the weights of a layer, which peers
  // are given in layouts of their own.
  std::vector<std::string> bound = {};
};

// Another engine, ready to run on the row's buffers.
struct Peer {
  std::string engine;
  std::function<void()> run;
  // Brings the results of the last run into the outputs; absent where `run` writes
  // there itself.
  std::function<void()> deliver;
  // False for a mere yardstick, with outputs of its own.
  bool compared = true;
};
using PeerMaker = std::function<absl::StatusOr<Peer>(Buffers& buffers, int threads)>;

struct Row {
  std::string name;
  std::vector<BufferSpec> buffers;
  std::vector<Step> steps;  // run in order
  // The limit: the traffic that is walked, in order, or else the number of f32 multiply-adds that
  // the work needs. Neither: there is no limit.
  std::vector<Traffic> traffic;
  double multiply_adds = 0;
  // The limit is the traffic, or, where that takes longer, the vector operations of
  // the fused programs.
  bool counts_operations = false;
  std::vector<PeerMaker> peers;
  std::vector<GoalTerm> goal;
  double tolerance = 1e-3;  // of MaxRelativeDifference
  // Sizes in the programs are numbers, so the buffers cannot have other sizes.
  bool fixed_sizes = false;
};

// The row with a second goal: that fraction of a limit that counts its programs' operations.
Row OfOperations(Row row, double fraction);

// Compares Nestor's results with those of each peer, then measures all in turns, in
// milliseconds. A failure of one engine is RowResult::failure, and the others are measured
// all the same.
RowResult RunRow(const Row& row, ThreadTeam& team, const MeasureOptions& options = {});

// Nestor itself with other types, as a yardstick: runs `steps` on buffers of its own, which have
// the shapes of the row's buffers of the same names.
PeerMaker NestorPeer(std::string engine, std::vector<BufferSpec> buffers, std::vector<Step> steps);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ROW_H_
