// Names become numbers before anything is built: the same letter may be one index on the left and
// another in each of two reductions, and a pack is as many indices as its tensor needs.
//
// A statement is walked once to bind every name to an index and to note every access; then pack
// lengths are solved (an access with one unknown pack gives its length) and instances numbered.
//
//   y[..b, i] = max[k](x[..b, i, k])     x has rank 4: the instances are b b i k
#include "uops/notation/statement_scope.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/index_resolver.h"
#include "uops/notation/lexer.h"

namespace nestor {

using ast::Expr;
using ast::ExprKind;
using ast::Item;

// ---- Binding

// A scatter has no left side that binds: it runs over the indices that it mentions.
absl::StatusOr<StatementScope> StatementScope::Analyze(const ast::Statement& statement,
                                                       Environment& environment,
                                                       const Shape& scatter_shape) {
  StatementScope scope;
  scope.environment_ = &environment;
  scope.scatter_ = statement.kind == ast::StatementKind::kScatter;
  if (scope.scatter_) {
    scope.accesses_.push_back({&statement.items, scatter_shape.size()});
    NESTOR_RETURN_IF_ERROR(scope.WalkItems(statement.items));
  } else {
    NESTOR_RETURN_IF_ERROR(scope.BindLeft(statement));
  }
  NESTOR_RETURN_IF_ERROR(scope.Walk(*statement.expr));
  NESTOR_RETURN_IF_ERROR(scope.SolvePackLengths());
  scope.NumberInstances();
  NESTOR_RETURN_IF_ERROR(scope.ApplyBounds(statement));
  return scope;
}

absl::Status StatementScope::BindLeft(const ast::Statement& statement) {
  for (const Item& item : statement.items) {
    NESTOR_ASSIGN_OR_RETURN(const int binding, Bind(item));
    left_bindings_.push_back(binding);
  }
  return absl::OkStatus();
}

// A new index or pack of indices.
absl::StatusOr<int> StatementScope::Bind(const Item& item) {
  const std::string& name = item.is_pack ? item.pack : item.expr->text;
  if (!item.is_pack && item.expr->kind != ExprKind::kName) {
    const absl::string_view found =
        item.expr->kind == ExprKind::kChain ? item.expr->operators[0]->text : item.expr->text;
    return ErrorAt(
        item.position,
        absl::StrCat("expected the name of an index, found an expression with '", found, "'"));
  }
  const std::string shown = absl::StrCat("'", item.is_pack ? ".." : "", name, "'");
  if (!item.is_pack && environment_->tensors.contains(name)) {
    return ErrorAt(item.position, absl::StrCat("the index ", shown, " has the name of a tensor"));
  }
  if (!item.is_pack && environment_->dims.contains(name)) {
    return ErrorAt(item.position,
                   absl::StrCat("the index ", shown, " has the name of a dimension"));
  }
  if (Lookup(name, item.is_pack) >= 0) {
    return ErrorAt(item.position, absl::StrCat("the index ", shown, " is already in use here"));
  }
  if (!item.is_pack) environment_->index_names.insert(name);
  bindings_.push_back({name, item.is_pack, item.position, item.is_pack ? -1 : 1, {}});
  visible_.push_back(static_cast<int>(bindings_.size()) - 1);
  return visible_.back();
}

int StatementScope::Lookup(absl::string_view name, bool is_pack) const {
  for (int binding : visible_) {
    if (bindings_[binding].name == name && bindings_[binding].is_pack == is_pack) return binding;
  }
  return -1;
}

// In the order of the text, so that the instances are numbered in it.
absl::Status StatementScope::Walk(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kLiteral:
    case ExprKind::kSize: return absl::OkStatus();
    case ExprKind::kParam:
      if (environment_->params.contains(expr.text)) return absl::OkStatus();
      return environment_->UnknownName(expr.text, expr.position, "parameter");
    case ExprKind::kName: return WalkName(expr);
    case ExprKind::kAccess: return WalkAccess(expr);
    case ExprKind::kReduction: return WalkReduction(expr);
    case ExprKind::kCall:
      if (environment_->tensors.contains(expr.text) && !ScalarOpByName(expr.text)) {
        return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' is a tensor: an element is ",
                                                   expr.text, "[..]"));
      }
      [[fallthrough]];
    case ExprKind::kPrefix:
    case ExprKind::kChain:
      for (const ast::ExprPtr& arg : expr.args) NESTOR_RETURN_IF_ERROR(Walk(*arg));
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// An index in scope, a dimension or a tensor without axes; else, in a scatter, a new index.
absl::Status StatementScope::WalkName(const Expr& expr) {
  const int binding = Lookup(expr.text, false);
  if (binding >= 0) {
    name_bindings_[&expr] = binding;
    return absl::OkStatus();
  }
  if (environment_->dims.contains(expr.text)) return absl::OkStatus();
  const auto tensor = environment_->tensors.find(expr.text);
  if (tensor != environment_->tensors.end() && !tensor->second.valid()) return absl::OkStatus();
  if (tensor != environment_->tensors.end()) {
    const int rank = environment_->op.graph.rank(tensor->second);
    if (rank == 0) return absl::OkStatus();
    return ErrorAt(
        expr.position,
        absl::StrCat("'", expr.text, "' has ", rank, rank == 1 ? " dimension" : " dimensions",
                     " and is read without indices: write ", expr.text, "[i",
                     rank == 1 ? "" : ", ..", "]; only a call of an op, as NAME = OP(", expr.text,
                     "), takes a whole tensor"));
  }
  if (!scatter_) return environment_->UnknownName(expr.text, expr.position, "name");
  // A scatter runs over every index that it mentions.
  Item item;
  item.position = expr.position;
  item.expr = std::make_unique<Expr>();
  item.expr->kind = ExprKind::kName;
  item.expr->text = expr.text;
  NESTOR_ASSIGN_OR_RETURN(const int created, Bind(item));
  // It belongs to the statement, not to a reduction that may contain it.
  visible_.pop_back();
  visible_.insert(visible_.begin(), created);
  left_bindings_.push_back(created);
  name_bindings_[&expr] = created;
  return absl::OkStatus();
}

