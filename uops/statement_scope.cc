// A statement is walked once to bind every name to an index and to note every
// access; then pack lengths are solved (an access with one unknown pack gives its
// length), instances numbered, and ranges taken from the places where an index
// stands alone.
#include "uops/statement_scope.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/lexer.h"
#include "uops/module.h"

namespace nestor {
namespace {

using ast::Expr;
using ast::ExprKind;
using ast::Item;

bool IsIntegerText(absl::string_view text) {
  return text.find_first_not_of("-0123456789") == absl::string_view::npos;
}

}  // namespace

// ---- Environment

absl::Status Environment::UnknownName(const std::string& name, const ast::Position& position,
                                      absl::string_view what) const {
  std::vector<std::string> known(index_names.begin(), index_names.end());
  for (const auto& [tensor, node] : tensors) known.push_back(tensor);
  for (const auto& [dim, id] : dims) known.push_back(dim);
  for (const auto& [param, type] : params) known.push_back(param);
  std::sort(known.begin(), known.end());
  const bool elsewhere = index_names.contains(name);
  const std::string hint = elsewhere ? ": it is an index elsewhere" : ForeignHint(name);
  return ErrorAt(position, absl::StrCat("unknown ", what, " '", name, "'", hint.empty() ? DidYouMean(name, known) : hint));
}

absl::StatusOr<NodeId> Environment::Tensor(const std::string& name, const ast::Position& position) const {
  const auto it = tensors.find(name);
  if (it != tensors.end()) return it->second;
  if (shapes.contains(name)) {
    return ErrorAt(position, absl::StrCat("'", name, "' is a shape: only its dimensions can be read"));
  }
  return UnknownName(name, position, "tensor");
}

absl::optional<DType> Environment::FindType(const std::string& name) const {
  if (const auto type = TypeByName(name)) return type;
  const auto it = type_variables.find(name);
  if (it != type_variables.end()) return it->second;
  return absl::nullopt;
}

absl::StatusOr<DType> Environment::Type(const ast::TypeName& name) const {
  if (const auto type = FindType(name.text)) return *type;
  return ErrorAt(name.position, absl::StrCat("unknown type '", name.text, "'"));
}

absl::StatusOr<Shape> Environment::Extents(const std::vector<ast::Item>& items) {
  const StatementScope scope(*this);
  Shape shape;
  for (const Item& item : items) {
    if (!item.is_pack) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId extent, scope.IndexOf(*item.expr));
      if (op.graph.pool().HasLoad(extent)) {
        return ErrorAt(item.position, "a dimension cannot depend on a tensor's values");
      }
      shape.push_back(extent);
      continue;
    }
    const auto pack = dim_packs.find(item.pack);
    if (pack == dim_packs.end()) {
      return ErrorAt(item.position, absl::StrCat("unknown pack '..", item.pack, "'"));
    }
    shape.insert(shape.end(), pack->second.begin(), pack->second.end());
  }
  return shape;
}

// ---- Binding

