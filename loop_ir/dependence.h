// Which tensors are read and written, and whether a loop's iterations depend on each other.
#ifndef NESTOR_LOOP_IR_DEPENDENCE_H_
#define NESTOR_LOOP_IR_DEPENDENCE_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// kAccumulate: `op=`, which reads the element and writes it.
enum class AccessKind : uint8_t { kRead, kWrite, kAccumulate };

// Calls `visit` on every access that the item itself makes, a loop's body left
// out: the loads of its values and index expressions, then the target. It may add to the
// program's pool.
using AccessVisitor =
    absl::FunctionRef<void(TensorId, absl::Span<const IndexId> place, AccessKind)>;
void VisitAccesses(const Program& program, const Item& item, AccessVisitor visit);

// The tensors that a scope touches and does not itself declare.
struct Footprint {
  using Set = absl::flat_hash_set<TensorId>;
  Set reads;        // loaded from, in values or index expressions
  Set writes;       // assigned to
  Set accumulates;  // accumulated into: the old value matters

  bool Changes(TensorId t) const { return writes.contains(t) || accumulates.contains(t); }
  bool Touches(TensorId t) const { return reads.contains(t) || Changes(t); }
};
Footprint FootprintOf(const Program& program, const Scope& scope);
Footprint FootprintOf(const Program& program, const Item& item);

// A tensor through which one iteration of the loop may depend on another, in
// the order of the text; nullopt where it is proven that there is none, so that
// the iterations may run in any order, or at once.
//
// Conservative: a tensor that the body changes and does not declare is proven apart only if there
// is known to be one iteration, or if along some axis every iteration stays within a window of its
// own: each place there is an affine expression whose bounds over the inner loops differ by less
// than the loop index moves it in one step. Masks are not used.
// A sum into an outer tensor is a dependence, whatever its order would change.
absl::optional<TensorId> CarriedTensor(const Program& program, const Loop& loop);
// All of them, in that order.
std::vector<TensorId> CarriedTensors(const Program& program, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_DEPENDENCE_H_