// The reduction's indices are visible in its body alone.
absl::Status StatementScope::WalkReduction(const Expr& expr) {
  std::vector<int> own;
  for (const Item& item : expr.items) {
    NESTOR_ASSIGN_OR_RETURN(const int binding, Bind(item));
    own.push_back(binding);
  }
  NESTOR_RETURN_IF_ERROR(Walk(*expr.args[0]));
  // A scatter may have grown visible_ at the front.
  visible_.erase(
      std::remove_if(visible_.begin(), visible_.end(),
                     [&](int b) { return std::find(own.begin(), own.end(), b) != own.end(); }),
      visible_.end());
  reduction_bindings_[&expr] = std::move(own);
  return absl::OkStatus();
}

// Remembers the tensor's rank, from which the lengths of packs follow.
absl::Status StatementScope::WalkAccess(const Expr& expr) {
  NESTOR_ASSIGN_OR_RETURN(const NodeId tensor, environment_->Tensor(expr.text, expr.position));
  if (tensor.valid())
    accesses_.push_back({&expr.items, environment_->op.graph.shape(tensor).size()});
  NESTOR_RETURN_IF_ERROR(WalkItems(expr.items));
  for (const ast::ExprPtr& condition : expr.conditions) NESTOR_RETURN_IF_ERROR(Walk(*condition));
  return absl::OkStatus();
}

// Packs have names of their own; a scatter binds those that are new.
absl::Status StatementScope::WalkItems(const std::vector<Item>& items) {
  for (const Item& item : items) {
    if (!item.is_pack) {
      NESTOR_RETURN_IF_ERROR(Walk(*item.expr));
      continue;
    }
    int binding = Lookup(item.pack, true);
    if (binding < 0) {
      if (!scatter_) {
        return ErrorAt(item.position, absl::StrCat("unknown pack '..", item.pack,
                                                   "': neither on the left nor of a reduction"));
      }
      NESTOR_ASSIGN_OR_RETURN(binding, Bind(item));
      left_bindings_.push_back(binding);
    }
    pack_bindings_[&item] = binding;
  }
  return absl::OkStatus();
}

// ---- Lengths and ranges

// The axes that items of known length take; packs of unknown length are appended.
int StatementScope::KnownLength(const Access& access, std::vector<int>& unknown) const {
  int known = 0;
  for (const Item& item : *access.items) {
    const int length = item.is_pack ? bindings_[pack_bindings_.at(&item)].length : 1;
    if (length >= 0) known += length;
    else unknown.push_back(pack_bindings_.at(&item));
  }
  return known;
}