absl::StatusOr<StatementScope> StatementScope::Analyze(const ast::Statement& statement,
                                                       Environment& environment,
                                                       const Shape& scatter_shape) {
  StatementScope scope(environment);
  scope.scatter_ = statement.kind == ast::StatementKind::kScatter;
  if (scope.scatter_) {
    scope.accesses_.push_back({&statement.items, statement.targets[0], scatter_shape, statement.position});
    NESTOR_RETURN_IF_ERROR(scope.WalkItems(statement.items));
  } else {
    NESTOR_RETURN_IF_ERROR(scope.BindLeft(statement));
  }
  NESTOR_RETURN_IF_ERROR(scope.Walk(*statement.expr));
  NESTOR_RETURN_IF_ERROR(scope.SolvePackLengths());
  scope.NumberInstances();
  NESTOR_RETURN_IF_ERROR(scope.ApplyBounds(statement));
  scope.InferRanges();
  NESTOR_RETURN_IF_ERROR(scope.CheckRanges());
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
    const absl::string_view found = item.expr->kind == ExprKind::kChain ? item.expr->operators[0]->text : item.expr->text;
    return ErrorAt(item.position, absl::StrCat("expected the name of an index, found an expression with '", found, "'"));
  }
  const std::string shown = absl::StrCat("'", item.is_pack ? ".." : "", name, "'");
  if (!item.is_pack && environment_->tensors.contains(name)) {
    return ErrorAt(item.position, absl::StrCat("the index ", shown, " has the name of a tensor"));
  }
  if (!item.is_pack && environment_->dims.contains(name)) {
    return ErrorAt(item.position, absl::StrCat("the index ", shown, " has the name of a dimension"));
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
        return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' is a tensor: an element is ", expr.text, "[..]"));
      }
      [[fallthrough]];
    case ExprKind::kPrefix:
    case ExprKind::kChain:
      for (const ast::ExprPtr& arg : expr.args) NESTOR_RETURN_IF_ERROR(Walk(*arg));
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status StatementScope::WalkName(const Expr& expr) {
  const int binding = Lookup(expr.text, false);
  if (binding >= 0) {
    name_bindings_[&expr] = binding;
    return absl::OkStatus();
  }
  if (environment_->dims.contains(expr.text)) return absl::OkStatus();
  const auto tensor = environment_->tensors.find(expr.text);
  if (tensor != environment_->tensors.end()) {
    const int rank = environment_->op.graph.rank(tensor->second);
    if (rank == 0) return absl::OkStatus();
    return ErrorAt(expr.position,
                   absl::StrCat("'", expr.text, "' has ", rank, rank == 1 ? " dimension" : " dimensions",
                                " and is read without indices: write ", expr.text, "[i", rank == 1 ? "" : ", ..",
                                "]; only a call of an op, as NAME = OP(", expr.text, "), takes a whole tensor"));
  }
  if (!scatter_) return environment_->UnknownName(expr.text, expr.position, "name");
  // A scatter runs over every index that it mentions.
  Item item;
  item.position = expr.position;
  item.expr = std::make_unique<Expr>();
  item.expr->kind = ExprKind::kName;
  item.expr->text = expr.text;
  NESTOR_ASSIGN_OR_RETURN(const int created, Bind(item));
  // It belongs to the statement, not to a reduction that it may stand in.
  visible_.pop_back();
  visible_.insert(visible_.begin(), created);
  left_bindings_.push_back(created);
  name_bindings_[&expr] = created;
  return absl::OkStatus();
}

absl::Status StatementScope::WalkReduction(const Expr& expr) {
  std::vector<int> own;
  for (const Item& item : expr.items) {
    NESTOR_ASSIGN_OR_RETURN(const int binding, Bind(item));
    own.push_back(binding);
  }
  NESTOR_RETURN_IF_ERROR(Walk(*expr.args[0]));
  // A scatter may have grown visible_ at the front.
  visible_.erase(std::remove_if(visible_.begin(), visible_.end(),
                                [&](int b) { return std::find(own.begin(), own.end(), b) != own.end(); }),
                 visible_.end());
  reduction_bindings_[&expr] = std::move(own);
  return absl::OkStatus();
}

absl::Status StatementScope::WalkAccess(const Expr& expr) {
  NESTOR_ASSIGN_OR_RETURN(const NodeId tensor, environment_->Tensor(expr.text, expr.position));
  accesses_.push_back({&expr.items, expr.text, environment_->op.graph.shape(tensor), expr.position});
  NESTOR_RETURN_IF_ERROR(WalkItems(expr.items));
  for (const ast::ExprPtr& condition : expr.conditions) NESTOR_RETURN_IF_ERROR(Walk(*condition));
  return absl::OkStatus();
}

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

int StatementScope::KnownLength(const Access& access, std::vector<int>& unknown) const {
  int known = 0;
  for (const Item& item : *access.items) {
    const int length = item.is_pack ? bindings_[pack_bindings_.at(&item)].length : 1;
    if (length >= 0) known += length;
    else unknown.push_back(pack_bindings_.at(&item));
  }
  return known;
}

absl::Status StatementScope::SolvePackLengths() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Access& access : accesses_) {
      std::vector<int> unknown;
      const int known = KnownLength(access, unknown);
      if (unknown.size() != 1) continue;
      bindings_[unknown[0]].length = std::max(0, static_cast<int>(access.shape.size()) - known);
      changed = true;
    }
  }
  for (const Access& access : accesses_) {
    std::vector<int> unknown;
    const int items = KnownLength(access, unknown);
    if (unknown.empty() && items != static_cast<int>(access.shape.size())) {
      return ErrorAt(access.position, absl::StrCat("'", access.tensor, "' has ", access.shape.size(),
                                                   " dimensions and is given ", items, " indices"));
    }
  }
  for (const Binding& binding : bindings_) {
    if (binding.length < 0) {
      return ErrorAt(binding.position, absl::StrCat("the length of the pack '..", binding.name, "' cannot be told"));
    }
  }
  return absl::OkStatus();
}

