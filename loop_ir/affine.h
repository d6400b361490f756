// How an expression moves with a loop's index, and how many values the index runs over.
#ifndef NESTOR_LOOP_IR_AFFINE_H_
#define NESTOR_LOOP_IR_AFFINE_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "uops/index/atom_sum.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

// The coefficient c where e, as a function of the loop index alone, is e(0) + c * var: it holds no
// loop index, and is 0 where e does not depend on `var`. nullopt where e is no such function (a
// division, a minimum, a gathered value..).
absl::optional<AtomSum> CoefficientOf(const IndexPool& pool, IndexId e, int64_t var);

// The coefficient where it is a number: by how much e moves when the loop's index rises by 1.
absl::optional<int64_t> StrideIn(const IndexPool& pool, IndexId e, int64_t var);

// The terms that hold no loop index.
AtomSum FixedPart(const IndexPool& pool, IndexId e);

// a - b where that is a number.
absl::optional<int64_t> DifferenceOf(const IndexPool& pool, IndexId a, IndexId b);

// The loop's end - begin, where that is a number.
absl::optional<int64_t> KnownLength(const Program& program, const Loop& loop);
// Whether end - begin is a multiple of `divisor`, whatever values its atoms have.
bool LengthIsMultiple(const Program& program, const Loop& loop, int64_t divisor);

// Whether the form of e alone says that it is at most 1: it is min(.., 1), or such a number.
bool IsAtMostOne(const IndexPool& pool, IndexId e);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_AFFINE_H_
