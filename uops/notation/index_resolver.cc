// Names are looked up in the statement's indices first, then among dimensions and tensors. A tensor's
// element is an access, whose subscripts are index expressions in their turn.
//
// An access of a tensor of the block that is being resolved reads a node of the same step, or a
// carry, which stands for the tensor at earlier steps; here it is found how many, and which way the
// block runs.
#include "uops/notation/index_resolver.h"

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/lexer.h"
#include "uops/recurrence.h"
#include "uops/statement_builder.h"

namespace nestor {

using ast::Expr;
using ast::ExprKind;
using ast::Item;
using internal::ExprNode;
using internal::ExprNodePtr;
using internal::Form;
using internal::MakeNode;
using internal::NodeAt;

namespace {

bool IsBoolText(absl::string_view text) { return text == "true" || text == "false"; }

const StatementScope& NoStatement() {
  static const auto* const none = new StatementScope;
  return *none;
}

}  // namespace

bool IsIntegerText(absl::string_view literal) {
  return literal.find_first_not_of("-0123456789") == absl::string_view::npos;
}

IndexResolver::IndexResolver(Environment& environment)
    : IndexResolver(environment, NoStatement()) {}

internal::IndexHandle IndexResolver::Wrap(IndexId id) const {
  return internal::HandleOf(environment_.op.graph, id);
}

std::vector<internal::IndexHandle> IndexResolver::Handles(const std::vector<int>& instances) const {
  std::vector<internal::IndexHandle> handles;
  for (int instance : instances) {
    handles.push_back(Wrap(environment_.op.graph.pool().Var(instance)));
    handles.back().alone = true;
  }
  return handles;
}

absl::StatusOr<IndexId> IndexResolver::Index(const Expr& expr) const {
  NESTOR_ASSIGN_OR_RETURN(const internal::IndexHandle handle, Resolve(expr, false));
  return handle.id;
}

absl::StatusOr<IndexId> IndexResolver::Condition(const Expr& expr) const {
  NESTOR_ASSIGN_OR_RETURN(const internal::IndexHandle handle, ConditionHandle(expr));
  return handle.id;
}

// One case per kind of expression.
IndexResolver::Handle IndexResolver::Resolve(const Expr& expr, bool in_value) const {
  switch (expr.kind) {
    case ExprKind::kLiteral: {
      const auto literal = ParseLiteral(expr.text, DType::kI64);
      if (literal) return Wrap(environment_.op.graph.pool().Const(literal->ToInt()));
      return ErrorAt(expr.position,
                     absl::StrCat("'", expr.text, "' does not fit i64, the type of an index"));
    }
    case ExprKind::kName: return Name(expr);
    case ExprKind::kParam: return Param(expr);
    case ExprKind::kSize: return Size(expr);
    case ExprKind::kAccess: return Load(expr);
    case ExprKind::kReduction: return ErrorAt(expr.position, "an index cannot hold a reduction");
    case ExprKind::kCall: return Function(expr, in_value);
    case ExprKind::kPrefix: {
      if (expr.text != "-") return ErrorAt(expr.position, "expected an index, found a condition");
      NESTOR_ASSIGN_OR_RETURN(internal::IndexHandle operand, Resolve(*expr.args[0], in_value));
      operand.id = environment_.op.graph.pool().Neg(operand.id);
      operand.alone = false;
      return operand;
    }
    case ExprKind::kChain: return ResolveChain(expr, expr.args.size(), in_value);
  }
  return ErrorAt(expr.position, "expected an index");
}

// An index, a dimension, or a tensor of rank 0, whose element is then loaded.
IndexResolver::Handle IndexResolver::Name(const Expr& expr) const {
  const int instance = scope_.InstanceOf(expr);
  if (instance >= 0) return Handles({instance})[0];
  const auto dim = environment_.dims.find(expr.text);
  if (dim != environment_.dims.end()) return Wrap(dim->second);
  if (environment_.tensors.contains(expr.text)) return Load(expr);
  return environment_.UnknownName(expr.text, expr.position, "dimension");
}

// An integer $param is a symbol, like a dimension.
IndexResolver::Handle IndexResolver::Param(const Expr& expr) const {
  const auto it = environment_.params.find(expr.text);
  if (it == environment_.params.end())
    return environment_.UnknownName(expr.text, expr.position, "parameter");
  if (IsInteger(it->second)) return Wrap(environment_.op.graph.pool().Symbol(expr.text));
  return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' is ", nestor::Name(it->second),
                                             ", an index is an integer"));
}

