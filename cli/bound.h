// What keeps a part of a program from being quicker.
#ifndef NESTOR_CLI_BOUND_H_
#define NESTOR_CLI_BOUND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/peaks.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/program.h"
#include "loop_ir/sized_program.h"

namespace nestor::cli {

// What this machine does at best.
struct Rates {
  jit::Isa isa;
  int threads;
  bench::Peaks peaks;
  std::vector<bench::CacheRate> caches;  // of one thread
};

struct Bound {
  // "compute", "first cache", .., "memory"; "latency" where none of these takes half of the time.
  std::string by;
  // Of the time, that it would take alone; beside "latency", what the most loaded one would.
  double share = 0;
};

// Of a scheduled program that takes so many seconds at these sizes. What it computes is counted by
// primitive scalar operations, all of them in lanes; what it moves by the model of
// fusion/bytes_walked.h, from each cache to the one before it, and from the first one to registers;
// where `touched_bytes`, of inputs, outputs and temporaries of the whole call, stay in a cache,
// nothing comes from beyond it. A share is an estimate, and at most 1. InvalidArgument where the
// sizes are none of the program.
absl::StatusOr<Bound> BoundOf(loop::Program program, const loop::Sizes& sizes, double touched_bytes,
                              double seconds, const Rates& rates);
// Those bytes.
absl::StatusOr<double> BytesTouched(const loop::Program& program, const loop::Sizes& sizes);

// The program with those of the items at its top that stand in `items`, in rising order, alone.
// Temporaries that it has (or outputs) from other items are inputs in storage, and those that it
// makes for them are outputs, but no arguments.
loop::Program PartOf(loop::Program program, absl::Span<const size_t> items);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_BOUND_H_
