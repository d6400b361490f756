// Recursive descent, with precedence climbing for infix operators (Richards and Whitby-Strevens,
// "BCPL: the language and its compiler", 1979): an operand, then as long as an operator that binds
// at least as tightly follows, its right side, read at the next tighter level.
//
// Operators are read into chains: a sum of a thousand terms is one node, so that no later walk
// recurses per term.
#include "uops/notation/expression_parser.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/dtype.h"
#include "uops/graph.h"
#include "uops/invariant.h"
#include "uops/message.h"
#include "uops/notation/parser.h"
#include "uops/scalar_op.h"

namespace nestor {

using ast::Expr;
using ast::ExprKind;
using ast::ExprPtr;
using ast::Position;

namespace {

ExprPtr NewExpr(ExprKind kind, Position position, absl::string_view text = "") {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->position = position;
  expr->text = std::string(text);
  return expr;
}

// The error for `name[..](`, which only reductions have.
absl::Status UnknownReduction(const Expr& access) {
  std::vector<std::string> known;
  for (int op = 0; op <= static_cast<int>(ReduceOp::kAll); ++op) {
    known.emplace_back(nestor::Name(ReduceOp{static_cast<uint8_t>(op)}));
  }
  return ErrorAt(
      access.position,
      absl::StrCat("unknown reduction '", access.text, "'", DidYouMean(access.text, known),
                   " (there are ", absl::StrJoin(known, ", "), ")", ForeignHint(access.text)));
}

}  // namespace

void ExpressionParser::SkipEnds() {
  while (Peek().kind == TokenKind::kEnd) ++next_;
}

// A reserved word gives a message of its own, because it looks like a name.
absl::StatusOr<Token> ExpressionParser::Name(absl::string_view what) {
  const Token& token = Peek();
  if (token.kind != TokenKind::kName) return Expected(what);
  if (IsReserved(token.text)) {
    return ErrorAt(token.position,
                   absl::StrCat("expected ", what, ", found the reserved word '", token.text, "'"));
  }
  return tokens_[next_++];
}

// Without a sign, which is an operator here (Prefix).
bool ExpressionParser::AtLiteral(size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kNumber || At("inf", ahead) || At("nan", ahead) ||
         At("true", ahead) || At("false", ahead);
}

absl::StatusOr<ast::Literal> ExpressionParser::SignedLiteral() {
  const Position position = Peek().position;
  const bool negative = Take("-");
  if (!AtLiteral()) return Expected("a literal");
  return ast::Literal{position, absl::StrCat(negative ? "-" : "", tokens_[next_++].text)};
}

absl::StatusOr<std::vector<ast::Item>> ExpressionParser::Items() {
  std::vector<ast::Item> items;
  NESTOR_RETURN_IF_ERROR(List("]", [&] { return OneItem(items); }));
  return items;
}

absl::Status ExpressionParser::OneItem(std::vector<ast::Item>& items) {
  ast::Item item;
  item.position = Peek().position;
  if (Take("..")) {
    item.is_pack = true;
    NESTOR_ASSIGN_OR_RETURN(const Token name, Name("the name of a pack"));
    item.pack = name.text;
  } else {
    NESTOR_ASSIGN_OR_RETURN(item.expr, Expression());
  }
  items.push_back(std::move(item));
  return absl::OkStatus();
}

// Parses by precedence climbing.
absl::StatusOr<ExprPtr> ExpressionParser::Operators(int tightness) {
  NESTOR_ASSIGN_OR_RETURN(ExprPtr expr, Prefix());
  for (const InfixOperator* op = AtInfix(); op != nullptr && op->tightness >= tightness;
       op = AtInfix()) {
    NESTOR_ASSIGN_OR_RETURN(expr, Chain(std::move(expr), op->tightness));
  }
  return expr;
}

// `first` and all operands that operators of that tightness join to it.
// a - b + c*d   ->   chain {a, b, chain {c, d}} with operators {-, +} and {*}
absl::StatusOr<ExprPtr> ExpressionParser::Chain(ExprPtr first, int tightness) {
  ExprPtr chain = NewExpr(ExprKind::kChain, first->position);
  chain->args.push_back(std::move(first));
  for (const InfixOperator* op = AtInfix(); op != nullptr && op->tightness == tightness;
       op = AtInfix()) {
    // a < b < c would compare a bool with c.
    if (op->Compares() && !chain->operators.empty())
      return Expected("'&&' or '||' (comparisons do not chain)");
    chain->operators.push_back(op);
    chain->operator_positions.push_back(Peek().position);
    ++next_;
    NESTOR_ASSIGN_OR_RETURN(ExprPtr operand, Operators(tightness + 1));
    chain->args.push_back(std::move(operand));
  }
  return chain;
}

// A minus before a number is part of the literal: -128 must fit i8, as 128 does not.
absl::StatusOr<ExprPtr> ExpressionParser::Prefix() {
  const Nesting nesting(*this);
  NESTOR_RETURN_IF_ERROR(nesting.Check());
  const Token& token = Peek();
  if (FindPrefix(token.text) == nullptr) return Primary();
  ++next_;
  if (token.text == "-" && AtLiteral() && !At("true") && !At("false")) {
    return NewExpr(ExprKind::kLiteral, token.position, absl::StrCat("-", tokens_[next_++].text));
  }
  ExprPtr expr = NewExpr(ExprKind::kPrefix, token.position, token.text);
  NESTOR_ASSIGN_OR_RETURN(ExprPtr operand, Prefix());
  expr->args.push_back(std::move(operand));
  return expr;
}

// The first one or two tokens decide; most branches are there for the sake of a good message.
absl::StatusOr<ExprPtr> ExpressionParser::Primary() {
  const Token& token = Peek();
  if (AtLiteral()) {
    ++next_;
    return NewExpr(ExprKind::kLiteral, token.position, token.text);
  }
  if (token.kind == TokenKind::kParam) {
    ++next_;
    return NewExpr(ExprKind::kParam, token.position, token.text);
  }
  if (Take("(")) {
    NESTOR_ASSIGN_OR_RETURN(ExprPtr inner, Expression());
    if (!Take(")")) return Expected("an operator or ')'");
    return inner;
  }
  if (token.kind != TokenKind::kName) return Expected("an expression");
  if (At("size")) return Size();
  if (ReduceOpByName(token.text) && At("[", 1)) return Reduction();
  if (ReduceOpByName(token.text) && !(At("(", 1) && ScalarOpByName(token.text))) {
    ++next_;
    return Expected(absl::StrCat("'[' and the indices that ", token.text, " runs over"));
  }
  if (At("(", 1)) return Function();
  // In other languages a choice begins so; the hint names where(c, a, b).
  if (At("if"))
    return ErrorAt(token.position,
                   absl::StrCat("expected an expression, found 'if'", ForeignHint("?")));
  if (IsReserved(token.text)) return Expected("an expression");
  if (At("[", 1)) {
    NESTOR_ASSIGN_OR_RETURN(ExprPtr access, Access());
    if (At("(")) return UnknownReduction(*access);
    return access;
  }
  ++next_;
  return NewExpr(ExprKind::kName, token.position, token.text);
}

// size(..N): the product of the dimensions of a pack
absl::StatusOr<ExprPtr> ExpressionParser::Size() {
  ExprPtr expr = NewExpr(ExprKind::kSize, Peek().position);
  ++next_;
  NESTOR_RETURN_IF_ERROR(Need("("));
  NESTOR_RETURN_IF_ERROR(Need(".."));
  NESTOR_ASSIGN_OR_RETURN(const Token pack, Name("the name of a pack"));
  expr->text = pack.text;
  NESTOR_RETURN_IF_ERROR(Need(")"));
  return expr;
}

// NAME[INDICES](BODY)
absl::StatusOr<ExprPtr> ExpressionParser::Reduction() {
  ExprPtr expr = NewExpr(ExprKind::kReduction, Peek().position, Peek().text);
  next_ += 2;
  if (At("]")) return Expected("an index");
  NESTOR_ASSIGN_OR_RETURN(expr->items, Items());
  NESTOR_RETURN_IF_ERROR(Need("("));
  NESTOR_ASSIGN_OR_RETURN(ExprPtr body, Expression());
  expr->args.push_back(std::move(body));
  if (!Take(")")) return Expected("an operator or ')'");
  return expr;
}

// A cast or a scalar op; operands that may be omitted are written out here, so that no later stage
// knows of them. Whether the name is known is left to the resolver.
absl::StatusOr<ExprPtr> ExpressionParser::Function() {
  ExprPtr expr = NewExpr(ExprKind::kCall, Peek().position, Peek().text);
  next_ += 2;
  if (TypeByName(expr->text) || type_variables_.contains(expr->text)) {
    // A cast.
    NESTOR_ASSIGN_OR_RETURN(ExprPtr arg, Expression());
    expr->args.push_back(std::move(arg));
    if (!Take(")")) return Expected("an operator or ')'");
    return expr;
  }
  NESTOR_RETURN_IF_ERROR(List(")", [&]() -> absl::Status {
    NESTOR_ASSIGN_OR_RETURN(ExprPtr arg, Expression());
    expr->args.push_back(std::move(arg));
    return absl::OkStatus();
  }));
  const auto op = ScalarOpByName(expr->text);
  const auto literal = [&](const char* text) {
    return NewExpr(ExprKind::kLiteral, expr->position, text);
  };
  if (op) FillOperands(Row(*op), expr->args, literal);
  return expr;
}

// x[i, j + 1 | 0.0 if i < j]: places, fill, conditions.
absl::StatusOr<ExprPtr> ExpressionParser::Access() {
  ExprPtr expr = NewExpr(ExprKind::kAccess, Peek().position, Peek().text);
  next_ += 2;
  // A scalar has no places but may have a fill: y[ | 1.0 if i < 3].
  const auto at_end = [&] { return At("]") || At("|") || At("if"); };
  bool more = !at_end();
  while (more) {
    NESTOR_RETURN_IF_ERROR(OneItem(expr->items));
    more = Take(",");
    if (more && at_end()) return Expected("an index");
  }
  if (Take("|")) {
    if (Peek().kind == TokenKind::kParam) {
      expr->fill = NewExpr(ExprKind::kParam, Peek().position, Peek().text);
      ++next_;
    } else {
      NESTOR_ASSIGN_OR_RETURN(const ast::Literal literal, SignedLiteral());
      expr->fill = NewExpr(ExprKind::kLiteral, literal.position, literal.text);
    }
  }
  if (Take("if")) {
    do {
      NESTOR_ASSIGN_OR_RETURN(ExprPtr condition, Expression());
      expr->conditions.push_back(std::move(condition));
    } while (Take(","));
  }
  if (!Take("]")) return Expected("',', '|', 'if' or ']'");
  return expr;
}

}  // namespace nestor