// size(..B): the product of the pack's dimensions; 1 for an empty one.
IndexResolver::Handle IndexResolver::Size(const Expr& expr) const {
  const auto pack = environment_.dim_packs.find(expr.text);
  if (pack == environment_.dim_packs.end()) {
    return ErrorAt(expr.position, absl::StrCat("unknown pack of dimensions '..", expr.text, "'"));
  }
  IndexPool& pool = environment_.op.graph.pool();
  IndexId product = pool.Const(1);
  for (IndexId extent : pack->second) product = pool.Mul(product, extent);
  return Wrap(product);
}

IndexResolver::Handle IndexResolver::Load(const Expr& access) const {
  NESTOR_ASSIGN_OR_RETURN(const ExprNodePtr node, Access(access));
  internal::IndexHandle load = internal::LoadOf(node);
  if (!load.error.empty()) return ErrorAt(access.position, load.error);
  return load;
}

// min, max, floordiv, mod.
IndexResolver::Handle IndexResolver::Function(const Expr& expr, bool in_value) const {
  const IndexFunction* function = FindIndexFunction(expr.text);
  if (function == nullptr) {
    return ErrorAt(
        expr.position,
        absl::StrCat("'", expr.text,
                     "' is not a function of indices (those are min, max, floordiv, mod)"));
  }
  if (expr.args.size() != 2) {
    return ErrorAt(expr.position,
                   absl::StrCat("'", expr.text, "' takes 2 operands, is given ", expr.args.size()));
  }
  NESTOR_ASSIGN_OR_RETURN(internal::IndexHandle a, Resolve(*expr.args[0], in_value));
  NESTOR_ASSIGN_OR_RETURN(const internal::IndexHandle b, Resolve(*expr.args[1], in_value));
  internal::IndexHandle result = Combine(*function, std::move(a), b);
  if (!result.error.empty()) return ErrorAt(expr.position, result.error);
  return result;
}

IndexResolver::Handle IndexResolver::ResolveChain(const Expr& chain, size_t count,
                                                  bool in_value) const {
  NESTOR_ASSIGN_OR_RETURN(internal::IndexHandle result, Resolve(*chain.args[0], in_value));
  for (size_t i = 1; i < count; ++i) {
    const InfixOperator& op = *chain.operators[i - 1];
    const ast::Position& position = chain.operator_positions[i - 1];
    if (!op.IsArithmetic()) {
      return ErrorAt(position,
                     absl::StrCat("expected an index, found the operator '", op.text, "'"));
    }
    if (op.index == IndexKind::kDiv && in_value) {
      return ErrorAt(position,
                     "'/' between indices in value position: write floordiv(..) or f32(..)");
    }
    NESTOR_ASSIGN_OR_RETURN(const internal::IndexHandle operand, Resolve(*chain.args[i], in_value));
    result = Combine(op, std::move(result), operand);
    if (!result.error.empty()) return ErrorAt(position, result.error);
  }
  return result;
}