// Each length may leave a single unknown one in another access.
absl::Status StatementScope::SolvePackLengths() {
  for (bool changed = !pack_bindings_.empty(); changed;) {
    changed = false;
    for (const Access& access : accesses_) {
      std::vector<int> unknown;
      const int known = KnownLength(access, unknown);
      if (unknown.size() != 1) continue;
      bindings_[unknown[0]].length = std::max(0, static_cast<int>(access.rank) - known);
      changed = true;
    }
  }
  for (const Binding& binding : bindings_) {
    if (binding.length < 0) {
      return ErrorAt(binding.position,
                     absl::StrCat("the length of the pack '..", binding.name, "' cannot be told"));
    }
  }
  return absl::OkStatus();
}

// In the order of binding, which is that of the text.
void StatementScope::NumberInstances() {
  for (Binding& binding : bindings_) {
    for (int i = 0; i < binding.length; ++i) {
      binding.instances.push_back(static_cast<int>(variables_.size()));
      variables_.push_back({binding.name, absl::nullopt, binding.position});
    }
  }
  left_ = InstancesOf(left_bindings_);
  for (int instance : left_) {
    if (!environment_->block || variables_[instance].name != environment_->block->index) continue;
    variables_[instance].extent = environment_->block->extent;
    step_ = instance;
  }
  for (const auto& [expr, list] : reduction_bindings_) reduced_[expr] = InstancesOf(list);
}

std::vector<int> StatementScope::InstancesOf(const std::vector<int>& bindings) const {
  std::vector<int> instances;
  for (int b : bindings) {
    instances.insert(instances.end(), bindings_[b].instances.begin(), bindings_[b].instances.end());
  }
  return instances;
}

int StatementScope::InstanceOf(const Expr& name) const {
  const auto it = name_bindings_.find(&name);
  return it == name_bindings_.end() ? -1 : bindings_[it->second].instances[0];
}

const std::vector<int>* StatementScope::InstancesOf(const Item& pack) const {
  const auto it = pack_bindings_.find(&pack);
  return it == pack_bindings_.end() ? nullptr : &bindings_[it->second].instances;
}

// ---- Bounds

// A bound holds for every index of that name in the statement.
absl::Status StatementScope::ApplyBounds(const ast::Statement& statement) {
  for (const ast::Bound& bound : statement.bounds) NESTOR_RETURN_IF_ERROR(CheckBound(*bound.limit));
  for (const ast::Bound& bound : statement.bounds) {
    bool found = false;
    for (Binding& binding : bindings_) {
      if (binding.is_pack || binding.name != bound.index) continue;
      found = true;
      NESTOR_RETURN_IF_ERROR(ApplyBound(bound, binding));
    }
    if (!found) {
      return ErrorAt(bound.position,
                     absl::StrCat("'", bound.index, "' is not an index of this statement"));
    }
  }
  return absl::OkStatus();
}

// An index takes one bound only.
absl::Status StatementScope::ApplyBound(const ast::Bound& bound, Binding& binding) {
  NESTOR_ASSIGN_OR_RETURN(const IndexId limit, IndexResolver(*environment_).Index(*bound.limit));
  if (environment_->op.graph.pool().HasLoad(limit)) {
    return ErrorAt(bound.limit->position, "a bound cannot depend on a tensor's values");
  }
  absl::optional<IndexId>& extent = variables_[binding.instances[0]].extent;
  if (extent)
    return ErrorAt(bound.position,
                   absl::StrCat("the index '", bound.index, "' is already bounded"));
  extent = limit;
  return absl::OkStatus();
}

// Checks that `limit` holds no index of any statement.
absl::Status StatementScope::CheckBound(const Expr& limit) const {
  const bool is_tensor = environment_->tensors.contains(limit.text);
  if (limit.kind == ExprKind::kName && !is_tensor &&
      environment_->index_names.contains(limit.text)) {
    return ErrorAt(limit.position,
                   absl::StrCat("a range may not hold an index, here '", limit.text,
                                "': put the condition into an access, as in x[i, j if j < i]"));
  }
  for (const ast::ExprPtr& arg : limit.args) NESTOR_RETURN_IF_ERROR(CheckBound(*arg));
  for (const Item& item : limit.items) {
    if (!item.is_pack) NESTOR_RETURN_IF_ERROR(CheckBound(*item.expr));
  }
  return absl::OkStatus();
}

}  // namespace nestor
