// The comparisons in the body of a loop: masks, choices, extremes in places, and whether all of a
// window is in range.
#ifndef NESTOR_FUSION_COMPARISONS_H_
#define NESTOR_FUSION_COMPARISONS_H_

#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// left <= right.
struct Comparison {
  IndexId left, right;
  friend bool operator==(const Comparison& a, const Comparison& b) {
    return a.left == b.left && a.right == b.right;
  }
  template <class H>
  friend H AbslHashValue(H h, const Comparison& c) {
    return H::combine(std::move(h), c.left, c.right);
  }
};

using ComparisonVisitor = absl::FunctionRef<void(Comparison)>;

// Visits the comparisons of a masked access: its conditions, and whether each of its indices is
// in range.
void VisitMask(Program& program, const Access& access, ComparisonVisitor visit);

// Visits the comparison that decides which of its two numbers an extreme is: where both are equal,
// the one that does not move. Visits nothing if `e` is no extreme.
void VisitExtreme(const IndexPool& pool, IndexId e, ComparisonVisitor visit);
// The extremes in places, as of a border that repeats the outermost elements.
void VisitExtremes(const IndexPool& pool, const Access& access, ComparisonVisitor visit);

// Visits the comparisons in a statement's value. A sum of products keeps its masks: its borders
// would be computed all the same, and a schedule that packs the operands pays for masks once. A sum
// of the masked values themselves has nothing to do there, nor has one of products whose factors
// are all masked.
void VisitComparisons(Program& program, const Statement& statement, ComparisonVisitor visit);

// Loops over a window, outermost first, and what they accumulate.
struct Window {
  std::vector<const Loop*> loops;
  const Statement* step;
};

// The window of the loops from `outermost` on, if they hold nothing else. A window over products
// counts only if each of its loops is known to have few steps at all places, as a filter has, and
// no condition says that they are summed: other sums of products are for tiles, or seldom run.
absl::optional<Window> WindowOf(const Program& program, const Loop& outermost);

// Visits the comparisons that say whether all places of a window are in range, for the masked loads
// in what it accumulates, along the axes for which `asks` is true.
void VisitWindow(Program& program, const Window& window,
                 absl::FunctionRef<bool(const Access& access, size_t axis)> asks,
                 ComparisonVisitor visit);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COMPARISONS_H_