// Comparisons of indices, joined by && || !; or a constant.
IndexResolver::Handle IndexResolver::ConditionHandle(const Expr& expr) const {
  if (expr.kind == ExprKind::kLiteral && IsBoolText(expr.text)) {
    return Wrap(environment_.op.graph.pool().Const(expr.text == "true"));
  }
  if (expr.kind == ExprKind::kPrefix && expr.text == "!") {
    NESTOR_ASSIGN_OR_RETURN(internal::IndexHandle operand, ConditionHandle(*expr.args[0]));
    return Not(std::move(operand));
  }
  if (expr.kind != ExprKind::kChain || expr.operators[0]->IsArithmetic()) {
    return ErrorAt(expr.position,
                   "expected a condition (a comparison of indices, or such joined by && || !)");
  }
  const bool joins = expr.operators[0]->logical;
  const auto operand = [&](size_t i) {
    return joins ? ConditionHandle(*expr.args[i]) : Resolve(*expr.args[i], false);
  };
  NESTOR_ASSIGN_OR_RETURN(internal::IndexHandle result, operand(0));
  for (size_t i = 1; i < expr.args.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(const internal::IndexHandle next, operand(i));
    result = Combine(*expr.operators[i - 1], std::move(result), next);
    if (!result.error.empty()) return ErrorAt(expr.operator_positions[i - 1], result.error);
  }
  return result;
}

// A pack is spread to its indices; all of them have the position of the pack in the text.
absl::StatusOr<std::vector<internal::IndexHandle>> IndexResolver::Place(
    const std::vector<Item>& items) const {
  std::vector<internal::IndexHandle> place;
  for (const Item& item : items) {
    const size_t first = place.size();
    if (item.is_pack) {
      const std::vector<int>* instances = scope_.InstancesOf(item);
      if (instances == nullptr)
        return ErrorAt(item.position, absl::StrCat("unknown pack '..", item.pack, "'"));
      for (internal::IndexHandle& index : Handles(*instances)) place.push_back(std::move(index));
    } else {
      NESTOR_ASSIGN_OR_RETURN(internal::IndexHandle index, Resolve(*item.expr, false));
      place.push_back(std::move(index));
    }
    for (size_t i = first; i < place.size(); ++i) place[i].position = item.position;
  }
  return place;
}

// A pack is all its dimensions, in order.
absl::StatusOr<Shape> IndexResolver::Extents(const std::vector<Item>& dims) const {
  Shape shape;
  for (const Item& item : dims) {
    if (!item.is_pack) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId extent, Index(*item.expr));
      if (environment_.op.graph.pool().HasLoad(extent)) {
        return ErrorAt(item.position, "a dimension cannot depend on a tensor's values");
      }
      shape.push_back(extent);
      continue;
    }
    const auto pack = environment_.dim_packs.find(item.pack);
    if (pack == environment_.dim_packs.end()) {
      return ErrorAt(item.position, absl::StrCat("unknown pack '..", item.pack, "'"));
    }
    shape.insert(shape.end(), pack->second.begin(), pack->second.end());
  }
  return shape;
}

// ---- Accesses

IndexResolver::Node IndexResolver::Fill(const Expr& fill) const {
  if (fill.kind == ExprKind::kLiteral) {
    ExprNode node = NodeAt(Form::kLiteral, fill.position);
    node.type = IsBoolText(fill.text)      ? DType::kBool
                : IsIntegerText(fill.text) ? DType::kI64
                                           : DType::kF64;
    node.text = fill.text;
    return MakeNode(std::move(node));
  }
  const auto it = environment_.params.find(fill.text);
  if (it == environment_.params.end())
    return environment_.UnknownName(fill.text, fill.position, "parameter");
  ExprNode node = NodeAt(Form::kParam, fill.position);
  node.type = it->second;
  node.text = fill.text;
  return MakeNode(std::move(node));
}

