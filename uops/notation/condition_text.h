// Conditions on the sizes of an op, as text.
#ifndef NESTOR_UOPS_NOTATION_CONDITION_TEXT_H_
#define NESTOR_UOPS_NOTATION_CONDITION_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "uops/op.h"

namespace nestor {

// "K % 8 == 0 && $stride <= 2": comparisons of expressions that the notation allows on dimensions,
// integer $params and integers, joined by && || !. The expression is added to the pool of `op`.
// InvalidArgument "1:COLUMN: ..." for a text that is no condition or that uses a name that the op
// does not have.
absl::StatusOr<IndexId> ParseCondition(absl::string_view text, Op& op);

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_CONDITION_TEXT_H_
