// Everything that one run needs: what is given, and the rest made up.
#ifndef NESTOR_CLI_INPUTS_H_
#define NESTOR_CLI_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/given.h"
#include "macro_ops/library.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor::cli {

struct Inputs {
  RunInputs run;  // views into `given` and `drawn`
  std::vector<Tensor> drawn;
  std::vector<std::string> remarks;  // one for each thing made up
};

// If nothing gives a macro op its sizes, its first sample does; $params that have no default come
// from there too. Call before InstantiateFor: samples have ranks. Adds a remark for each $param.
void FillFromSample(const MacroOp& macro, const Program& program, Given& given,
                    std::vector<std::string>& remarks);

// Values are drawn by name and seed, so that an input is the same whatever else is given: floats
// uniform in [-1, 1), integers in 0..3; inputs that a macro op's samples bound by B are in [0, B)
// and 0..B-1. The bytes made are bounded by *max_bytes, which is lowered by them. `given` must
// outlive the result.
absl::StatusOr<Inputs> MakeInputs(const Op& op, const Given& given, const MacroOp* macro,
                                  uint64_t seed, int64_t* max_bytes);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_INPUTS_H_
