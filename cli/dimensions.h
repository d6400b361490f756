// Sizes for the dimensions that nothing binds: small, distinct, and such that
// the op can run.
#ifndef NESTOR_CLI_DIMENSIONS_H_
#define NESTOR_CLI_DIMENSIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor::cli {

using SymbolValues = absl::flat_hash_map<std::string, int64_t>;

struct KnownSizes {
  SymbolValues symbols;                           // dimensions and integer $params
  absl::flat_hash_map<std::string, Dims> shapes;  // of arguments, by name
};

struct ChosenSizes {
  SymbolValues symbols;  // all dimensions and integer $params
  // Those that `known` does not hold, in signature order.
  std::vector<std::pair<std::string, int64_t>> chosen;
  // For those of `chosen` that an equality of the op determines: the equality.
  absl::flat_hash_map<std::string, const Equality*> reasons;
  std::vector<std::string> guessed;  // those of `chosen` that nothing determines
};

// Dimensions follow from `known` where it determines them, also through
// expressions (x: f32[C*$groups] of 6 elements and $groups = 2 give C = 3) and
// through the op's equalities; the rest get 4, 5, 6..., or, where the op has no consistent extents
// of at least 1 with these, other small sizes. If no sizes are found, the best attempt is returned:
// Bind() then says what is wrong. `reasons` point into the op.
// REQUIRES: the ranks of known.shapes are those of the arguments.
ChosenSizes ChooseSizes(const Op& op, const KnownSizes& known);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_DIMENSIONS_H_
