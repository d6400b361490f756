// Turns the notation's expressions into those that statements are built from: names become indices,
// dimensions and tensors, packs are spread, and each piece keeps its place in the text.
//
//   where i + K - 1 stands                       it becomes
//     in a place, x[i + K - 1]                   an index expression
//     as a value, f32(i + K - 1) * x[i]          an Index node, i64
//     in a condition, x[i | 0.0 if i < K]        an index expression that is a condition
#ifndef NESTOR_UOPS_NOTATION_RESOLVER_H_
#define NESTOR_UOPS_NOTATION_RESOLVER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "uops/expression.h"
#include "uops/notation/ast.h"
#include "uops/notation/environment.h"
#include "uops/notation/statement_scope.h"

namespace nestor {

class Resolver {
 public:
  // Both must outlive it; index expressions are added to the environment's op.
  Resolver(Environment& environment, const StatementScope& scope)
      : environment_(environment), scope_(scope) {}
  // For use outside of statements, where no index is in scope.
  explicit Resolver(Environment& environment);

  // The expression as a value, as an index, or as a condition. InvalidArgument "LINE:COLUMN: ..."
  // where it is none, or mentions a name that nothing has.
  absl::StatusOr<internal::ExprNodePtr> Value(const ast::Expr& expr) const;
  absl::StatusOr<IndexId> Index(const ast::Expr& expr) const;
  absl::StatusOr<IndexId> Condition(const ast::Expr& expr) const;
  absl::StatusOr<std::vector<internal::IndexHandle>> Place(
      const std::vector<ast::Item>& items) const;
  // The extents that a list of dimensions denotes.
  absl::StatusOr<Shape> Extents(const std::vector<ast::Item>& dims) const;
  // Indices of the scope.
  std::vector<internal::IndexHandle> Handles(const std::vector<int>& instances) const;

 private:
  using Handle = absl::StatusOr<internal::IndexHandle>;
  using Node = absl::StatusOr<internal::ExprNodePtr>;

  bool IsIndexValue(const ast::Expr& expr) const;
  bool IsIntegerLiteral(const ast::Expr& expr) const;
  size_t IndexPrefix(const ast::Expr& chain) const;

  // `in_value`: in value position, where "/" is an error.
  Handle IndexHandle(const ast::Expr& expr, bool in_value) const;
  Handle ChainHandle(const ast::Expr& chain, size_t count, bool in_value) const;
  Handle FunctionHandle(const ast::Expr& expr, bool in_value) const;
  Handle NameHandle(const ast::Expr& expr) const;
  Handle ParamHandle(const ast::Expr& expr) const;
  Handle SizeHandle(const ast::Expr& expr) const;
  Handle LoadHandle(const ast::Expr& access) const;
  Handle ConditionHandle(const ast::Expr& expr) const;
  internal::IndexHandle Wrap(IndexId id) const;

  Node IndexValue(const ast::Expr& expr, const Handle& handle) const;
  Node IntegerLiteral(const ast::Expr& expr, const Handle& handle) const;
  Node Access(const ast::Expr& expr) const;
  absl::StatusOr<NodeId> StepOf(const ast::Expr& access, const internal::ExprNode& node) const;
  absl::Status CheckLag(const ast::Expr& access, IndexId lag) const;
  Node Fill(const ast::Expr& fill) const;
  Node Reduction(const ast::Expr& expr) const;
  Node Map(const ast::Expr& expr, ScalarOp op) const;
  Node Function(const ast::Expr& expr) const;
  Node Chain(const ast::Expr& expr) const;
  absl::Status AppendValues(const ast::Expr& expr, size_t first, internal::ExprNode& node) const;

  Environment& environment_;
  const StatementScope& scope_;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_RESOLVER_H_
