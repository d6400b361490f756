// The types of a statement's expressions: unification over the statement
// (SEMANTICS 2, "Types of values"). Literals and index values take the type of
// what they meet; what meets nothing is f32, i64 or bool.
#ifndef NESTOR_UOPS_TYPE_INFERENCE_H_
#define NESTOR_UOPS_TYPE_INFERENCE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "uops/ast.h"
#include "uops/environment.h"
#include "uops/statement_scope.h"

namespace nestor {

// How many leading operands of an arithmetic chain are one index value.
size_t IndexPrefix(const StatementScope& scope, const ast::Expr& chain);

class TypeInference {
 public:
  // `declared`: the type that the whole expression must have, of a scatter.
  static absl::StatusOr<TypeInference> Infer(const ast::Expr& expr, absl::optional<DType> declared,
                                             const Environment& environment, const StatementScope& scope);

  // The type of `expr`, once all is unified.
  DType TypeOf(const ast::Expr& expr) const;
  // Of the operands of `expr`, a chain or call: the last operand's.
  DType OperandType(const ast::Expr& expr) const;

 private:
  struct Variable {  // union-find over the expressions' types
    int parent;
    absl::optional<DType> type;
    bool float_literal = false;
    bool index_value = false;
  };

  TypeInference(const Environment& environment, const StatementScope& scope)
      : environment_(environment), scope_(scope) {}
  int NewVariable(absl::optional<DType> type);
  int Root(int variable) const;
  absl::Status Unify(int a, int b, const ast::Position& position);
  DType Resolved(int variable) const;

  absl::StatusOr<int> Visit(const ast::Expr& expr);
  absl::StatusOr<int> VisitUnrecorded(const ast::Expr& expr);
  absl::StatusOr<int> VisitChain(const ast::Expr& expr);
  absl::StatusOr<int> VisitFunction(const ast::Expr& expr);
  absl::StatusOr<int> VisitCast(const ast::Expr& expr, DType target);

  const Environment& environment_;
  const StatementScope& scope_;
  std::vector<Variable> variables_;
  absl::flat_hash_map<const ast::Expr*, int> of_;
  absl::flat_hash_map<const ast::Expr*, int> operand_of_;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_TYPE_INFERENCE_H_
