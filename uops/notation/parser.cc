// Recursive descent, one member function per production: files, ops, signatures and statements.
// Expressions are read by expression_parser.cc.
#include "uops/notation/parser.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "uops/dtype.h"
#include "uops/graph.h"
#include "uops/index/operators.h"
#include "uops/invariant.h"
#include "uops/message.h"
#include "uops/notation/expression_parser.h"
#include "uops/notation/lexer.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

using ast::ExprPtr;

// One parser reads one text once. Errors name the token that does not fit, and what would.
class Parser : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

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
  // ---- Ops

  // Capital names among the arguments' types are casts in the body, so they are noted before it is
  // read.
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

  // Reads statements up to the "}" after them.
  // { t[i] = x[i]; y[i] = t[i] }      and the same with line ends for ";"
  absl::StatusOr<std::vector<ast::Statement>> Statements() {
    std::vector<ast::Statement> statements;
    for (SkipEnds(); !At("}"); SkipEnds()) {
      if (Peek().kind == TokenKind::kEof) return Expected("a statement or '}'");
      NESTOR_ASSIGN_OR_RETURN(ast::Statement statement, Statement());
      const bool is_block = statement.kind == ast::StatementKind::kFor;
      statements.push_back(std::move(statement));
      // A statement ends at a line end or ";", which the lexer has settled; a block ends at its
      // "}".
      if (!is_block && Peek().kind != TokenKind::kEnd && !At("}")) {
        return Expected("an operator, 'where' or the end of the statement");
      }
    }
    NESTOR_RETURN_IF_ERROR(Need("}"));
    return statements;
  }

  // (ARGUMENT, ..; PARAM, ..), either list perhaps empty.
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

  // NAME: [shape] TYPE[DIMENSIONS]. `shape` is no reserved word: only a name after it makes it one.
  absl::StatusOr<ast::Argument> Argument() {
    ast::Argument arg;
    if (Peek().kind == TokenKind::kParam) return Expected("an argument ($params stand after ';')");
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

  // A name that begins with a capital is a type variable; any other one must be a type.
  absl::StatusOr<ast::TypeName> Type() {
    const Token& token = Peek();
    if (token.kind != TokenKind::kName) return Expected("a type");
    const bool variable = token.text[0] >= 'A' && token.text[0] <= 'Z';
    if (!variable && !TypeByName(token.text)) {
      std::string names = "a type (";
      for (DType type : AllTypes())
        absl::StrAppend(&names, type == AllTypes()[0] ? "" : " ", nestor::Name(type));
      return Expected(absl::StrCat(names, ", or a capital name)"));
    }
    ++next_;
    return ast::TypeName{token.position, token.text};
  }

  // $NAME [: TYPE] [= LITERAL] [in [LOW, HIGH]]
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
      NESTOR_RETURN_IF_ERROR(CheckBound("-inf"));
      NESTOR_ASSIGN_OR_RETURN(param.low, SignedLiteral());
      NESTOR_RETURN_IF_ERROR(Need(","));
      NESTOR_RETURN_IF_ERROR(CheckBound("inf"));
      NESTOR_ASSIGN_OR_RETURN(param.high, SignedLiteral());
      NESTOR_RETURN_IF_ERROR(Need("]"));
    }
    return param;
  }

  // ---- Statements

  // `for` begins a block, and "(" a call with several results. Else what follows the name tells the
  // kinds apart: "= OP(" is a call, ":" a scatter, anything else a definition.
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
    NESTOR_RETURN_IF_ERROR(LeftSide(statement));
    NESTOR_ASSIGN_OR_RETURN(statement.expr, Expression());
    if (Take("where")) {
      NESTOR_RETURN_IF_ERROR(Bounds(statement));
    }
    return statement;
  }

  // [INDICES] =, or [INDICES]: TYPE[DIMENSIONS] +=
  absl::Status LeftSide(ast::Statement& statement) {
    statement.kind = ast::StatementKind::kDefinition;
    const ast::Position bracket = Peek().position;
    const bool has_bracket = Take("[");
    if (has_bracket) {
      NESTOR_ASSIGN_OR_RETURN(statement.items, Items());
    }
    if (Take(":")) {
      statement.kind = ast::StatementKind::kScatter;
      NESTOR_ASSIGN_OR_RETURN(statement.type, Type());
      NESTOR_RETURN_IF_ERROR(Need("["));
      NESTOR_ASSIGN_OR_RETURN(statement.dims, Items());
      return ScatterOperator(statement);
    }
    // A scatter makes a new tensor, so it says type and shape: y[ids[i]]: f32[N] += x[i].
    if (At("+=") || At("*=") || ((At("max") || At("min")) && At("=", 1)))
      return Expected("':' and the result's type and dimensions before an accumulation");
    NESTOR_RETURN_IF_ERROR(Need("="));
    if (!has_bracket || !statement.items.empty()) return absl::OkStatus();
    return ErrorAt(bracket, absl::StrCat("a tensor without axes is defined without '[]': write ",
                                         statement.targets[0], " = .."));
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

  // The number of tokens of the accumulation by `op` here; 0 if there is none.
  size_t AccumulationLength(ReduceOp op) const {
    const absl::string_view sign = AccumulationSign(op);
    if (At(absl::StrCat(sign, "="))) return 1;
    return At(sign) && At("=", 1) ? 2 : 0;
  }

  // +=, *= are one token; max= and min= are two.
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
  // y = softmax(x) is a call: its arguments are tensors. y = exp(x) is an expression.
  bool AtOpCall(size_t ahead) const {
    const Token& token = Peek(ahead);
    return token.kind == TokenKind::kName && At("(", ahead + 1) && !IsReserved(token.text) &&
           !ScalarOpByName(token.text) && !type_variables_.contains(token.text);
  }

  // NAME(TENSOR, ..; NAME = VALUE, ..): arguments are names of tensors, never expressions.
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

  // pad(x; before = 1, after = N - 1): the callee's $before and $after
  absl::StatusOr<ast::Value> CallValue() {
    ast::Value value;
    NESTOR_ASSIGN_OR_RETURN(const Token name, Name("the name of a parameter, without '$'"));
    value.position = name.position;
    value.name = name.text;
    NESTOR_RETURN_IF_ERROR(Need("="));
    NESTOR_ASSIGN_OR_RETURN(value.expr, Expression());
    return value;
  }

  // where i < E, j < F. A limit stops at a comparison or a comma.
  // y[i] = x[i + 1] where i < N - 1
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

  bool in_block_ = false;
};

}  // namespace

// The words of the grammar, and all types: a name must never be read as one of these.
bool IsReserved(absl::string_view word) {
  static const auto* const words = [] {
    auto* set = new absl::flat_hash_set<absl::string_view>{
        "sum", "prod", "max", "min", "argmax", "argmin", "any", "all",  "where",
        "if",  "in",   "for", "op",  "size",   "inf",    "nan", "true", "false"};
    for (DType type : AllTypes()) set->insert(Name(type));
    return set;
  }();
  return words->contains(word);
}

bool IsName(absl::string_view word) {
  const auto fits = [](char c) {
    return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c));
  };
  return !word.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(word[0])) &&
         absl::c_all_of(word, fits) && !IsReserved(word);
}

absl::StatusOr<ast::File> ParseFile(absl::string_view text, int line) {
  NESTOR_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text, line));
  return Parser(std::move(tokens)).File();
}

absl::StatusOr<ast::ExprPtr> ParseExpression(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).WholeExpression();
}

}  // namespace nestor
