// The indices of one statement: which there are, how long the packs are, what
// each ranges over, and index expressions over them.
//
// Every index (each element of a pack too) is an *instance*, numbered from
// outside in and from left to right; Var(i) of the pool is instance i while a
// statement is elaborated.
#ifndef NESTOR_UOPS_STATEMENT_SCOPE_H_
#define NESTOR_UOPS_STATEMENT_SCOPE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "uops/ast.h"
#include "uops/environment.h"
#include "uops/index_expr.h"

namespace nestor {

class StatementScope {
 public:
  // Analyses `statement` and adds the equalities that it implies to
  // environment.op. `scatter_shape`: the result's extents, of a scatter.
  static absl::StatusOr<StatementScope> Analyze(const ast::Statement& statement, Environment& environment,
                                                const Shape& scatter_shape);

  // A scope without indices: for dimensions and values of calls.
  explicit StatementScope(Environment& environment) : environment_(&environment) {}

  // The instances of the left side's indices, of a definition, in order; of a
  // scatter, of all its own indices.
  const std::vector<int>& left() const { return left_; }
  // The instances that a reduction introduces, in order.
  const std::vector<int>& reduced(const ast::Expr& reduction) const { return reduced_.at(&reduction); }
  // What instance i ranges over.
  IndexId range(int instance) const { return ranges_[instance]; }

  // True for an expression of indices, dimensions, integer $params and integers.
  bool IsIndexValue(const ast::Expr& expr) const;
  // True for an expression of integer literals alone; one is an index value too.
  bool IsIntegerLiteral(const ast::Expr& expr) const;

  // `in_value`: the expression stands in value position, where "/" is an error.
  absl::StatusOr<IndexId> IndexOf(const ast::Expr& expr, bool in_value = false) const;
  // The first `count` operands of a chain, as one index expression.
  absl::StatusOr<IndexId> ChainOf(const ast::Expr& chain, size_t count, bool in_value) const;
  absl::StatusOr<IndexId> ConditionOf(const ast::Expr& expr) const;
  // What `items` say of the axes of `tensor`, which has that shape. Adds a warning to
  // environment.op for each that is always out of bounds.
  absl::StatusOr<IndexList> PlaceOf(const std::vector<ast::Item>& items, absl::string_view tensor,
                                    const Shape& shape) const;

 private:
  struct Binding {
    std::string name;
    bool is_pack;
    ast::Position position;
    int length;  // of a pack: -1 until known
    std::vector<int> instances;
  };
  struct Access {  // a list of items that stands against dimensions
    const std::vector<ast::Item>* items;
    std::string tensor;
    Shape shape;
    ast::Position position;
  };

  absl::Status BindLeft(const ast::Statement& statement);
  absl::StatusOr<int> Bind(const ast::Item& item);
  absl::Status Walk(const ast::Expr& expr);
  absl::Status WalkItems(const std::vector<ast::Item>& items);
  absl::Status WalkName(const ast::Expr& expr);
  absl::Status WalkReduction(const ast::Expr& expr);
  absl::Status WalkAccess(const ast::Expr& expr);
  int Lookup(absl::string_view name, bool is_pack) const;

  absl::Status SolvePackLengths();
  int KnownLength(const Access& access, std::vector<int>& unknown) const;
  void NumberInstances();
  absl::Status ApplyBounds(const ast::Statement& statement);
  absl::Status CheckBound(const ast::Expr& limit) const;
  void InferRanges();
  void Stand(int instance, const Access& access, size_t axis);
  absl::Status CheckRanges() const;

  absl::Status CheckDepth(IndexId e, const ast::Position& position) const;
  absl::StatusOr<IndexId> NameOf(const ast::Expr& expr) const;
  absl::StatusOr<IndexId> FunctionOf(const ast::Expr& expr, bool in_value) const;

  Environment* environment_;
  bool scatter_ = false;
  std::vector<Binding> bindings_;
  std::vector<int> visible_;  // while walking
  absl::flat_hash_map<const ast::Item*, int> pack_bindings_;
  absl::flat_hash_map<const ast::Expr*, int> name_bindings_;
  absl::flat_hash_map<const ast::Expr*, std::vector<int>> reduction_bindings_;
  std::vector<int> left_bindings_;
  std::vector<Access> accesses_;  // in text order of their opening bracket
  std::vector<int> left_;
  absl::flat_hash_map<const ast::Expr*, std::vector<int>> reduced_;
  std::vector<IndexId> ranges_;
  std::vector<std::string> origins_;  // where the range of each was found
  std::vector<bool> bounded_;         // by `where`
};

}  // namespace nestor

#endif  // NESTOR_UOPS_STATEMENT_SCOPE_H_
