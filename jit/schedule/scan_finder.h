// Loops whose steps hand one scalar on to each other: the sum of all steps so far, say.
#ifndef NESTOR_JIT_SCHEDULE_SCAN_FINDER_H_
#define NESTOR_JIT_SCHEDULE_SCAN_FINDER_H_

#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/scans.h"

namespace nestor::loop {

struct Scan {
  TensorId carried;
  const Statement* update;  // of `carried`
  ScanPath path;            // from there back to it, through scalars of the loop's own
  absl::flat_hash_set<TensorId> results;  // the loop's own scalars with the new value of `carried`
};

// A loop qualifies if its body consists of definitions of scalars, each defined once, stores, and
// an update of one scalar from outside, by sums, products, both, maxima or minima of itself and of
// values that do not depend on it. It must not read what it stores. nullopt where it does not
// qualify. The result points into the loop.
absl::optional<Scan> FindScan(const Program& program, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SCAN_FINDER_H_
