// The proof that two iterations of a loop reach no common element.
#ifndef NESTOR_LOOP_IR_DEPENDENCE_PROOF_H_
#define NESTOR_LOOP_IR_DEPENDENCE_PROOF_H_

#include <vector>

#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// An access of a tensor in a loop's body, within the loops `inner`, outermost first. The objects
// that both point to must outlive it.
struct PlacedAccess {
  absl::Span<const IndexId> place;
  std::vector<const Loop*> inner;
};

// Whether it is proven that no element of a tensor is reached from two iterations of the loop by
// any of these accesses, which are all that the body makes to the tensor.
bool AreApart(const Program& program, const Loop& loop, std::vector<PlacedAccess> accesses);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_DEPENDENCE_PROOF_H_
