// One case that a kernel is run on: sizes, $params, values, and where the tensors lie in memory.
#ifndef NESTOR_CHECK_CASE_H_
#define NESTOR_CHECK_CASE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "check/arrangement.h"
#include "check/sizes.h"
#include "check/values.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

struct Case {
  Binding binding;             // dimensions and all $params
  std::vector<Tensor> inputs;  // in the order of the signature
  std::vector<Arrangement> input_layouts, output_layouts;
  GuardedMemory::Side side = GuardedMemory::Side::kEnd;
  // By result: the argument whose memory it reuses, or -1.
  std::vector<int> in_place;
  uint64_t sample_seed = 1;  // of the judged elements, where these are a sample

  SymbolValues Sizes() const { return {binding.symbols.begin(), binding.symbols.end()}; }
  // Whether some result reuses the memory of the argument.
  bool IsOverwritten(size_t argument) const;
  // The inputs that the oracle is given; views into this case.
  RunInputs Inputs(const Op& op) const;
};

// REQUIRES: the op can be run at these sizes.
Dims ResultShape(const Op& op, const Binding& binding, size_t result);

// The data that cases are drawn from. Immutable, so thread-safe.
struct CaseSource {
  Op op;
  SizeSolver solver;
  ValueDrawer values;
  SizeLimits limits;
  std::vector<Arrangement> layouts;                // not empty
  std::vector<std::pair<int, int>> in_place;       // argument and result
  absl::flat_hash_map<std::string, Scalar> fixed;  // $params that are not drawn
};

// Gives the same case for the same seed; nullopt where no sizes were found. `spent` is a case that
// is no longer needed: its tensors are reused where they have the same shape.
absl::optional<Case> DrawCase(const CaseSource& source, uint64_t seed,
                              absl::optional<Case> spent = absl::nullopt);

// The case at smaller sizes, with the values that come first along each axis, or last. nullopt
// where the sizes are not allowed, or one would grow.
enum class Kept { kFirst, kLast };
absl::optional<Case> Shrunk(const CaseSource& source, const Case& from, const SymbolValues& sizes,
                            Kept kept);

// "M=3, N=17, $stride=2; x transposed; y transposed; y in the memory of x".
std::string CaseText(const CaseSource& source, const Case& drawn);

}  // namespace nestor

#endif  // NESTOR_CHECK_CASE_H_
