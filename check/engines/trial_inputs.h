// The inputs of one trial: each size, $param and tensor follows from the seed and its own name
// alone, so that a smaller program with the same names is run on the same inputs.
#ifndef NESTOR_CHECK_ENGINES_TRIAL_INPUTS_H_
#define NESTOR_CHECK_ENGINES_TRIAL_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "check/guarded_memory.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

struct TrialInputOptions {
  // Dimensions, and integer $params with their "$", that are not drawn.
  absl::flat_hash_map<std::string, int64_t> sizes;
  // Sizes are such that about that many scalar operations are computed.
  double most_work = 20'000;
};

// Owns what `inputs` points to.
struct TrialInputs {
  std::vector<Tensor> tensors;
  std::vector<GuardedMemory> memory;
  RunInputs inputs;
  absl::flat_hash_map<std::string, int64_t> sizes;  // dimensions, and integer $params
  double work = 0;                                  // scalar operations
};

// Draws extents from 0 on, and on both sides of a vector's and a tile's size; values of one
// kind for each tensor (moderate, small integers, ties, or with NaN, infinities and
// extremes), and layouts of all kinds. The op allows most, not all, of them; nullopt where no draw
// is small enough.
absl::optional<TrialInputs> DrawTrialInputs(const Op& op, const loop::Program& unfused,
                                            uint64_t seed, const TrialInputOptions& options = {});

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_TRIAL_INPUTS_H_
