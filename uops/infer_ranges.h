// The range of each index of a statement: the extent that is stated for it, or that of the first
// axis which it alone subscripts.
#ifndef NESTOR_UOPS_INFER_RANGES_H_
#define NESTOR_UOPS_INFER_RANGES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "uops/op.h"
#include "uops/statement_builder.h"

namespace nestor::internal {

struct RangedIndex {
  int64_t variable;
  IndexId extent;
};

struct Ranges {
  std::vector<RangedIndex> own;  // the statement's, in the order in which it runs over them
  absl::flat_hash_map<const ExprNode*, std::vector<RangedIndex>> reduced;  // of each reduction
};

// `partial`: reductions over indices without a range are no error; they have no extent then. Adds
// to `op` an equality for each further axis which an index alone subscripts, unless its extent is
// stated, and a warning for each index that is always out of bounds. Errors: an index that is not
// in scope, is bound twice or has no range; an access with too many or too few indices; handles of
// other builders.
absl::StatusOr<Ranges> InferRanges(const Statement& statement, Op& op, bool partial = false);

}  // namespace nestor::internal

#endif  // NESTOR_UOPS_INFER_RANGES_H_
