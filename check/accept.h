// Which elements of a result certainly lie in their bounds.
#ifndef NESTOR_CHECK_ACCEPT_H_
#define NESTOR_CHECK_ACCEPT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "check/judge.h"
#include "tensor/tensor.h"

namespace nestor {

// Bounds that FastJudge gives for the elements of a result whose row-major numbers are in
// `numbers`, where -1 stands for no element; null: for all elements in order.
struct ElementBounds {
  absl::Span<const double> low, high;
  const int64_t* numbers = nullptr;
};

// Counts in `verdict` the elements of `got` that lie in their bounds, a zero with any sign unless
// `signed_zeros`, and returns the others. REQUIRES: `got` is compact.
std::vector<int64_t> AcceptElements(const TensorView& got, const ElementBounds& bounds,
                                    bool signed_zeros, Verdict& verdict);

}  // namespace nestor

#endif  // NESTOR_CHECK_ACCEPT_H_
