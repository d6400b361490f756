// At which iterations of a loop its comparisons turn over, and where to cut it so that
// pieces decide them.
#ifndef NESTOR_FUSION_TURNING_POINTS_H_
#define NESTOR_FUSION_TURNING_POINTS_H_

#include <vector>

#include "absl/types/optional.h"
#include "fusion/comparisons.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// Where a comparison turns over: it holds from `at` on (rising), or before it.
struct Turn {
  Comparison comparison;
  IndexId at;
  bool rising;
};

// Where the comparison turns over as the loop's index rises, if there is one such place: it is
// affine in the index, or in a quotient of what is. The ranges know what is proven of the loop's
// bounds and of what is around it.
absl::optional<Turn> TurnOf(Program& program, Ranges& ranges, const Loop& loop,
                            const Comparison& comparison);

// One or two points, those from which on something holds first, so that all holds between; of more,
// the last from which something holds and the first up to which something does. None where it is
// not known which these are.
IndexList PointsOf(Ranges& ranges, const std::vector<Turn>& turns);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_TURNING_POINTS_H_
