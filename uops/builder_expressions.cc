// Operators and functions make the nodes of expression.h from handles; only the statement that uses
// a node gives it a meaning.
//
// C++ operators cannot return a Status. A misuse becomes a value: an index handle carries its error
// until a statement uses it.
#include <cstdlib>
#include <utility>

#include "uops/builder.h"
#include "uops/expression.h"
#include "uops/index/operators.h"

namespace nestor {

using internal::ExprNode;
using internal::Form;
using internal::HandleOf;
using internal::IndexHandle;

namespace {

Expr Wrap(ExprNode node) { return Expr(internal::MakeNode(std::move(node))); }

// Combines them with the infix operator that `op` has on bool, and so on conditions.
IndexHandle Infix(ScalarOp op, const IndexHandle& a, const IndexHandle& b) {
  return Combine(*InfixOf(op, DType::kBool), a, b);
}

Expr Chained(ScalarOp op, const Expr& a, const Expr& b) {
  ExprNode node{Form::kChain};
  node.args = {a.node(), b.node()};
  node.steps = {{op}};
  return Wrap(std::move(node));
}

}  // namespace

#define OPERATOR(Type, Name, Op)                          \
  Type Name(const Type& a, const Type& b) {               \
    return Type{Infix(ScalarOp::Op, a.handle, b.handle)}; \
  }                                                       \
  Expr Name(const Expr& a, const Expr& b) { return Chained(ScalarOp::Op, a, b); }
#define COMPARISON(Name, Op)                               \
  Condition Name(const IndexExpr& a, const IndexExpr& b) { \
    return {Infix(ScalarOp::Op, a.handle, b.handle)};      \
  }                                                        \
  Expr Name(const Expr& a, const Expr& b) { return Chained(ScalarOp::Op, a, b); }
#define FUNCTION(Name)                                                                     \
  IndexExpr Name(const IndexExpr& a, const IndexExpr& b) {                                 \
    return IndexExpr(Combine(*FindIndexFunction(IndexKind::k##Name), a.handle, b.handle)); \
  }                                                                                        \
  Expr Name(const Expr& a, const Expr& b) { return Apply(ScalarOp::k##Name, {a, b}); }
// clang-format off
OPERATOR(IndexExpr, operator+, kAdd) OPERATOR(IndexExpr, operator-, kSub)
OPERATOR(IndexExpr, operator*, kMul) OPERATOR(IndexExpr, operator/, kDiv)
OPERATOR(IndexExpr, operator%, kMod)
OPERATOR(Condition, operator&&, kAnd) OPERATOR(Condition, operator||, kOr)
COMPARISON(operator<, kLt) COMPARISON(operator<=, kLe) COMPARISON(operator>, kGt)
COMPARISON(operator>=, kGe) COMPARISON(operator==, kEq) COMPARISON(operator!=, kNe)
FUNCTION(Min) FUNCTION(Max)
#undef FUNCTION
#undef COMPARISON
#undef OPERATOR
Expr Pow(const Expr& a, const Expr& b) { return Apply(ScalarOp::kPow, {a, b}); }
// clang-format on
Condition operator!(const Condition& a) { return {Not(a.handle)}; }
IndexExpr operator-(const IndexExpr& a) { return IndexExpr(0) - a; }
Expr operator-(const Expr& a) { return Apply(ScalarOp::kNeg, {a}); }
Expr operator!(const Expr& a) { return Apply(ScalarOp::kNot, {a}); }

// Operands that may be left out get their defaults here, as in the notation.
Expr Apply(ScalarOp op, std::vector<Expr> operands) {
  ExprNode node{Form::kMap};
  node.op = op;
  FillOperands(Row(op), operands,
               [](const char* literal) { return Expr(std::strtod(literal, nullptr)); });
  for (const Expr& e : operands) node.args.push_back(e.node());
  return Wrap(std::move(node));
}

Expr Cast(DType type, const Expr& a) {
  ExprNode node{Form::kCast, type};
  node.args = {a.node()};
  return Wrap(std::move(node));
}

// The node holds the handles; the statement that uses it gives them their meaning.
Expr Reduce(ReduceOp op, std::vector<IndexExpr> indices, const Expr& body) {
  ExprNode node{Form::kReduce};
  node.reduce = op;
  for (IndexExpr& index : indices) node.indices.push_back(std::move(index.handle));
  node.args = {body.node()};
  return Wrap(std::move(node));
}

Expr Expr::Literal(DType type, std::string text) {
  return Wrap({Form::kLiteral, type, std::move(text)});
}
Expr Expr::Literal(double value) {
  return Literal(DType::kF64, LiteralText(Scalar::Float(DType::kF64, value)));
}

// Numbers alone are a literal, whose type is that of the values it meets; anything else is an i64.
Expr::Expr(const IndexExpr& index) {
  if (index.handle.graph == nullptr && index.handle.error.empty()) {
    *this = Expr(index.handle.constant);
  } else {
    *this = Wrap({Form::kIndex, DType::kI64, "", {index.handle}});
  }
}

// A condition as a value: comparisons of index values.
Expr::Expr(const Condition& condition) {
  const IndexHandle& h = condition.handle;
  if (h.graph == nullptr) {
    *this = h.error.empty() ? Expr(h.constant != 0) : Expr(IndexExpr(h));
    return;
  }
  const IndexNode node = h.graph->pool()[h.id];
  if (!IsCondition(node.kind)) {
    *this = Expr(node.value != 0);  // a constant
    return;
  }
  const InfixOperator* infix = InfixOf(node.kind);
  std::vector<Expr> operands;
  for (IndexId arg : node.args) {
    const IndexHandle operand = HandleOf(*h.graph, arg);
    operands.push_back(infix != nullptr && infix->Compares() ? Expr(IndexExpr(operand))
                                                             : Expr(Condition{operand}));
  }
  *this = infix != nullptr ? Chained(infix->op, operands[0], operands[1])
                           : Apply(ScalarOp::kNot, std::move(operands));
}

// Copies the node, as handles are values: x(i) and x(i).Or(0) may both be used.
Access Access::Or(const Expr& fill) const {
  ExprNode node = *this->node();
  node.args = {fill.node()};
  return Access(Wrap(std::move(node)).node());
}

Access Access::If(const Condition& condition) const {
  ExprNode node = *this->node();
  node.conditions.push_back(condition.handle);
  return Access(Wrap(std::move(node)).node());
}

Access TensorRef::At(std::vector<Place> places) const {
  ExprNode node{Form::kAccess};
  node.text = name_;
  node.graph = graph_;
  node.tensor = node_;
  for (Place& place : places) node.indices.push_back(std::move(place.index.handle));
  return Access(Wrap(std::move(node)).node());
}

// The reverse of Expr(IndexExpr): what was an index is one again; an access becomes a gathered
// index.
IndexExpr AsIndex(const Expr& value) {
  const ExprNode& node = *value.node();
  if (node.form == Form::kIndex) return IndexExpr(node.indices[0]);
  if (node.form == Form::kLiteral && node.type == DType::kI64) {
    return IndexExpr(ParseLiteral(node.text, DType::kI64)->ToInt());
  }
  return IndexExpr(LoadOf(value.node()));
}

}  // namespace nestor
