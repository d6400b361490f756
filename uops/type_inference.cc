// One variable per expression, joined where SEMANTICS says that types unify: the
// operands of arithmetic and comparisons, the branches of a select, a reduction
// and its body. A variable may know that a float literal or an index value is
// among its members, which decides its type where no typed value does.
#include "uops/type_inference.h"

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/lexer.h"
#include "uops/module.h"

namespace nestor {

using ast::Expr;
using ast::ExprKind;

size_t IndexPrefix(const StatementScope& scope, const Expr& chain) {
  if (!chain.operators[0]->IsArithmetic()) return 0;
  size_t count = 0;
  while (count < chain.args.size() && scope.IsIndexValue(*chain.args[count])) ++count;
  return count;
}

int TypeInference::NewVariable(absl::optional<DType> type) {
  const int id = static_cast<int>(variables_.size());
  variables_.push_back({id, type});
  return id;
}

int TypeInference::Root(int variable) const {
  while (variables_[variable].parent != variable) variable = variables_[variable].parent;
  return variable;
}

absl::Status TypeInference::Unify(int a, int b, const ast::Position& position) {
  Variable& x = variables_[Root(a)];
  Variable& y = variables_[Root(b)];
  if (&x == &y) return absl::OkStatus();
  // An integer tensor beside an index value is i64 already.
  for (Variable* v : {&x, &y}) {
    if (v->type && v->index_value && IsInteger(*v->type)) v->type = DType::kI64;
  }
  if (x.type && y.type && *x.type != *y.type) {
    return ErrorAt(position, absl::StrCat("types ", Name(*x.type), " and ", Name(*y.type),
                                          " do not mix: cast one, as in ", Name(*x.type), "(..)"));
  }
  if (!x.type) x.type = y.type;
  x.float_literal |= y.float_literal;
  x.index_value |= y.index_value;
  y.parent = x.parent;
  return absl::OkStatus();
}

DType TypeInference::Resolved(int variable) const {
  const Variable& v = variables_[Root(variable)];
  if (!v.type) return v.float_literal ? DType::kF32 : DType::kI64;
  // An integer tensor that meets an index value is widened.
  return v.index_value && IsInteger(*v.type) ? DType::kI64 : *v.type;
}

DType TypeInference::TypeOf(const Expr& expr) const { return Resolved(of_.at(&expr)); }
DType TypeInference::OperandType(const Expr& expr) const { return Resolved(operand_of_.at(&expr)); }

absl::StatusOr<int> TypeInference::Visit(const Expr& expr) {
  NESTOR_ASSIGN_OR_RETURN(const int variable, VisitUnrecorded(expr));
  of_[&expr] = variable;
  return variable;
}

absl::StatusOr<int> TypeInference::VisitUnrecorded(const Expr& expr) {
  if (scope_.IsIndexValue(expr)) {
    const int variable = NewVariable(absl::nullopt);
    variables_[variable].index_value = !scope_.IsIntegerLiteral(expr);
    return variable;
  }
  switch (expr.kind) {
    case ExprKind::kLiteral: {
      if (expr.text == "true" || expr.text == "false") return NewVariable(DType::kBool);
      const int variable = NewVariable(absl::nullopt);
      variables_[variable].float_literal = true;
      return variable;
    }
    case ExprKind::kName:
    case ExprKind::kAccess: {
      NESTOR_ASSIGN_OR_RETURN(const NodeId tensor, environment_.Tensor(expr.text, expr.position));
      return NewVariable(environment_.op.graph.type(tensor));
    }
    case ExprKind::kParam: return NewVariable(environment_.params.at(expr.text));
    case ExprKind::kReduction: {
      NESTOR_ASSIGN_OR_RETURN(const int body, Visit(*expr.args[0]));
      operand_of_[&expr] = body;
      return IsArg(*ReduceOpByName(expr.text)) ? NewVariable(DType::kI64) : body;
    }
    case ExprKind::kPrefix: {
      NESTOR_ASSIGN_OR_RETURN(const int operand, Visit(*expr.args[0]));
      operand_of_[&expr] = operand;
      return operand;
    }
    case ExprKind::kCall: return VisitFunction(expr);
    case ExprKind::kChain: return VisitChain(expr);
    case ExprKind::kSize: break;  // an index value
  }
  return ErrorAt(expr.position, "expected a value");
}

absl::StatusOr<int> TypeInference::VisitChain(const Expr& expr) {
  // The leading index values are one value; give each of them one variable.
  const size_t prefix = IndexPrefix(scope_, expr);
  int all = -1;
  for (size_t i = 0; i < expr.args.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(const int operand, Visit(*expr.args[i]));
    if (all < 0) {
      all = operand;
      continue;
    }
    const ast::Position& position =
        i < prefix ? expr.operator_positions[i - 1] : expr.args[i]->position;
    NESTOR_RETURN_IF_ERROR(Unify(all, operand, position));
  }
  operand_of_[&expr] = all;
  return expr.operators[0]->Compares() ? NewVariable(DType::kBool) : all;
}

absl::StatusOr<int> TypeInference::VisitCast(const Expr& expr, DType target) {
  const Expr& operand = *expr.args[0];
  NESTOR_ASSIGN_OR_RETURN(const int inner, Visit(operand));
  operand_of_[&expr] = inner;
  const int result = NewVariable(target);
  // A cast types its literal directly.
  const bool literal = (operand.kind == ExprKind::kLiteral || scope_.IsIntegerLiteral(operand)) &&
                       !variables_[Root(inner)].type;
  if (literal) variables_[Root(inner)].type = target;
  return result;
}

absl::StatusOr<int> TypeInference::VisitFunction(const Expr& expr) {
  if (const auto target = environment_.FindType(expr.text)) return VisitCast(expr, *target);
  const auto op = ScalarOpByName(expr.text);
  if (!op || *op == ScalarOp::kCast) {
    std::vector<std::string> known;
    for (const ScalarOpRow& row : AllScalarOps()) known.push_back(row.name);
    return ErrorAt(expr.position, absl::StrCat("unknown scalar op '", expr.text, "'",
                                               DidYouMean(expr.text, known),
                                               " (an op is called as NAME = ", expr.text, "(..))"));
  }
  const ScalarOpRow& row = Row(*op);
  if (static_cast<int>(expr.args.size()) != row.arity) {
    return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' takes ", row.arity, " operand",
                                               row.arity == 1 ? "" : "s", ", is given ", expr.args.size()));
  }
  const bool choice = row.result == ResultType::kChoice;
  int all = -1;
  for (size_t i = 0; i < expr.args.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(const int operand, Visit(*expr.args[i]));
    if (choice && i == 0) {
      NESTOR_RETURN_IF_ERROR(Unify(NewVariable(DType::kBool), operand, expr.args[i]->position));
    } else if (all < 0) {
      all = operand;
    } else {
      NESTOR_RETURN_IF_ERROR(Unify(all, operand, expr.args[i]->position));
    }
  }
  operand_of_[&expr] = all;
  switch (row.result) {
    case ResultType::kSame:
    case ResultType::kChoice: return all;
    case ResultType::kBoolean: return NewVariable(DType::kBool);
    case ResultType::kBitsOf:
    case ResultType::kFloatOf: {
      // The result's type needs the operand's now.
      Variable& operand = variables_[Root(all)];
      operand.type = Resolved(all);
      const auto result = ResultTypeOf(*op, *operand.type, DType::kF32);
      if (result) return NewVariable(*result);
      return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' does not take ", Name(*operand.type)));
    }
    case ResultType::kTarget: break;
  }
  return ErrorAt(expr.position, "expected a value");
}

absl::StatusOr<TypeInference> TypeInference::Infer(const Expr& expr, absl::optional<DType> declared,
                                                   const Environment& environment,
                                                   const StatementScope& scope) {
  TypeInference inference(environment, scope);
  NESTOR_ASSIGN_OR_RETURN(const int whole, inference.Visit(expr));
  if (declared) {
    NESTOR_RETURN_IF_ERROR(inference.Unify(inference.NewVariable(*declared), whole, expr.position));
    // A result of a declared type is not widened.
    const Variable& v = inference.variables_[inference.Root(whole)];
    if (v.index_value && IsInteger(*declared) && *declared != DType::kI64) {
      return ErrorAt(expr.position, absl::StrCat("types ", Name(*declared), " and i64 (an index) do not mix: cast one"));
    }
  }
  return inference;
}

}  // namespace nestor
