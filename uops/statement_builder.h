// From one statement to micro-ops, for both front ends: which extent each index runs over,
// the types of values, and the nodes (SEMANTICS 2, "Ranges" and "Types of values").
#ifndef NESTOR_UOPS_STATEMENT_BUILDER_H_
#define NESTOR_UOPS_STATEMENT_BUILDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/expression.h"
#include "uops/op.h"

namespace nestor::internal {

// An index that statements may mention: number i of them is Var(i) of the pool until a
// node is made, which numbers its axes from 0.
struct IndexVariable {
  std::string name;
  absl::optional<IndexId> extent = {};  // where it is said, not taken from accesses
  TextPosition position = {};
  // Whether accesses in which it stands alone must agree with the extent all the same: it is
  // what the statement was found to define.
  bool is_compared = false;
};

// The tensor that a scatter makes.
struct ScatterTarget {
  ReduceOp op;
  DType type;
  Shape shape;
  std::vector<IndexHandle> place;
  TextPosition type_position = {};
};

struct Statement {
  std::string name;  // in messages: what it defines
  TextPosition position = {};
  absl::Span<const IndexVariable> variables;
  // The left side's, in order. Of a scatter: those that it runs over, before others that
  // its place and body mention.
  std::vector<IndexHandle> indices;
  absl::optional<ScatterTarget> scatter = {};
  ExprNodePtr body;
};

// What a definition makes, as far as it can be told without the tensors of its block that are
// not known yet: an access with a graph and no tensor. They say nothing of types and ranges.
struct Signature {
  DType type;
  Shape shape;
  bool is_typed;  // by something with a type of its own, not by literals and indices alone
};
// REQUIRES: a definition.
absl::StatusOr<Signature> InferSignature(const Statement& statement, Op& op);

// The node of the tensor that `statement` defines. Adds to `op` what the statement asks to
// be equal, and warnings. InvalidArgument names the misuse, and the place in the text if
// there is one.
absl::StatusOr<NodeId> BuildStatement(const Statement& statement, Op& op);

// Whether a tensor may be read so many steps back: a constant, known to be at least 1, or a
// $param that is declared so.
bool IsLag(const Op& op, IndexId lag);

// An error where the op has grown beyond kMostMicroOps.
absl::Status CheckSize(const Graph& graph, const TextPosition& position);

}  // namespace nestor::internal

#endif  // NESTOR_UOPS_STATEMENT_BUILDER_H_