void StatementScope::NumberInstances() {
  int next = 0;
  for (Binding& binding : bindings_) {
    for (int i = 0; i < binding.length; ++i) binding.instances.push_back(next++);
  }
  ranges_.resize(next);
  origins_.resize(next);
  bounded_.resize(next, false);
  const auto spread = [&](const std::vector<int>& list) {
    std::vector<int> instances;
    for (int b : list) {
      instances.insert(instances.end(), bindings_[b].instances.begin(), bindings_[b].instances.end());
    }
    return instances;
  };
  left_ = spread(left_bindings_);
  for (const auto& [expr, list] : reduction_bindings_) reduced_[expr] = spread(list);
}

absl::Status StatementScope::ApplyBounds(const ast::Statement& statement) {
  const StatementScope without_indices(*environment_);
  for (const ast::Bound& bound : statement.bounds) NESTOR_RETURN_IF_ERROR(CheckBound(*bound.limit));
  for (const ast::Bound& bound : statement.bounds) {
    bool found = false;
    for (const Binding& binding : bindings_) {
      if (binding.is_pack || binding.name != bound.index) continue;
      found = true;
      NESTOR_ASSIGN_OR_RETURN(const IndexId limit, without_indices.IndexOf(*bound.limit));
      if (environment_->op.graph.pool().HasLoad(limit)) {
        return ErrorAt(bound.limit->position, "a bound cannot depend on a tensor's values");
      }
      const int instance = binding.instances[0];
      if (bounded_[instance]) {
        return ErrorAt(bound.position, absl::StrCat("the index '", bound.index, "' is already bounded"));
      }
      ranges_[instance] = limit;
      bounded_[instance] = true;
    }
    if (!found) {
      return ErrorAt(bound.position, absl::StrCat("'", bound.index, "' is not an index of this statement"));
    }
  }
  return absl::OkStatus();
}

// No index, of whatever statement, stands in `limit`.
absl::Status StatementScope::CheckBound(const Expr& limit) const {
  const bool is_tensor = environment_->tensors.contains(limit.text);
  if (limit.kind == ExprKind::kName && !is_tensor && environment_->index_names.contains(limit.text)) {
    return ErrorAt(limit.position, absl::StrCat("a range may not hold an index, here '", limit.text,
                                                "': put the condition into an access, as in x[i, j if j < i]"));
  }
  for (const ast::ExprPtr& arg : limit.args) NESTOR_RETURN_IF_ERROR(CheckBound(*arg));
  for (const Item& item : limit.items) {
    if (!item.is_pack) NESTOR_RETURN_IF_ERROR(CheckBound(*item.expr));
  }
  return absl::OkStatus();
}

void StatementScope::InferRanges() {
  for (const Access& access : accesses_) {
    size_t axis = 0;
    for (const Item& item : *access.items) {
      if (item.is_pack) {
        for (int instance : bindings_[pack_bindings_.at(&item)].instances) Stand(instance, access, axis++);
        continue;
      }
      const auto name = name_bindings_.find(item.expr.get());
      if (item.expr->kind == ExprKind::kName && name != name_bindings_.end()) {
        Stand(bindings_[name->second].instances[0], access, axis);
      }
      ++axis;
    }
  }
}

// Instance `instance` stands alone on `axis` of an access.
void StatementScope::Stand(int instance, const Access& access, size_t axis) {
  if (bounded_[instance]) return;
  const IndexPool& pool = environment_->op.graph.pool();
  const IndexId extent = access.shape[axis];
  const std::string place =
      absl::StrCat("axis ", axis, " of ", access.tensor, " (", SymbolicText(pool, extent), ")");
  if (ranges_[instance].value < 0) {
    ranges_[instance] = extent;
    origins_[instance] = place;
  } else if (ranges_[instance] != extent) {
    std::string name;
    for (const Binding& binding : bindings_) {
      if (std::find(binding.instances.begin(), binding.instances.end(), instance) != binding.instances.end()) {
        name = binding.name;
      }
    }
    environment_->op.equalities.push_back(
        {ranges_[instance], extent,
         absl::StrCat("index ", name, " runs over ", origins_[instance], " and over ", place)});
  }
}

absl::Status StatementScope::CheckRanges() const {
  for (const Binding& binding : bindings_) {
    for (int instance : binding.instances) {
      if (ranges_[instance].value >= 0) continue;
      return ErrorAt(binding.position, absl::StrCat("the index '", binding.name, "' has no range: add 'where ",
                                                    binding.name, " < ..'"));
    }
  }
  return absl::OkStatus();
}

// ---- Index expressions

