// One syntax serves numbers that are computed with tensors and integers that find their way to
// them; here it is decided which is which. A maximal expression of indices, dimensions, integer
// $params and integers is one index value; if it holds only integers, it is one literal. Every
// other expression is a node of its own.
//
//   x[2*i + 1] * (i + N) * 2.0     2*i + 1 is a place; i + N an index value, i64, cast to x's type
#include "uops/notation/resolver.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/message.h"
#include "uops/notation/lexer.h"

namespace nestor {

using ast::Expr;
using ast::ExprKind;
using internal::ExprNode;
using internal::ExprNodePtr;
using internal::Form;
using internal::MakeNode;
using internal::NodeAt;

// ---- Which expressions are index expressions

// True for an expression of indices, dimensions, integer $params and integers.
bool Resolver::IsIndexValue(const Expr& expr) const {
  switch (expr.kind) {
    case ExprKind::kLiteral: return IsIntegerText(expr.text);
    case ExprKind::kName:
      return scope_.InstanceOf(expr) >= 0 || environment_.dims.contains(expr.text);
    case ExprKind::kParam: {
      const auto it = environment_.params.find(expr.text);
      return it != environment_.params.end() && IsInteger(it->second);
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

// True for an expression of integer literals alone; one is an index value, too.
bool Resolver::IsIntegerLiteral(const Expr& expr) const {
  if (expr.kind == ExprKind::kName || expr.kind == ExprKind::kParam || expr.kind == ExprKind::kSize)
    return false;
  if (!IsIndexValue(expr)) return false;
  for (const ast::ExprPtr& arg : expr.args) {
    if (!IsIntegerLiteral(*arg)) return false;
  }
  return true;
}

// How many leading operands of a chain are one index value.
size_t Resolver::IndexPrefix(const Expr& chain) const {
  if (!chain.operators[0]->IsArithmetic()) return 0;
  size_t count = 0;
  while (count < chain.args.size() && IsIndexValue(*chain.args[count])) ++count;
  return count;
}

// ---- Values

// Index values first; what is left is a value by its kind.
Resolver::Node Resolver::Value(const Expr& expr) const {
  if (expr.kind != ExprKind::kLiteral && IsIndexValue(expr)) {
    const Handle handle = indices_.Resolve(expr, true);
    return IsIntegerLiteral(expr) ? IntegerLiteral(expr, handle) : IndexValue(expr, handle);
  }
  switch (expr.kind) {
    case ExprKind::kLiteral:
    case ExprKind::kParam: return indices_.Fill(expr);
    case ExprKind::kName:
    case ExprKind::kAccess: return indices_.Access(expr);
    case ExprKind::kReduction: return Reduction(expr);
    case ExprKind::kPrefix: return Map(expr, FindPrefix(expr.text)->op);
    case ExprKind::kCall: return Function(expr);
    case ExprKind::kChain: return Chain(expr);
    case ExprKind::kSize: break;  // an index value
  }
  return ErrorAt(expr.position, "expected a value");
}

Resolver::Node Resolver::IndexValue(const Expr& expr, const Handle& handle) const {
  NESTOR_RETURN_IF_ERROR(handle.status());
  ExprNode node = NodeAt(Form::kIndex, expr.position);
  node.indices = {*handle};
  node.indices[0].position = expr.position;
  return MakeNode(std::move(node));
}

// An expression of integers, as the literal of its value.
Resolver::Node Resolver::IntegerLiteral(const Expr& expr, const Handle& handle) const {
  NESTOR_RETURN_IF_ERROR(handle.status());
  const auto value = environment_.op.graph.pool().ConstValue(handle->id);
  if (!value)
    return ErrorAt(expr.position, "the value of this expression of integers overflows i64");
  ExprNode node = NodeAt(Form::kLiteral, expr.position);
  node.type = DType::kI64;
  node.text = absl::StrCat(*value);
  return MakeNode(std::move(node));
}

absl::Status Resolver::AppendValues(const Expr& expr, size_t first, ExprNode& node) const {
  for (size_t i = first; i < expr.args.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(ExprNodePtr arg, Value(*expr.args[i]));
    node.args.push_back(std::move(arg));
  }
  return absl::OkStatus();
}

Resolver::Node Resolver::Reduction(const Expr& expr) const {
  ExprNode node = NodeAt(Form::kReduce, expr.position);
  node.reduce = *ReduceOpByName(expr.text);
  node.indices = indices_.Handles(scope_.reduced(expr));
  NESTOR_RETURN_IF_ERROR(AppendValues(expr, 0, node));
  return MakeNode(std::move(node));
}

Resolver::Node Resolver::Map(const Expr& expr, ScalarOp op) const {
  ExprNode node = NodeAt(Form::kMap, expr.position);
  node.op = op;
  NESTOR_RETURN_IF_ERROR(AppendValues(expr, 0, node));
  return MakeNode(std::move(node));
}

// A type's name is a cast; else it must be a row of the scalar ops.
Resolver::Node Resolver::Function(const Expr& expr) const {
  if (const auto target = environment_.FindType(expr.text)) {
    ExprNode node = NodeAt(Form::kCast, expr.position);
    node.type = *target;
    NESTOR_RETURN_IF_ERROR(AppendValues(expr, 0, node));
    return MakeNode(std::move(node));
  }
  const auto op = ScalarOpByName(expr.text);
  if (op && *op != ScalarOp::kCast) return Map(expr, *op);
  std::vector<std::string> known;
  for (const ScalarOpRow& row : AllScalarOps()) known.push_back(row.name);
  return ErrorAt(expr.position,
                 absl::StrCat("unknown scalar op '", expr.text, "'", DidYouMean(expr.text, known),
                              " (an op is called as NAME = ", expr.text, "(..))"));
}

// The leading index values are one operand.
Resolver::Node Resolver::Chain(const Expr& expr) const {
  ExprNode node = NodeAt(Form::kChain, expr.position);
  const size_t prefix = std::max<size_t>(IndexPrefix(expr), 1);
  bool literal = true;
  for (size_t i = 0; i < prefix; ++i) literal &= IsIntegerLiteral(*expr.args[i]);
  if (prefix > 1) {
    const Handle handle = indices_.ResolveChain(expr, prefix, true);
    NESTOR_ASSIGN_OR_RETURN(ExprNodePtr first,
                            literal ? IntegerLiteral(expr, handle) : IndexValue(expr, handle));
    node.args.push_back(std::move(first));
  }
  NESTOR_RETURN_IF_ERROR(AppendValues(expr, prefix > 1 ? prefix : 0, node));
  for (size_t i = prefix; i < expr.args.size(); ++i) {
    node.steps.push_back({expr.operators[i - 1]->op, expr.operator_positions[i - 1]});
  }
  return MakeNode(std::move(node));
}

}  // namespace nestor
