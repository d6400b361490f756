// Rules about min, max and conditions, by what is known at a place of a program.
#ifndef NESTOR_FUSION_ORDER_RULES_H_
#define NESTOR_FUSION_ORDER_RULES_H_

#include "absl/types/optional.h"
#include "loop_ir/ranges.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

// `e`, whose operands are simple, by the first rule that changes it; nullopt where none does. It
// equals `e` where the facts of `ranges` hold, and has a value where `e` has one. REQUIRES:
// `ranges` is of the program that owns `pool`; `e` is a min or max, or a condition.
absl::optional<IndexId> RewriteExtreme(IndexPool& pool, Ranges& ranges, IndexId e);
absl::optional<IndexId> RewriteCondition(IndexPool& pool, Ranges& ranges, IndexId e);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_ORDER_RULES_H_
