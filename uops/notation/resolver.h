// Turns the notation's expressions into those that statements are built from: names become indices,
// dimensions and tensors, packs are spread, and each piece keeps its place in the text.
//
//   where i + K - 1 stands                       it becomes
//     in a place, x[i + K - 1]                   an index expression (index_resolver.h)
//     as a value, f32(i + K - 1) * x[i]          an Index node, i64
//     in a condition, x[i | 0.0 if i < K]        an index expression that is a condition
#ifndef NESTOR_UOPS_NOTATION_RESOLVER_H_
#define NESTOR_UOPS_NOTATION_RESOLVER_H_

#include "absl/status/statusor.h"
#include "uops/expression.h"
#include "uops/notation/ast.h"
#include "uops/notation/environment.h"
#include "uops/notation/index_resolver.h"
#include "uops/notation/statement_scope.h"

namespace nestor {

class Resolver {
 public:
  // Both must outlive it; index expressions are added to the environment's op.
  Resolver(Environment& environment, const StatementScope& scope)
      : environment_(environment), scope_(scope), indices_(environment, scope) {}

  // The expression as a value. InvalidArgument "LINE:COLUMN: ..." where it is none, or mentions a
  // name that nothing has.
  absl::StatusOr<internal::ExprNodePtr> Value(const ast::Expr& expr) const;

 private:
  using Handle = IndexResolver::Handle;
  using Node = IndexResolver::Node;

  bool IsIndexValue(const ast::Expr& expr) const;
  bool IsIntegerLiteral(const ast::Expr& expr) const;
  size_t IndexPrefix(const ast::Expr& chain) const;

  Node IndexValue(const ast::Expr& expr, const Handle& handle) const;
  Node IntegerLiteral(const ast::Expr& expr, const Handle& handle) const;
  Node Reduction(const ast::Expr& expr) const;
  Node Map(const ast::Expr& expr, ScalarOp op) const;
  Node Function(const ast::Expr& expr) const;
  Node Chain(const ast::Expr& expr) const;
  absl::Status AppendValues(const ast::Expr& expr, size_t first, internal::ExprNode& node) const;

  const Environment& environment_;
  const StatementScope& scope_;
  const IndexResolver indices_;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_RESOLVER_H_
