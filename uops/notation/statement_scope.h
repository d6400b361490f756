// The indices of one statement of the notation: which names there are, what each use of a name
// means, and how long packs are.
//
// Every index (each element of a pack, too) is an *instance*, numbered from outside in and from
// left to right; it is the variable of that number of the statement that is built.
//
//   y[..n, c] = x[..n, c] / sum[k](x[..n, k])    where x has rank 3
//     ..n has length 2, as x has 2 + 1 axes; its instances are 0 and 1, that of c is 2, of k 3
#ifndef NESTOR_UOPS_NOTATION_STATEMENT_SCOPE_H_
#define NESTOR_UOPS_NOTATION_STATEMENT_SCOPE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "uops/notation/ast.h"
#include "uops/notation/environment.h"
#include "uops/statement_builder.h"

namespace nestor {

class StatementScope {
 public:
  // Binds the names of `statement` and notes its indices in the environment. `scatter_shape`: for a
  // scatter, the extents of the result.
  static absl::StatusOr<StatementScope> Analyze(const ast::Statement& statement,
                                                Environment& environment,
                                                const Shape& scatter_shape);

  // A scope without indices: for dimensions and values of calls.
  StatementScope() = default;

  // The instances, with what `where` says about them.
  const std::vector<internal::IndexVariable>& variables() const { return variables_; }
  // The instances of the indices on the left of a definition, in order; for a scatter, all its own.
  const std::vector<int>& left() const { return left_; }
  // The instance of the block's index. REQUIRES: it is on the left.
  int step() const { return step_; }
  // The instances that a reduction introduces, in order.
  const std::vector<int>& reduced(const ast::Expr& reduction) const {
    return reduced_.at(&reduction);
  }
  // The instance that a name means, or -1 if it is no index.
  int InstanceOf(const ast::Expr& name) const;
  // The instances of a pack of indices, or null if it is none.
  const std::vector<int>* InstancesOf(const ast::Item& pack) const;

 private:
  struct Binding {
    std::string name;
    bool is_pack;
    ast::Position position;
    int length;  // of a pack: -1 until known
    std::vector<int> instances;
  };
  struct Access {  // a list of items, each against an axis or, for a pack, several
    const std::vector<ast::Item>* items;
    size_t rank;
  };

  // The walk that binds.
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
  std::vector<int> InstancesOf(const std::vector<int>& bindings) const;
  absl::Status ApplyBounds(const ast::Statement& statement);
  absl::Status ApplyBound(const ast::Bound& bound, Binding& binding);
  absl::Status CheckBound(const ast::Expr& limit) const;

  Environment* environment_ = nullptr;
  bool scatter_ = false;
  std::vector<Binding> bindings_;
  std::vector<int> visible_;  // while walking
  absl::flat_hash_map<const ast::Item*, int> pack_bindings_;
  absl::flat_hash_map<const ast::Expr*, int> name_bindings_;
  absl::flat_hash_map<const ast::Expr*, std::vector<int>> reduction_bindings_;
  std::vector<int> left_bindings_;
  std::vector<Access> accesses_;
  std::vector<int> left_;
  int step_ = -1;
  absl::flat_hash_map<const ast::Expr*, std::vector<int>> reduced_;
  std::vector<internal::IndexVariable> variables_;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_STATEMENT_SCOPE_H_