bool StatementScope::IsIndexValue(const Expr& expr) const {
  switch (expr.kind) {
    case ExprKind::kLiteral: return IsIntegerText(expr.text);
    case ExprKind::kName: return name_bindings_.contains(&expr) || environment_->dims.contains(expr.text);
    case ExprKind::kParam: {
      const auto it = environment_->params.find(expr.text);
      return it != environment_->params.end() && IsInteger(it->second);
    }
    case ExprKind::kSize: return true;
    case ExprKind::kAccess:
    case ExprKind::kReduction: return false;
    case ExprKind::kCall:
      if (FindIndexFunction(expr.text) == nullptr) return false;
      break;
    case ExprKind::kPrefix:
      if (expr.text != "-") return false;
      break;
    case ExprKind::kChain:
      if (!expr.operators[0]->IsArithmetic()) return false;
      break;
  }
  for (const ast::ExprPtr& arg : expr.args) {
    if (!IsIndexValue(*arg)) return false;
  }
  return true;
}

bool StatementScope::IsIntegerLiteral(const Expr& expr) const {
  if (expr.kind == ExprKind::kName || expr.kind == ExprKind::kParam || expr.kind == ExprKind::kSize) return false;
  if (!IsIndexValue(expr)) return false;
  for (const ast::ExprPtr& arg : expr.args) {
    if (!IsIntegerLiteral(*arg)) return false;
  }
  return true;
}

absl::StatusOr<IndexId> StatementScope::NameOf(const Expr& expr) const {
  IndexPool& pool = environment_->op.graph.pool();
  const auto index = name_bindings_.find(&expr);
  if (index != name_bindings_.end()) return pool.Var(bindings_[index->second].instances[0]);
  const auto dim = environment_->dims.find(expr.text);
  if (dim != environment_->dims.end()) return dim->second;
  const auto tensor = environment_->tensors.find(expr.text);
  if (tensor == environment_->tensors.end()) {
    return environment_->UnknownName(expr.text, expr.position, "dimension");
  }
  if (!IsInteger(environment_->op.graph.type(tensor->second))) {
    return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' is not an integer tensor and cannot be an index"));
  }
  return pool.Load(tensor->second.value, {});
}

absl::StatusOr<IndexId> StatementScope::IndexOf(const Expr& expr, bool in_value) const {
  IndexPool& pool = environment_->op.graph.pool();
  switch (expr.kind) {
    case ExprKind::kLiteral: {
      const auto literal = ParseLiteral(expr.text, DType::kI64);
      if (literal) return pool.Const(literal->ToInt());
      return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' does not fit i64, the type of an index"));
    }
    case ExprKind::kName: return NameOf(expr);
    case ExprKind::kParam: {
      const auto it = environment_->params.find(expr.text);
      if (it == environment_->params.end()) {
        return environment_->UnknownName(expr.text, expr.position, "parameter");
      }
      if (IsInteger(it->second)) return pool.Symbol(expr.text);
      return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' is ", Name(it->second), ", an index is an integer"));
    }
    case ExprKind::kSize: {
      const auto pack = environment_->dim_packs.find(expr.text);
      if (pack == environment_->dim_packs.end()) {
        return ErrorAt(expr.position, absl::StrCat("unknown pack of dimensions '..", expr.text, "'"));
      }
      IndexId product = pool.Const(1);
      for (IndexId extent : pack->second) product = pool.Mul(product, extent);
      return product;
    }
    case ExprKind::kAccess: {
      NESTOR_ASSIGN_OR_RETURN(const NodeId tensor, environment_->Tensor(expr.text, expr.position));
      if (!IsInteger(environment_->op.graph.type(tensor))) {
        return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' is not an integer tensor and cannot be an index"));
      }
      if (expr.fill != nullptr || !expr.conditions.empty()) {
        return ErrorAt(expr.position, "an access inside an index takes no fill and no condition");
      }
      NESTOR_ASSIGN_OR_RETURN(const IndexList place,
                              PlaceOf(expr.items, expr.text, environment_->op.graph.shape(tensor)));
      return pool.Load(tensor.value, place);
    }
    case ExprKind::kReduction: return ErrorAt(expr.position, "an index cannot hold a reduction");
    case ExprKind::kCall: return FunctionOf(expr, in_value);
    case ExprKind::kPrefix: {
      if (expr.text != "-") return ErrorAt(expr.position, "expected an index, found a condition");
      NESTOR_ASSIGN_OR_RETURN(const IndexId operand, IndexOf(*expr.args[0], in_value));
      return pool.Neg(operand);
    }
    case ExprKind::kChain: return ChainOf(expr, expr.args.size(), in_value);
  }
  return ErrorAt(expr.position, "expected an index");
}

