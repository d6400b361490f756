// Resolves the notation's index expressions and conditions, and the accesses whose subscripts they
// are, to those that statements are built from; each piece keeps its place in the text.
#ifndef NESTOR_UOPS_NOTATION_INDEX_RESOLVER_H_
#define NESTOR_UOPS_NOTATION_INDEX_RESOLVER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "uops/expression.h"
#include "uops/notation/ast.h"
#include "uops/notation/environment.h"
#include "uops/notation/statement_scope.h"

namespace nestor {

// All errors are InvalidArgument "LINE:COLUMN: ...": an expression that is none of its kind, or
// mentions a name that nothing has.
class IndexResolver {
 public:
  using Handle = absl::StatusOr<internal::IndexHandle>;
  using Node = absl::StatusOr<internal::ExprNodePtr>;

  // Both must outlive it; index expressions are added to the environment's op.
  IndexResolver(Environment& environment, const StatementScope& scope)
      : environment_(environment), scope_(scope) {}
  // For use outside of statements, where no index is in scope.
  explicit IndexResolver(Environment& environment);

  // The expression as an index, or as a condition.
  absl::StatusOr<IndexId> Index(const ast::Expr& expr) const;
  absl::StatusOr<IndexId> Condition(const ast::Expr& expr) const;
  absl::StatusOr<std::vector<internal::IndexHandle>> Place(
      const std::vector<ast::Item>& items) const;
  // The extents that a list of dimensions denotes.
  absl::StatusOr<Shape> Extents(const std::vector<ast::Item>& dims) const;
  // Indices of the scope.
  std::vector<internal::IndexHandle> Handles(const std::vector<int>& instances) const;

  // An index expression. `in_value`: in value position, where "/" is an error, since it would be a
  // floor division and look like one of reals.
  Handle Resolve(const ast::Expr& expr, bool in_value) const;
  // The first `count` operands of a chain as one index expression.
  Handle ResolveChain(const ast::Expr& chain, size_t count, bool in_value) const;

  // The element that an access reads.
  Node Access(const ast::Expr& access) const;
  // A literal or a $param, of whatever type.
  Node Fill(const ast::Expr& fill) const;

 private:
  Handle Function(const ast::Expr& expr, bool in_value) const;
  Handle Name(const ast::Expr& expr) const;
  Handle Param(const ast::Expr& expr) const;
  Handle Size(const ast::Expr& expr) const;
  Handle Load(const ast::Expr& access) const;
  Handle ConditionHandle(const ast::Expr& expr) const;
  internal::IndexHandle Wrap(IndexId id) const;

  absl::StatusOr<NodeId> StepOf(const ast::Expr& access, const internal::ExprNode& node) const;
  absl::Status CheckLag(const ast::Expr& access, IndexId lag) const;

  Environment& environment_;
  const StatementScope& scope_;
};

// Whether a literal is that of an integer.
bool IsIntegerText(absl::string_view literal);

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_INDEX_RESOLVER_H_
