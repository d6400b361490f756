// At which iterations of a loop its comparisons change, and where to cut it so that they are
// decided in each piece.
#ifndef NESTOR_FUSION_TURNING_POINTS_H_
#define NESTOR_FUSION_TURNING_POINTS_H_

#include <vector>

#include "absl/types/optional.h"
#include "fusion/comparisons.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// Where a comparison changes: it holds from `at` on (rising), or before it.
struct Turn {
  Comparison comparison;
  IndexId at;
  bool rising;
};

// Where the comparison changes as the loop's index rises, if there is one such place: the
// comparison is affine in the index, or in a quotient of an expression that is. `ranges` knows what
// is proven about the loop's bounds and its surroundings.
absl::optional<Turn> TurnOf(Program& program, Ranges& ranges, const Loop& loop,
                            const Comparison& comparison);

// One or two points, with those from which a comparison holds first, so that all hold in between;
// if there are more turns, the last point from which a comparison holds and the first up to which
// one does. None where it is not known which these are.
IndexList PointsOf(Ranges& ranges, const std::vector<Turn>& turns);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_TURNING_POINTS_H_
