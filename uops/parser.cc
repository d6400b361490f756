// Recursive descent, one member function per production. Infix operators are read
// into chains: a sum of a thousand terms is one node, so that no later walk recurses
// per term.
#include "uops/parser.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/dtype.h"
#include "uops/graph.h"
#include "uops/invariant.h"
#include "uops/lexer.h"
#include "uops/message.h"
#include "uops/operators.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

using ast::Expr;
using ast::ExprKind;
using ast::ExprPtr;
using ast::Position;

ExprPtr NewExpr(ExprKind kind, Position position, absl::string_view text = "") {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->position = position;
  expr->text = std::string(text);
  return expr;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<ast::File> File() {
    ast::File file;
    SkipEnds();
    while (Peek().kind != TokenKind::kEof) {
      NESTOR_ASSIGN_OR_RETURN(ast::Op op, Op());
      file.ops.push_back(std::move(op));
      SkipEnds();
    }
    if (file.ops.empty()) return Expected("an op (op NAME(..) -> (..) {..})");
    return file;
  }

  absl::StatusOr<ExprPtr> WholeExpression() {
    SkipEnds();
    NESTOR_ASSIGN_OR_RETURN(ExprPtr expr, Expression());
    SkipEnds();
    if (Peek().kind != TokenKind::kEof) return Expected("an operator");
    return expr;
  }

 private:
  // ---- Tokens

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool At(absl::string_view text, size_t ahead = 0) const {
    const Token& token = Peek(ahead);
    return token.kind != TokenKind::kNumber && token.text == text;
  }
  bool Take(absl::string_view text) {
    if (!At(text)) return false;
    ++next_;
    return true;
  }
  void SkipEnds() {
    while (Peek().kind == TokenKind::kEnd) ++next_;
  }
  absl::Status Expected(absl::string_view what) const {
    const Token& token = Peek();
    const std::string found = token.kind == TokenKind::kEof ? "the end of the text"
                              : token.text == "\n"          ? "the end of the line"
                                                            : absl::StrCat("'", token.text, "'");
    return ErrorAt(token.position, absl::StrCat("expected ", what, ", found ", found));
  }
  absl::Status Need(absl::string_view text) {
    return Take(text) ? absl::OkStatus() : Expected(absl::StrCat("'", text, "'"));
  }
  absl::StatusOr<Token> Name(absl::string_view what) {
    const Token& token = Peek();
    if (token.kind != TokenKind::kName) return Expected(what);
    if (IsReserved(token.text)) {
      return ErrorAt(token.position,
                     absl::StrCat("expected ", what, ", found the reserved word '", token.text, "'"));
    }
    return tokens_[next_++];
  }

  // Reads `element` separated by commas up to `close`, which may come at once.
  absl::Status List(absl::string_view close, absl::FunctionRef<absl::Status()> element) {
    if (Take(close)) return absl::OkStatus();
    do {
      NESTOR_RETURN_IF_ERROR(element());
    } while (Take(","));
    if (!Take(close)) return Expected(absl::StrCat("',' or '", close, "'"));
    return absl::OkStatus();
  }

  // ---- Ops

  absl::StatusOr<ast::Op> Op() {
    ast::Op op;
    op.position = Peek().position;
    NESTOR_RETURN_IF_ERROR(Need("op"));
    NESTOR_ASSIGN_OR_RETURN(const Token name, Name("the op's name"));
    op.name = name.text;
    op.name_position = name.position;
    NESTOR_RETURN_IF_ERROR(Need("("));
    NESTOR_RETURN_IF_ERROR(Signature(op));
    NESTOR_RETURN_IF_ERROR(Need("->"));
    NESTOR_RETURN_IF_ERROR(Need("("));
    do {
      NESTOR_ASSIGN_OR_RETURN(const Token result, Name("a result's name"));
      op.results.push_back({result.position, result.text});
    } while (Take(","));
    NESTOR_RETURN_IF_ERROR(Need(")"));
    SkipEnds();
    NESTOR_RETURN_IF_ERROR(Need("{"));
    type_variables_.clear();
    for (const ast::Argument& arg : op.args) type_variables_.insert(arg.type.text);
    NESTOR_ASSIGN_OR_RETURN(op.statements, Statements());
    return op;
  }

  // Up to the "}" behind them.
  absl::StatusOr<std::vector<ast::Statement>> Statements() {
    std::vector<ast::Statement> statements;
    for (SkipEnds(); !At("}"); SkipEnds()) {
      if (Peek().kind == TokenKind::kEof) return Expected("a statement or '}'");
      NESTOR_ASSIGN_OR_RETURN(ast::Statement statement, Statement());
      const bool is_block = statement.kind == ast::StatementKind::kFor;
      statements.push_back(std::move(statement));
      if (!is_block && Peek().kind != TokenKind::kEnd && !At("}")) {
        return Expected("an operator, 'where' or the end of the statement");
      }
    }
    NESTOR_RETURN_IF_ERROR(Need("}"));
    return statements;
  }

  absl::Status Signature(ast::Op& op) {
    if (!At(";") && !At(")")) {
      do {
        NESTOR_ASSIGN_OR_RETURN(ast::Argument arg, Argument());
        op.args.push_back(std::move(arg));
      } while (Take(","));
    }
    if (Take(";")) {
      do {
        NESTOR_ASSIGN_OR_RETURN(ast::Param param, Param());
        op.params.push_back(std::move(param));
      } while (Take(","));
    }
    if (!Take(")")) return Expected("',', ';' or ')'");
    return absl::OkStatus();
  }

  absl::StatusOr<ast::Argument> Argument() {
    ast::Argument arg;
    if (Peek().kind == TokenKind::kParam) return Expected("an argument ($params stand behind ';')");
    NESTOR_ASSIGN_OR_RETURN(const Token name, Name("an argument's name"));
    arg.position = name.position;
    arg.name = name.text;
    NESTOR_RETURN_IF_ERROR(Need(":"));
    if (At("shape") && Peek(1).kind == TokenKind::kName) {
      arg.shape_only = true;
      ++next_;
    }
    NESTOR_ASSIGN_OR_RETURN(arg.type, Type());
    NESTOR_RETURN_IF_ERROR(Need("["));
    NESTOR_ASSIGN_OR_RETURN(arg.dims, Items());
    return arg;
  }

  absl::StatusOr<ast::TypeName> Type() {
    const Token& token = Peek();
    if (token.kind != TokenKind::kName) return Expected("a type");
    const bool variable = token.text[0] >= 'A' && token.text[0] <= 'Z';
    if (!variable && !TypeByName(token.text)) {
      std::string names = "a type (";
      for (DType type : AllTypes()) absl::StrAppend(&names, type == AllTypes()[0] ? "" : " ", nestor::Name(type));
      return Expected(absl::StrCat(names, ", or a capital name)"));
    }
    ++next_;
    return ast::TypeName{token.position, token.text};
  }

  absl::StatusOr<ast::Param> Param() {
    ast::Param param;
    const Token token = Peek();
    if (token.kind != TokenKind::kParam) return Expected("a $param");
    ++next_;
    param.position = token.position;
    param.name = token.text;
    if (Take(":")) {
      NESTOR_ASSIGN_OR_RETURN(ast::TypeName type, Type());
      param.type = type;
    }
    if (Take("=")) {
      NESTOR_ASSIGN_OR_RETURN(param.value, SignedLiteral());
    }
    if (Take("in")) {
      NESTOR_RETURN_IF_ERROR(Need("["));
      NESTOR_ASSIGN_OR_RETURN(param.low, SignedLiteral());
      NESTOR_RETURN_IF_ERROR(Need(","));
      NESTOR_ASSIGN_OR_RETURN(param.high, SignedLiteral());
      NESTOR_RETURN_IF_ERROR(Need("]"));
    }
    return param;
  }

  bool AtLiteral(size_t ahead = 0) const {
    return Peek(ahead).kind == TokenKind::kNumber || At("inf", ahead) || At("nan", ahead) ||
           At("true", ahead) || At("false", ahead);
  }

  absl::StatusOr<ast::Literal> SignedLiteral() {
    const Position position = Peek().position;
    const bool negative = Take("-");
    if (!AtLiteral()) return Expected("a literal");
    return ast::Literal{position, absl::StrCat(negative ? "-" : "", tokens_[next_++].text)};
  }

  // ---- Statements

  absl::StatusOr<ast::Statement> Statement() {
    ast::Statement statement;
    statement.position = Peek().position;
    if (Take("for")) {
      NESTOR_RETURN_IF_ERROR(Block(statement));
      return statement;
    }
    if (Take("(")) {
      NESTOR_RETURN_IF_ERROR(List(")", [&] { return Target(statement); }));
      NESTOR_RETURN_IF_ERROR(Need("="));
      if (Peek().kind != TokenKind::kName) return Expected("the name of an op");
      NESTOR_RETURN_IF_ERROR(Call(statement));
      return statement;
    }
    NESTOR_RETURN_IF_ERROR(Target(statement));
    if (At("=") && AtOpCall(1)) {
      ++next_;
      NESTOR_RETURN_IF_ERROR(Call(statement));
      return statement;
    }
    if (Take("[")) {
      NESTOR_ASSIGN_OR_RETURN(statement.items, Items());
    }
    statement.kind = ast::StatementKind::kDefinition;
    if (Take(":")) {
      statement.kind = ast::StatementKind::kScatter;
      NESTOR_ASSIGN_OR_RETURN(statement.type, Type());
      NESTOR_RETURN_IF_ERROR(Need("["));
      NESTOR_ASSIGN_OR_RETURN(statement.dims, Items());
      NESTOR_RETURN_IF_ERROR(ScatterOperator(statement));
    } else if (At("+=") || At("*=") || ((At("max") || At("min")) && At("=", 1))) {
      return Expected("':' and the result's type and dimensions before an accumulation");
    } else if (!Take("=")) {
      return Expected("'='");
    }
    NESTOR_ASSIGN_OR_RETURN(statement.expr, Expression());
    if (Take("where")) {
      NESTOR_RETURN_IF_ERROR(Bounds(statement));
    }
    return statement;
  }

  // for INDEX < extent { .. }
  absl::Status Block(ast::Statement& statement) {
    if (in_block_) return ErrorAt(statement.position, "a 'for' block cannot stand in another");
    statement.kind = ast::StatementKind::kFor;
    NESTOR_ASSIGN_OR_RETURN(const Token index, Name("the index of the block"));
    statement.targets.push_back(index.text);
    statement.target_positions.push_back(index.position);
    NESTOR_RETURN_IF_ERROR(Need("<"));
    NESTOR_ASSIGN_OR_RETURN(statement.expr, Expression());
    SkipEnds();
    NESTOR_RETURN_IF_ERROR(Need("{"));
    in_block_ = true;
    NESTOR_ASSIGN_OR_RETURN(statement.block, Statements());
    in_block_ = false;
    return absl::OkStatus();
  }

  absl::Status Target(ast::Statement& statement) {
    NESTOR_ASSIGN_OR_RETURN(const Token name, Name("a name to define"));
    statement.targets.push_back(name.text);
    statement.target_positions.push_back(name.position);
    return absl::OkStatus();
  }

  // The number of tokens of the accumulation by `op` here; 0: there is none.
  size_t AccumulationLength(ReduceOp op) const {
    const absl::string_view sign = AccumulationSign(op);
    if (At(absl::StrCat(sign, "="))) return 1;
    return At(sign) && At("=", 1) ? 2 : 0;
  }

  absl::Status ScatterOperator(ast::Statement& statement) {
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
      const size_t length = AccumulationLength(op);
      if (length == 0) continue;
      next_ += length;
      statement.scatter_op = op;
      return absl::OkStatus();
    }
    return Expected("'+=', '*=', 'max=' or 'min='");
  }

  // NAME "(" that is no scalar op, type, cast or other function.
  bool AtOpCall(size_t ahead) const {
    const Token& token = Peek(ahead);
    return token.kind == TokenKind::kName && At("(", ahead + 1) && !IsReserved(token.text) &&
           !ScalarOpByName(token.text) && !type_variables_.contains(token.text);
  }

  absl::Status Call(ast::Statement& statement) {
    statement.kind = ast::StatementKind::kCall;
    const Token callee = tokens_[next_++];
    statement.callee = callee.text;
    statement.callee_position = callee.position;
    NESTOR_RETURN_IF_ERROR(Need("("));
    if (!At(";") && !At(")")) {
      do {
        NESTOR_ASSIGN_OR_RETURN(const Token arg, Name("the name of a tensor"));
        statement.call_args.push_back(arg.text);
        statement.call_arg_positions.push_back(arg.position);
      } while (Take(","));
    }
    if (Take(";")) {
      do {
        NESTOR_ASSIGN_OR_RETURN(ast::Value value, CallValue());
        statement.call_values.push_back(std::move(value));
      } while (Take(","));
    }
    if (!Take(")")) return Expected("',', ';' or ')'");
    return absl::OkStatus();
  }

  absl::StatusOr<ast::Value> CallValue() {
    ast::Value value;
    NESTOR_ASSIGN_OR_RETURN(const Token name, Name("the name of a parameter, without '$'"));
    value.position = name.position;
    value.name = name.text;
    NESTOR_RETURN_IF_ERROR(Need("="));
    NESTOR_ASSIGN_OR_RETURN(value.expr, Expression());
    return value;
  }

  absl::Status Bounds(ast::Statement& statement) {
    do {
      ast::Bound bound;
      NESTOR_ASSIGN_OR_RETURN(const Token name, Name("an index"));
      bound.position = name.position;
      bound.index = name.text;
      NESTOR_RETURN_IF_ERROR(Need("<"));
      NESTOR_ASSIGN_OR_RETURN(bound.limit, Operators(kSumTightness));
      statement.bounds.push_back(std::move(bound));
    } while (Take(","));
    return absl::OkStatus();
  }

  // ---- Expressions

  // Items up to and with "]".
  absl::StatusOr<std::vector<ast::Item>> Items() {
    std::vector<ast::Item> items;
    NESTOR_RETURN_IF_ERROR(List("]", [&] { return OneItem(items); }));
    return items;
  }

  absl::Status OneItem(std::vector<ast::Item>& items) {
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

  absl::StatusOr<ExprPtr> Expression() { return Operators(kLoosest); }

  // An operand and the operators behind it that are at least as tight as `tightness`,
  // by precedence climbing.
  absl::StatusOr<ExprPtr> Operators(int tightness) {
    NESTOR_ASSIGN_OR_RETURN(ExprPtr expr, Prefix());
    for (const InfixOperator* op = AtInfix(); op != nullptr && op->tightness >= tightness; op = AtInfix()) {
      NESTOR_ASSIGN_OR_RETURN(expr, Chain(std::move(expr), op->tightness));
    }
    return expr;
  }

  // `first` and all that operators of that tightness join to it.
  absl::StatusOr<ExprPtr> Chain(ExprPtr first, int tightness) {
    ExprPtr chain = NewExpr(ExprKind::kChain, first->position);
    chain->args.push_back(std::move(first));
    for (const InfixOperator* op = AtInfix(); op != nullptr && op->tightness == tightness; op = AtInfix()) {
      if (op->Compares() && !chain->operators.empty()) return Expected("'&&' or '||' (comparisons do not chain)");
      chain->operators.push_back(op);
      chain->operator_positions.push_back(Peek().position);
      ++next_;
      NESTOR_ASSIGN_OR_RETURN(ExprPtr operand, Operators(tightness + 1));
      chain->args.push_back(std::move(operand));
    }
    return chain;
  }

  const InfixOperator* AtInfix() const {
    return Peek().kind == TokenKind::kSymbol ? FindInfix(Peek().text) : nullptr;
  }

  // One step deeper in brackets or prefix operators while it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) { ++parser_.nesting_; }
    ~Nesting() { --parser_.nesting_; }
    absl::Status Check() const {
      if (parser_.nesting_ <= kMaxNesting) return absl::OkStatus();
      return ErrorAt(parser_.Peek().position,
                     absl::StrCat("nested too deeply (more than ", kMaxNesting, " levels)"));
    }

   private:
    Parser& parser_;
  };

  absl::StatusOr<ExprPtr> Prefix() {
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

  absl::StatusOr<ExprPtr> Primary() {
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
    if (At("if")) return ErrorAt(token.position, absl::StrCat("expected an expression, found 'if'", ForeignHint("?")));
    if (IsReserved(token.text)) return Expected("an expression");
    if (At("[", 1)) {
      NESTOR_ASSIGN_OR_RETURN(ExprPtr access, Access());
      if (At("(")) return UnknownReduction(*access);
      return access;
    }
    ++next_;
    return NewExpr(ExprKind::kName, token.position, token.text);
  }

  // Of `name[..](`, which only reductions are.
  static absl::Status UnknownReduction(const Expr& access) {
    std::vector<std::string> known;
    for (int op = 0; op <= static_cast<int>(ReduceOp::kAll); ++op) known.emplace_back(nestor::Name(ReduceOp{static_cast<uint8_t>(op)}));
    return ErrorAt(access.position, absl::StrCat("unknown reduction '", access.text, "'", DidYouMean(access.text, known),
                                                 " (there are ", absl::StrJoin(known, ", "), ")", ForeignHint(access.text)));
  }

  absl::StatusOr<ExprPtr> Size() {
    ExprPtr expr = NewExpr(ExprKind::kSize, Peek().position);
    ++next_;
    NESTOR_RETURN_IF_ERROR(Need("("));
    NESTOR_RETURN_IF_ERROR(Need(".."));
    NESTOR_ASSIGN_OR_RETURN(const Token pack, Name("the name of a pack"));
    expr->text = pack.text;
    NESTOR_RETURN_IF_ERROR(Need(")"));
    return expr;
  }

  absl::StatusOr<ExprPtr> Reduction() {
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

  absl::StatusOr<ExprPtr> Function() {
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
    const auto literal = [&](const char* text) { return NewExpr(ExprKind::kLiteral, expr->position, text); };
    if (op) FillOperands(Row(*op), expr->args, literal);
    return expr;
  }

  absl::StatusOr<ExprPtr> Access() {
    ExprPtr expr = NewExpr(ExprKind::kAccess, Peek().position, Peek().text);
    next_ += 2;
    while (!At("]") && !At("|") && !At("if")) {
      NESTOR_RETURN_IF_ERROR(OneItem(expr->items));
      if (!Take(",")) break;
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

  std::vector<Token> tokens_;
  size_t next_ = 0;
  int nesting_ = 0;
  bool in_block_ = false;
  absl::flat_hash_set<std::string> type_variables_;
};

}  // namespace

bool IsReserved(absl::string_view word) {
  static const auto* const words = [] {
    auto* set = new absl::flat_hash_set<absl::string_view>{
        "sum", "prod", "max", "min",  "argmax", "argmin", "any",  "all",
        "where", "if", "in",  "for", "op",   "size",   "inf",    "nan",  "true", "false"};
    for (DType type : AllTypes()) set->insert(Name(type));
    return set;
  }();
  return words->contains(word);
}

absl::StatusOr<ast::File> ParseFile(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).File();
}

absl::StatusOr<ast::ExprPtr> ParseExpression(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).WholeExpression();
}

}  // namespace nestor
