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

// One of the functions of which a kernel is made, which run one after the other.
struct BlockTime {
  int number;        // in that order
  double seconds;    // the median of some calls
  std::string what;  // the tensors that it writes, and how often its outermost loop runs
  // Where it takes a hundredth of the time or more; by nothing where it cannot be said.
  Bound bound;
};
struct CallTimes {
  std::vector<BlockTime> blocks;
  Bound bound;  // of the call; by nothing where nothing runs, or it cannot be said
};

// Of the blocks that run in a call after the first: what is computed of bound inputs alone does
// not. `binding` has the sizes of the arguments. The Statuses of Executable::Run.
absl::StatusOr<CallTimes> TimesOfBlocks(const jit::Executable& executable,
                                        const jit::Arguments& arguments, const Binding& binding,
                                        const Rates& rates);

// Two figures, `prefix` before their keys; none where nothing is known.
void AddBound(const Bound& bound, const std::string& prefix, Figures& figures);
// Figures for each block that takes a hundredth of the time or more, block_N_us and block_N and
// those of its bound; the others together.
void AddBlocks(const std::vector<BlockTime>& blocks, Figures& figures);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_BLOCK_TIMES_H_
