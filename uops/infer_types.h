// The types of a statement's values: unification over the statement (SEMANTICS 2, "Types of
// values"). Literals and index values take the type of the values that they meet; those that meet
// none are f32, i64 or bool.
#ifndef NESTOR_UOPS_INFER_TYPES_H_
#define NESTOR_UOPS_INFER_TYPES_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "uops/expression.h"

namespace nestor::internal {

// The knowledge about the type of values that meet.
struct MetType {
  absl::optional<DType> type = {};
  bool float_literal = false;  // one is among them
  bool index_value = false;    // one is among them
  DType Resolved() const;
};

struct NodeTypes {
  MetType own;
  MetType operands = {};  // what the operands have in common; of `where`, the branches
};
using Types = absl::flat_hash_map<const ExprNode*, NodeTypes>;

// The types of `body` and all nodes below it. `declared`: the type that the whole must have, for
// a scatter.
absl::StatusOr<Types> InferTypes(const ExprNode& body, absl::optional<DType> declared,
                                 const Graph& graph);

}  // namespace nestor::internal

#endif  // NESTOR_UOPS_INFER_TYPES_H_
