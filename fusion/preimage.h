// The preimage of a place: which iterations of a nest reach a given element.
#ifndef NESTOR_FUSION_PREIMAGE_H_
#define NESTOR_FUSION_PREIMAGE_H_

#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// The iterations of a nest that reach one element: those of `loops`, in order, for which
// `conditions` hold.
struct Preimage {
  std::vector<Loop> loops;  // outermost first; each has the index of a loop of the nest
  IndexList trips;          // how often each runs, averaged over the elements, roughly
  // By position in the nest: that loop's index, in terms of the element's and of
  // the indices of `loops`.
  IndexList solution;
  IndexList conditions;  // those that a load decides come last
};

// Solves place == element for the indices of `nest` (loops of step 1, outermost
// first). `element`: the element's place in `shape`, in terms of other loop indices.
//
// Each iteration that reaches the element occurs once. With `ordered`, the iterations for one
// element occur in the nest's order.
//
// nullopt where a coefficient's sign is not known, where an index that decides a
// gathered place cannot be solved, or where a bound might have no value.
//
// REQUIRES: `ranges` has entered the loops of the element's indices; on return it
// is as it was. Adds expressions to the program's pool and nothing else.
absl::optional<Preimage> SolvePreimage(Program& program, absl::Span<const Loop* const> nest,
                                       const IndexList& place, const IndexList& element,
                                       const Shape& shape, bool ordered, Ranges& ranges);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_PREIMAGE_H_
