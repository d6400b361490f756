// What the body of a loop compares: masks, choices, extremes in places, and whether all of a
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

// Of a masked access: its conditions, and whether each of its indices is in range.
void VisitMask(Program& program, const Access& access, ComparisonVisitor visit);

// Which of two numbers an extreme is: where both are equal, the one that does not move. Of anything
// else, nothing.
void VisitExtreme(const IndexPool& pool, IndexId e, ComparisonVisitor visit);
// The extremes in places, as of a border that repeats the outermost elements.
void VisitExtremes(const IndexPool& pool, const Access& access, ComparisonVisitor visit);

// Of the value of a statement. A sum of products keeps its masks: its borders would be computed all
// the same, and a schedule that packs the operands pays for masks once. A sum of the masked values
// themselves has nothing to do there, nor has one of products whose factors are all masked.
void VisitComparisons(Program& program, const Statement& statement, ComparisonVisitor visit);

// Loops over a window, outermost first, and what they accumulate.
struct Window {
  std::vector<const Loop*> loops;
  const Statement* step;
};

// Of the loops from this one on, where they hold nothing else. Of products only where each of them
// is known to have few steps at all places, as a filter has, and where no condition says that they
// are summed: other sums of products are for tiles, or seldom run.
absl::optional<Window> WindowOf(const Program& program, const Loop& outermost);

// Where all places of a window are in range, of the masked loads of what it accumulates, along the
// axes that `asks` is true of.
void VisitWindow(Program& program, const Window& window,
                 absl::FunctionRef<bool(const Access& access, size_t axis)> asks,
                 ComparisonVisitor visit);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COMPARISONS_H_