// An access of one of the block's own tensors reads a node of this step, or a carry.
IndexResolver::Node IndexResolver::Access(const Expr& expr) const {
  NESTOR_ASSIGN_OR_RETURN(const NodeId tensor, environment_.Tensor(expr.text, expr.position));
  ExprNode node = NodeAt(Form::kAccess, expr.position);
  node.text = expr.text;
  node.graph = &environment_.op.graph;
  node.tensor = tensor;
  NESTOR_ASSIGN_OR_RETURN(node.indices, Place(expr.items));
  for (const ast::ExprPtr& condition : expr.conditions) {
    NESTOR_ASSIGN_OR_RETURN(internal::IndexHandle handle, ConditionHandle(*condition));
    node.conditions.push_back(std::move(handle));
  }
  if (environment_.block && environment_.block->tensors.contains(expr.text)) {
    NESTOR_ASSIGN_OR_RETURN(node.tensor, StepOf(expr, node));
  }
  if (expr.fill != nullptr) {
    NESTOR_ASSIGN_OR_RETURN(ExprNodePtr fill, Fill(*expr.fill));
    node.args.push_back(std::move(fill));
  }
  return MakeNode(std::move(node));
}

// The node that an access of one of the block's tensors reads: the one that this step has defined,
// or a carry.
// h[t - c] makes the block run forward, h[t + c] backward. With a $param the distance is $a one way
// and -$a the other; the one without a sign counts.
absl::StatusOr<NodeId> IndexResolver::StepOf(const Expr& access, const ExprNode& node) const {
  StepBlock& block = *environment_.block;
  StepBlock::Tensor& tensor = block.tensors.at(access.text);
  if (block.inferring) return tensor.known;
  // The error is reported later.
  if (tensor.axis >= static_cast<int>(node.indices.size())) return tensor.known;
  IndexPool& pool = environment_.op.graph.pool();
  NESTOR_ASSIGN_OR_RETURN(const IndexId place,
                          internal::ResolveIndex(environment_.op.graph, node.indices[tensor.axis]));
  if (pool.VarValue(place) == scope_.step()) {
    if (tensor.body.valid()) return tensor.body;
    return ErrorAt(
        access.position,
        absl::StrCat("'", access.text,
                     "' is not defined yet at this step: an earlier one can be read, as in ",
                     access.text, "[", block.index, " - 1]"));
  }
  const auto forward = LagOf(pool, place, scope_.step(), false),
             backward = LagOf(pool, place, scope_.step(), true);
  const auto is_plain = [&](absl::optional<IndexId> lag) {
    return lag && (pool.ConstValue(*lag) || pool[*lag].kind == IndexKind::kSymbol);
  };
  const bool is_backward = !is_plain(forward) && (is_plain(backward) || !forward);
  if (!forward && !backward) {
    return ErrorAt(
        access.position,
        absl::StrCat("'", access.text, "' is read at no earlier step: its index on axis ",
                     tensor.axis, " must be ", block.index, ", or ", block.index,
                     " - c (or + c, in all places) with c >= 1"));
  }
  NESTOR_RETURN_IF_ERROR(CheckLag(access, is_backward ? *backward : *forward));
  if (block.backward.value_or(is_backward) != is_backward) {
    return ErrorAt(access.position, absl::StrCat("the block reads both earlier and later steps of ",
                                                 block.index, ": it can run one way alone"));
  }
  block.backward = is_backward;
  if (!tensor.carry.valid()) {
    tensor.carry =
        environment_.op.graph.AddCarry(*tensor.type, tensor.shape, tensor.axis, is_backward);
  }
  return tensor.carry;
}

// y[t - $k] needs $k >= 1 at all sizes: with 0 a step would read itself.
absl::Status IndexResolver::CheckLag(const Expr& access, IndexId lag) const {
  const IndexPool& pool = environment_.op.graph.pool();
  if (internal::IsLag(environment_.op, lag)) return absl::OkStatus();
  if (pool[lag].kind == IndexKind::kSymbol && pool.SymbolName(lag)[0] == '$') {
    const std::string& param = pool.SymbolName(lag);
    return ErrorAt(access.position, absl::StrCat("'", access.text, "' is read ", param,
                                                 " steps back, which may be less than 1: declare ",
                                                 param, " in [1, inf]"));
  }
  return ErrorAt(
      access.position,
      absl::StrCat("'", access.text,
                   "' is read a number of steps back that is neither a constant nor a $param"));
}

}  // namespace nestor
