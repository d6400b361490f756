// Expressions as both front ends make them: the C++ builder's Expr and IndexExpr hold these, and
// the notation's syntax tree is turned into them once its names are resolved. statement_builder.h
// turns them into micro-ops.
#ifndef NESTOR_UOPS_EXPRESSION_H_
#define NESTOR_UOPS_EXPRESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "uops/index/operators.h"
#include "uops/index_handle.h"

namespace nestor::internal {

// Which members of an ExprNode are set.
enum class Form {
  kLiteral,  // type, text
  kParam,    // type, text
  kIndex,    // indices[0], as an i64 value
  kAccess,   // text, graph, tensor, indices, conditions, args: the fill, if any
  kMap,      // op of args
  kChain,    // args[0] steps[0].op args[1] steps[1].op args[2] ..., from the left
  kCast,     // args[0] as `type`
  kReduce,   // args[0] by `reduce` over `indices`
};

// One infix operator of a chain.
struct ChainStep {
  ScalarOp op;
  TextPosition position = {};
};

// A value at each point. A chain is one node, so that no walk recurses per term. Nodes may
// be shared.
struct ExprNode {
  Form form;
  DType type = DType::kF32;  // literal: bool, i64 or, of any float, f64; param; cast
  std::string text = {};     // literal; param; access: the tensor's name
  std::vector<IndexHandle> indices = {};
  std::vector<IndexHandle> conditions = {};
  Graph* graph = nullptr;
  NodeId tensor = {};
  ScalarOp op = ScalarOp::kCopy;
  ReduceOp reduce = ReduceOp::kSum;
  std::vector<ExprNodePtr> args = {};
  std::vector<ChainStep> steps = {};  // one fewer than args
  TextPosition position = {};
  int depth = 1;  // of the tree below; MakeNode counts it
};

inline ExprNode NodeAt(Form form, const TextPosition& position) {
  ExprNode node{form};
  node.position = position;
  return node;
}

// Nodes are immutable from then on, and any number of expressions may share one.
ExprNodePtr MakeNode(ExprNode node);

// InvalidArgument, with the place in the text where there is one.
absl::Status ErrorIn(const TextPosition& position, absl::string_view message);

// The expression `id` of the pool of `graph`, which must outlive the handle.
IndexHandle HandleOf(Graph& graph, IndexId id);

// An index that could not be made, with the reason.
IndexHandle Misused(std::string error);

// a `op` b; a handle with an error is passed on.
IndexHandle Combine(const InfixOperator& op, IndexHandle a, const IndexHandle& b);
IndexHandle Combine(const IndexFunction& function, IndexHandle a, const IndexHandle& b);
IndexHandle Not(IndexHandle a);

// The element that `access` reads, as an index: the tensor must have integers, and the access no
// fill. The number of subscripts is checked where the statement is built.
IndexHandle LoadOf(const ExprNodePtr& access);

// Whether `access` reads a tensor about which nothing is known yet.
inline bool IsOpen(const ExprNode& access) {
  return access.graph != nullptr && !access.tensor.valid();
}

// Why `access` cannot be read in `graph`: its tensor belongs to no graph or to another one, or has
// another number of axes; "" where it can.
std::string AccessMisuse(const ExprNode& access, const Graph& graph);

// The expression of a handle in the pool of `graph`, or its misuse.
absl::StatusOr<IndexId> ResolveIndex(Graph& graph, const IndexHandle& handle);

}  // namespace nestor::internal

#endif  // NESTOR_UOPS_EXPRESSION_H_
