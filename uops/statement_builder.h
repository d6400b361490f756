// From one statement to micro-ops, for both front ends: the extent that each index runs over, the
// types of values, and the nodes (SEMANTICS 2, "Ranges" and "Types of values").
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

// An index that statements may mention: index number i is Var(i) of the pool until a node is made,
// which numbers its axes from 0.
struct IndexVariable {
  std::string name;
  absl::optional<IndexId> extent = {};  // if it is stated, not taken from accesses
  TextPosition position = {};
  // Whether axes which it alone subscripts must agree with the extent even so: the extent is that
  // of the tensor that the statement was found to define.
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
  // The indices on the left, in order. For a scatter: those that it runs over, before others that
  // its place and body mention.
  std::vector<IndexHandle> indices;
  absl::optional<ScatterTarget> scatter = {};
  ExprNodePtr body;
};

// The facts about the tensor that a definition makes which are known without the tensors of its
// block that are not known yet: accesses with a graph and no tensor. Those say nothing about types
// and ranges.
struct Signature {
  DType type;
  Shape shape;
  bool is_typed;  // by something with a type of its own, not by literals and indices alone
};
// REQUIRES: a definition.
absl::StatusOr<Signature> InferSignature(const Statement& statement, Op& op);

// The node of the tensor that `statement` defines. Adds to `op` the equalities that the
// statement requires, and warnings. InvalidArgument names the misuse, and the place in the text
// if there is one.
absl::StatusOr<NodeId> BuildStatement(const Statement& statement, Op& op);

// Whether a tensor may be read `lag` steps back: `lag` is a constant or a $param, known or declared
// to be at least 1.
bool IsLag(const Op& op, IndexId lag);

// An error where the op has grown beyond kMostMicroOps.
absl::Status CheckSize(const Graph& graph, const TextPosition& position);

}  // namespace nestor::internal

#endif  // NESTOR_UOPS_STATEMENT_BUILDER_H_
