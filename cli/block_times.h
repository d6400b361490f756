// Where the time of a call goes.
#ifndef NESTOR_CLI_BLOCK_TIMES_H_
#define NESTOR_CLI_BLOCK_TIMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/bound.h"
#include "cli/figures.h"
#include "jit/executable.h"
#include "tensor/binding.h"

namespace nestor::cli {

// One of a kernel's functions, which run one after the other.
struct BlockTime {
  int number;        // in that order
  double seconds;    // the median of some calls
  std::string what;  // the tensors that it writes, and how often its outermost loop runs
  // Known if the block takes a hundredth of the time or more; `by` is empty if it cannot be said.
  Bound bound;
};
struct CallTimes {
  std::vector<BlockTime> blocks;
  Bound bound;  // of the call; `by` is empty if nothing runs, or it cannot be said
};

// The times of the blocks that run in a call after the first: those that depend on bound inputs
// alone do not. `binding` has the sizes of the arguments. The Statuses of Executable::Run.
absl::StatusOr<CallTimes> TimesOfBlocks(const jit::Executable& executable,
                                        const jit::Arguments& arguments, const Binding& binding,
                                        const Rates& rates);

// Adds two figures whose keys begin with `prefix`; none if nothing is known.
void AddBound(const Bound& bound, const std::string& prefix, Figures& figures);
// Adds figures for each block that takes a hundredth of the time or more: block_N_us, block_N and
// those of its bound; and one for the others together.
void AddBlocks(const std::vector<BlockTime>& blocks, Figures& figures);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_BLOCK_TIMES_H_
