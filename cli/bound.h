// The resource that limits the speed of a part of a program.
#ifndef NESTOR_CLI_BOUND_H_
#define NESTOR_CLI_BOUND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/peaks.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"
#include "loop_ir/sized_program.h"

namespace nestor::cli {

// The best rates of this machine.
struct Rates {
  jit::Isa isa;
  int threads;
  bench::Peaks peaks;
  std::vector<bench::CacheRate> caches;  // of one thread
};

struct Bound {
  // "compute", "first cache", .., "memory"; "latency" where none of these takes half of the time.
  std::string by;
  // The share of the time that it would take alone; for "latency", that of the most
  // loaded resource.
  double share = 0;
};

// The bound of a scheduled program that takes so many seconds at these sizes. Work is counted in
// primitive scalar operations, all of them in lanes; traffic by fusion/cost/bytes_walked.h, from
// each cache to the one before it, and from the first one to registers; if `touched_bytes`, those
// of the inputs, outputs and temporaries of the whole call, fit into a cache, nothing comes
// from beyond it. A share is an estimate, and at most 1. InvalidArgument if the sizes are not legal
// for the program.
absl::StatusOr<Bound> BoundOf(loop::Program program, const loop::Sizes& sizes, double touched_bytes,
                              double seconds, const Rates& rates);
// Those bytes.
absl::StatusOr<double> BytesTouched(const loop::Program& program, const loop::Sizes& sizes);

// The program reduced to those of its top-level items that `items` lists, in rising order.
// Temporaries (or outputs) that it takes from other items are inputs in storage, and those that it
// makes for them are outputs, but neither are arguments.
loop::Program PartOf(loop::Program program, absl::Span<const size_t> items);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_BOUND_H_
