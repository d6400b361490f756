// Simplifies index expressions by what is known at a place of a program.
#ifndef NESTOR_FUSION_INDEX_SIMPLIFY_H_
#define NESTOR_FUSION_INDEX_SIMPLIFY_H_

#include "loop_ir/ranges.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

// An expression, or condition, that equals `e` at every point where the facts of `ranges` hold, and
// has a value exactly where `e` has one: a defined expression stays defined, and a division by a
// number that may be zero stays.
//
// Undoes the round trips of reshapes, pads, strides and tiles: quotients and
// remainders that their dividends' ranges decide, their sums, common factors,
// nested divisions, min and max, conditions. Applied to its own result it
// changes nothing. Only affine parts are rewritten; the rest stays as written.
//
// REQUIRES: `ranges` is of the program that owns `pool`.
IndexId SimplifyIndex(IndexPool& pool, Ranges& ranges, IndexId e);

// Whether `e` is affine without a division, min or max: SimplifyIndex leaves such an expression as
// it is, whatever is known.
bool IsPlainSum(const IndexPool& pool, IndexId e);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_INDEX_SIMPLIFY_H_