absl::StatusOr<IndexId> StatementScope::FunctionOf(const Expr& expr, bool in_value) const {
  const IndexFunction* function = FindIndexFunction(expr.text);
  if (function == nullptr) {
    return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' is not a function of indices (those are min, max, floordiv, mod)"));
  }
  if (expr.args.size() != 2) {
    return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' takes 2 operands, is given ", expr.args.size()));
  }
  NESTOR_ASSIGN_OR_RETURN(const IndexId a, IndexOf(*expr.args[0], in_value));
  NESTOR_ASSIGN_OR_RETURN(const IndexId b, IndexOf(*expr.args[1], in_value));
  return environment_->op.graph.pool().Make(function->index, 0, {a, b});
}

// Index expressions are walked recursively.
absl::Status StatementScope::CheckDepth(IndexId e, const ast::Position& position) const {
  constexpr int kMaxDepth = 10000;
  if (environment_->op.graph.pool().Depth(e) <= kMaxDepth) return absl::OkStatus();
  return ErrorAt(position, absl::StrCat("the index expression is too long (more than ", kMaxDepth, " terms)"));
}

absl::StatusOr<IndexId> StatementScope::ChainOf(const Expr& chain, size_t count, bool in_value) const {
  IndexPool& pool = environment_->op.graph.pool();
  NESTOR_ASSIGN_OR_RETURN(IndexId result, IndexOf(*chain.args[0], in_value));
  for (size_t i = 1; i < count; ++i) {
    const InfixOperator& op = *chain.operators[i - 1];
    const ast::Position& position = chain.operator_positions[i - 1];
    if (!op.IsArithmetic()) {
      return ErrorAt(position, absl::StrCat("expected an index, found the operator '", op.text, "'"));
    }
    if (op.index == IndexKind::kDiv && in_value) {
      return ErrorAt(position, "'/' between indices in value position: write floordiv(..) or f32(..)");
    }
    NESTOR_ASSIGN_OR_RETURN(const IndexId operand, IndexOf(*chain.args[i], in_value));
    result = CombineIndices(pool, op, result, operand);
    NESTOR_RETURN_IF_ERROR(CheckDepth(result, position));
  }
  return result;
}

absl::StatusOr<IndexId> StatementScope::ConditionOf(const Expr& expr) const {
  IndexPool& pool = environment_->op.graph.pool();
  if (expr.kind == ExprKind::kLiteral && (expr.text == "true" || expr.text == "false")) {
    return pool.Const(expr.text == "true");
  }
  if (expr.kind == ExprKind::kPrefix && expr.text == "!") {
    NESTOR_ASSIGN_OR_RETURN(const IndexId operand, ConditionOf(*expr.args[0]));
    return pool.Not(operand);
  }
  if (expr.kind != ExprKind::kChain || expr.operators[0]->IsArithmetic()) {
    return ErrorAt(expr.position, "expected a condition (a comparison of indices, or such joined by && || !)");
  }
  const InfixOperator& op = *expr.operators[0];
  if (op.logical) {
    NESTOR_ASSIGN_OR_RETURN(IndexId result, ConditionOf(*expr.args[0]));
    for (size_t i = 1; i < expr.args.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId operand, ConditionOf(*expr.args[i]));
      result = CombineIndices(pool, op, result, operand);
      NESTOR_RETURN_IF_ERROR(CheckDepth(result, expr.operator_positions[i - 1]));
    }
    return result;
  }
  NESTOR_ASSIGN_OR_RETURN(const IndexId a, IndexOf(*expr.args[0]));
  NESTOR_ASSIGN_OR_RETURN(const IndexId b, IndexOf(*expr.args[1]));
  return CombineIndices(pool, op, a, b);
}

absl::StatusOr<IndexList> StatementScope::PlaceOf(const std::vector<Item>& items, absl::string_view tensor,
                                                  const Shape& shape) const {
  IndexPool& pool = environment_->op.graph.pool();
  IndexList place;
  for (const Item& item : items) {
    if (item.is_pack) {
      const auto pack = pack_bindings_.find(&item);
      if (pack == pack_bindings_.end()) {
        return ErrorAt(item.position, absl::StrCat("unknown pack '..", item.pack, "'"));
      }
      for (int instance : bindings_[pack->second].instances) place.push_back(pool.Var(instance));
      continue;
    }
    NESTOR_ASSIGN_OR_RETURN(const IndexId e, IndexOf(*item.expr));
    const size_t axis = place.size();
    place.push_back(e);
    if (axis >= shape.size()) continue;  // too many indices are an error elsewhere
    const std::string beyond = AlwaysOutOfBounds(pool, e, shape[axis], tensor, axis);
    if (!beyond.empty()) environment_->op.AddWarning(std::string(ErrorAt(item.position, beyond).message()));
  }
  return place;
}

}  // namespace nestor
