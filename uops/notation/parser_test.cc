// What a text becomes: tokens, trees and their positions; and the text and the position of each
// error. operators_test.cc has the table of operators, program_text_test.cc hostile texts.
#include "uops/notation/parser.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "uops/notation/lexer.h"

namespace nestor {
namespace {

struct Case {
  std::string text;
  std::string expected;
};

// ---- Tokens

// Statement ends as "\n" or ";"; other tokens by their texts.
std::string TokensText(absl::string_view text) {
  const auto tokens = Tokenize(text);
  if (!tokens.ok()) return std::string(tokens.status().message());
  EXPECT_EQ(tokens->back().kind, TokenKind::kEof);
  return absl::StrJoin(tokens->begin(), tokens->end() - 1, " ",
                       [](std::string* out, const Token& token) {
                         absl::StrAppend(out, token.text == "\n" ? "\\n" : token.text);
                       });
}

TEST(Lexer, Splits) {
  const Case kCases[] = {
      {"", ""},
      {" \t\r# comment", ""},
      {"a_1 _b B2", "a_1 _b B2"},
      {"a+=b*=c", "a += b *= c"},
      {"max=x", "max = x"},
      {"a<=b<c->d", "a <= b < c -> d"},
      {"x[..n]|..m", "x [ .. n ] | .. m"},
      {"$a+$b_2", "$a + $b_2"},
      {"1 1.5 2. 3e4 5.e-6 7.5E+8", "1 1.5 2. 3e4 5.e-6 7.5E+8"},
      {"1e 2e+ 3x", "1 e 2 e + 3 x"},
      {"-1", "- 1"},
      {R"("a \" b" c)", R"("a \" b" c)"},
      {"a#b\nc", "a c"},
  };
  for (const Case& c : kCases) EXPECT_EQ(TokensText(c.text), c.expected) << c.text;
}

// Outside of a body newlines mean nothing; inside of one they end statements.
TEST(Lexer, EndsStatements) {
  const Case kCases[] = {
      {"a\nb", "a b"},
      {"{a\nb}", "{ a \\n b }"},
      {"{\na\n}\nb\n", "{ a \\n } b"},
      {"{a\n\n # more\n\nb}", "{ a \\n b }"},
      {"{a;b}c;d", "{ a ; b } c ; d"},
      {"{a;\nb}", "{ a ; b }"},
      {"{a\n;b}", "{ a \\n ; b }"},
      // A line that ends in an operator, an assignment, a comma or an open bracket goes on.
      {"{a +\nb}", "{ a + b }"},
      {"{a =\nb +=\nc,\nd |\ne ->\nf}", "{ a = b += c , d | e -> f }"},
      {"{a - # comment\nb}", "{ a - b }"},
      {"{a(\nb\n)\nc[\nd\n]\ne}", "{ a ( b ) \\n c [ d ] \\n e }"},
      // One that begins with an operator does not, but "where" does.
      {"{a\n+ b}", "{ a \\n + b }"},
      {"{a\nwhere b}", "{ a where b }"},
      {"{a\n\n# more\nwhere b}", "{ a where b }"},
      {"{a\nwherever b}", "{ a \\n wherever b }"},
      // A brace closes all brackets.
      {"{a(b}\n{c\nd}", "{ a ( b } { c \\n d }"},
      {"{a{b\nc}\nd}\ne\nf", "{ a { b \\n c } \\n d } e f"},
      {"}{a\nb", "} { a \\n b"},
  };
  for (const Case& c : kCases) EXPECT_EQ(TokensText(c.text), c.expected) << c.text;
}

TEST(Lexer, KindsAndPositions) {
  const auto tokens = Tokenize("\xef\xbb\xbf{a_1 $b\n\t 2.5;\"s\" <=\n}");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  const char* const kKinds[] = {"name", "param", "number", "string", "symbol", "end", "eof"};
  EXPECT_EQ(absl::StrJoin(*tokens, " ",
                          [&](std::string* out, const Token& token) {
                            absl::StrAppend(out, token.position.line, ":", token.position.column,
                                            ":", kKinds[static_cast<int>(token.kind)]);
                          }),
            "1:1:symbol 1:2:name 1:6:param 1:8:end 2:3:number 2:6:end 2:7:string 2:11:symbol "
            "3:1:symbol 3:2:eof");
}

TEST(Lexer, Errors) {
  const Case kCases[] = {
      {"a $ b", "1:3: unexpected character '$'"},
      {"a\n $1", "2:2: unexpected character '$'"},
      {"1..2", "1:3: unexpected character '.'"},
      {"a.b", "1:2: unexpected character '.'"},
      {"a\\", "1:2: unexpected character '\\'"},
      {"'", "1:1: unexpected character '''"},
      {"a \x01", "1:3: unexpected character '\\x01'"},
      {"a \xc3\xa9 b", "1:3: unexpected character '\xc3\xa9'"},
      {"a \xff", "1:3: the byte 0xff is not UTF-8: only comments may hold such"},
      {"\"abc", "1:1: a string that does not end on its line, or is not UTF-8"},
      {"\"abc\n\"", "1:1: a string that does not end on its line, or is not UTF-8"},
      {"\"a\\\"", "1:1: a string that does not end on its line, or is not UTF-8"},
  };
  for (const Case& c : kCases) EXPECT_EQ(TokensText(c.text), c.expected) << c.text;
}

// ---- Trees: names and numbers as they are, else "(KIND PARTS)"

std::string Text(const ast::Expr& expr);

std::string Text(const ast::ExprPtr& expr) { return expr == nullptr ? "none" : Text(*expr); }

std::string Text(const std::vector<ast::Item>& items) {
  return absl::StrCat("[",
                      absl::StrJoin(items, ", ",
                                    [](std::string* out, const ast::Item& item) {
                                      EXPECT_EQ(item.is_pack, item.expr == nullptr);
                                      absl::StrAppend(
                                          out, item.is_pack ? ".." + item.pack : Text(item.expr));
                                    }),
                      "]");
}

std::string Text(const std::vector<ast::ExprPtr>& list) {
  return absl::StrJoin(
      list, ", ", [](std::string* out, const ast::ExprPtr& e) { absl::StrAppend(out, Text(e)); });
}

std::string Text(const ast::Expr& expr) {
  switch (expr.kind) {
    case ast::ExprKind::kLiteral: return absl::StrCat("'", expr.text, "'");
    case ast::ExprKind::kName:
    case ast::ExprKind::kParam: return expr.text;
    case ast::ExprKind::kAccess: {
      std::string text = absl::StrCat("(at ", expr.text, Text(expr.items));
      if (expr.fill != nullptr) absl::StrAppend(&text, " | ", Text(expr.fill));
      if (!expr.conditions.empty()) absl::StrAppend(&text, " if ", Text(expr.conditions));
      return text + ")";
    }
    case ast::ExprKind::kReduction:
      return absl::StrCat("(", expr.text, " over ", Text(expr.items), " of ", Text(expr.args), ")");
    case ast::ExprKind::kCall: return absl::StrCat("(", expr.text, " of ", Text(expr.args), ")");
    case ast::ExprKind::kSize: return absl::StrCat("(size ", expr.text, ")");
    case ast::ExprKind::kPrefix: return absl::StrCat("(", expr.text, " ", Text(expr.args), ")");
    case ast::ExprKind::kChain: {
      EXPECT_EQ(expr.operators.size() + 1, expr.args.size());
      EXPECT_EQ(expr.operators.size(), expr.operator_positions.size());
      std::string text = absl::StrCat("(", Text(expr.args[0]));
      for (size_t i = 1; i < expr.args.size(); ++i)
        absl::StrAppend(&text, " ", expr.operators[i - 1]->text, " ", Text(expr.args[i]));
      return text + ")";
    }
  }
  return "?";
}

// Of an expression: its tree, or the error.
std::string ExpressionTree(absl::string_view text) {
  const auto expr = ParseExpression(text);
  return expr.ok() ? Text(*expr) : std::string(expr.status().message());
}

TEST(Parser, Expressions) {
  const Case kCases[] = {
      {"\n a \n", "a"},
      {"$p", "$p"},
      {"2.5e3", "'2.5e3'"},
      {"inf", "'inf'"},
      {"true", "'true'"},
      // A minus is part of a number, but not of other things.
      {"-128", "'-128'"},
      {"- 128", "'-128'"},
      {"-inf", "'-inf'"},
      {"-nan", "'-nan'"},
      {"--128", "(- '-128')"},
      {"-true", "(- 'true')"},
      {"-a", "(- a)"},
      {"-(128)", "(- '128')"},
      {"a - 128", "(a - '128')"},
      {"a - -128", "(a - '-128')"},
      {"!a", "(! a)"},
      {"!!a", "(! (! a))"},
      {"!-a", "(! (- a))"},
      // Chains and brackets.
      {"a - b + c*d", "(a - b + (c * d))"},
      {"a - (b + c)", "(a - (b + c))"},
      {"(a - b) + c", "((a - b) + c)"},
      {"-a*b", "((- a) * b)"},
      {"a < b && c < d || e", "(((a < b) && (c < d)) || e)"},
      {"(a < b) < c", "((a < b) < c)"},
      {"!a == b", "((! a) == b)"},
      // Accesses.
      {"x[]", "(at x[])"},
      {"x[i, j + 1]", "(at x[i, (j + '1')])"},
      {"x[i, ..n, j]", "(at x[i, ..n, j])"},
      {"x[i | 1]", "(at x[i] | '1')"},
      {"x[i | -1.5]", "(at x[i] | '-1.5')"},
      {"x[i | -inf]", "(at x[i] | '-inf')"},
      {"x[i | $p]", "(at x[i] | $p)"},
      {"x[i if i < j]", "(at x[i] if (i < j))"},
      {"x[i | 1 if i < j, !(j == 2)]", "(at x[i] | '1' if (i < j), (! (j == '2')))"},
      {"x[| 1]", "(at x[] | '1')"},
      {"x[if a]", "(at x[] if a)"},
      {"x[y[z[i]]]", "(at x[(at y[(at z[i])])])"},
      {"shape[i]", "(at shape[i])"},
      // Functions: scalar ops, casts, and names that are left to the resolver.
      {"exp(a)", "(exp of a)"},
      {"f32(a + 1)", "(f32 of (a + '1'))"},
      {"where(a, b, c)", "(where of a, b, c)"},
      {"nothing(a, b)", "(nothing of a, b)"},
      {"nothing()", "(nothing of )"},
      {"leaky_relu(a)", "(leaky_relu of a, '0.01')"},
      {"leaky_relu(a, b)", "(leaky_relu of a, b)"},
      {"max(a, b)", "(max of a, b)"},
      // Reductions.
      {"max[k](a)", "(max over [k] of a)"},
      {"sum[j, ..n](a)*b", "((sum over [j, ..n] of a) * b)"},
      {"argmin[k](sum[j](x[j, k]))", "(argmin over [k] of (sum over [j] of (at x[j, k])))"},
      {"size(..N) + 1", "((size N) + '1')"},
  };
  for (const Case& c : kCases) EXPECT_EQ(ExpressionTree(c.text), c.expected) << c.text;
}

TEST(Parser, ErrorsOfExpressions) {
  const Case kCases[] = {
      {"", "1:1: expected an expression, found the end of the text"},
      {"a +", "1:4: expected an expression, found the end of the text"},
      {"a + )", "1:5: expected an expression, found ')'"},
      {"a b", "1:3: expected an operator, found 'b'"},
      {"a\nb", "2:1: expected an operator, found 'b'"},
      {"(a", "1:3: expected an operator or ')', found the end of the text"},
      {"(a, b)", "1:3: expected an operator or ')', found ','"},
      {"a < b < c", "1:7: expected '&&' or '||' (comparisons do not chain), found '<'"},
      {"where", "1:1: expected an expression, found 'where'"},
      {"for", "1:1: expected an expression, found 'for'"},
      {"f32", "1:1: expected an expression, found 'f32'"},
      {"in[i]", "1:1: expected an expression, found 'in'"},
      {"if a", "1:1: expected an expression, found 'if': a choice is where(c, a, b)"},
      {"\"a\"", "1:1: expected an expression, found '\"a\"'"},
      // Accesses.
      {"x[i", "1:4: expected ',', '|', 'if' or ']', found the end of the text"},
      {"x[i j]", "1:5: expected ',', '|', 'if' or ']', found 'j'"},
      {"x[i,]", "1:5: expected an index, found ']'"},
      {"x[i, | 0]", "1:6: expected an index, found '|'"},
      {"x[i, ..n, if a]", "1:11: expected an index, found 'if'"},
      {"x[i | a]", "1:7: expected a literal, found 'a'"},
      {"x[i | 1 + 2]", "1:9: expected ',', '|', 'if' or ']', found '+'"},
      {"x[i | -$p]", "1:8: expected a literal, found '$p'"},
      {"x[i if a | 1]", "1:10: expected ',', '|', 'if' or ']', found '|'"},
      {"x[i if]", "1:7: expected an expression, found ']'"},
      {"x[..]", "1:5: expected the name of a pack, found ']'"},
      {"x[..1]", "1:5: expected the name of a pack, found '1'"},
      {"x[..sum]", "1:5: expected the name of a pack, found the reserved word 'sum'"},
      // Functions and reductions.
      {"exp(a", "1:6: expected ',' or ')', found the end of the text"},
      {"exp(a b)", "1:7: expected ',' or ')', found 'b'"},
      {"f32()", "1:5: expected an expression, found ')'"},
      {"f32(a, b)", "1:6: expected an operator or ')', found ','"},
      {"sum(a)", "1:4: expected '[' and the indices that sum runs over, found '('"},
      {"sum", "1:4: expected '[' and the indices that sum runs over, found the end of the text"},
      {"max + 1", "1:5: expected '[' and the indices that max runs over, found '+'"},
      {"sum[](a)", "1:5: expected an index, found ']'"},
      {"sum[k a", "1:7: expected ',' or ']', found 'a'"},
      {"sum[k] a", "1:8: expected '(', found 'a'"},
      {"sum[k](a, b)", "1:9: expected an operator or ')', found ','"},
      {"som[k](a)",
       "1:1: unknown reduction 'som', did you mean 'sum'? (there are sum, prod, max, min, argmax, "
       "argmin, any, all)"},
      {"size(N)", "1:6: expected '..', found 'N'"},
      {"size(..N", "1:9: expected ')', found the end of the text"},
      {"size + 1", "1:6: expected '(', found '+'"},
  };
  for (const Case& c : kCases) EXPECT_EQ(ExpressionTree(c.text), c.expected) << c.text;
}

// Brackets and prefix operators nest up to kMaxNesting; chains of operators are as long as they
// like.
TEST(Parser, BoundsNesting) {
  const auto repeated = [](absl::string_view piece, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) absl::StrAppend(&text, piece);
    return text;
  };
  const struct {
    const char* open;
    const char* close;
    size_t operand;  // where the first operand is in `open`, or after it
  } kBrackets[] = {{"(", ")", 1},    {"!", "", 1},        {"x[", "]", 2},
                   {"exp(", ")", 4}, {"sum[k](", ")", 4}, {"- ", "", 2}};
  for (const auto& bracket : kBrackets) {
    const std::string fits = absl::StrCat(repeated(bracket.open, kMaxNesting - 1), "a",
                                          repeated(bracket.close, kMaxNesting - 1));
    EXPECT_TRUE(ParseExpression(fits).ok()) << fits << ParseExpression(fits).status();
    const std::string deep = absl::StrCat(repeated(bracket.open, kMaxNesting), "a",
                                          repeated(bracket.close, kMaxNesting));
    const size_t column =
        (kMaxNesting - 1) * std::string(bracket.open).size() + bracket.operand + 1;
    EXPECT_EQ(ExpressionTree(deep), absl::StrCat("1:", column, ": nested too deeply (more than ",
                                                 kMaxNesting, " levels)"));
  }
  const auto chain = ParseExpression(absl::StrCat("a", repeated(" + a", 100000)));
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ((*chain)->args.size(), 100001u);
}

// ---- Ops and statements

std::string Text(const ast::Statement& statement) {
  std::string text;
  if (statement.kind == ast::StatementKind::kFor) {
    absl::StrAppend(&text, "for ", statement.targets[0], " < ", Text(statement.expr), " {");
    for (const ast::Statement& inner : statement.block) absl::StrAppend(&text, " ", Text(inner));
    return text + " }";
  }
  absl::StrAppend(&text, absl::StrJoin(statement.targets, " and "));
  EXPECT_EQ(statement.targets.size(), statement.target_positions.size());
  if (statement.kind == ast::StatementKind::kCall) {
    EXPECT_EQ(statement.call_args.size(), statement.call_arg_positions.size());
    absl::StrAppend(&text, " call ", statement.callee, "(",
                    absl::StrJoin(statement.call_args, ", "), ";");
    for (const ast::Value& value : statement.call_values)
      absl::StrAppend(&text, " ", value.name, " = ", Text(value.expr));
    return text + ")";
  }
  absl::StrAppend(&text, Text(statement.items));
  if (statement.kind == ast::StatementKind::kScatter) {
    absl::StrAppend(&text, ": ", statement.type.text, Text(statement.dims), " ",
                    Name(statement.scatter_op));
  }
  absl::StrAppend(&text, " = ", Text(statement.expr));
  for (const ast::Bound& bound : statement.bounds)
    absl::StrAppend(&text, " where ", bound.index, " < ", Text(bound.limit));
  return text;
}

std::string Text(const absl::optional<ast::Literal>& literal) {
  return literal ? literal->text : "none";
}

std::string Text(const ast::Op& op) {
  std::string text = absl::StrCat(op.name, "(");
  for (const ast::Argument& arg : op.args) {
    absl::StrAppend(&text, arg.name, ": ", arg.shape_only ? "shape " : "", arg.type.text,
                    Text(arg.dims), "; ");
  }
  for (const ast::Param& param : op.params) {
    absl::StrAppend(&text, param.name, ": ", param.type ? param.type->text : "none", " = ",
                    Text(param.value), " in ", Text(param.low), " to ", Text(param.high), "; ");
  }
  absl::StrAppend(&text, "->");
  for (const ast::Result& result : op.results) absl::StrAppend(&text, " ", result.name);
  absl::StrAppend(&text, ") {");
  for (const ast::Statement& statement : op.statements)
    absl::StrAppend(&text, " ", Text(statement), ";");
  return text + " }";
}

std::string FileTree(absl::string_view text) {
  const auto file = ParseFile(text);
  if (!file.ok()) return std::string(file.status().message());
  return absl::StrJoin(file->ops, "\n",
                       [](std::string* out, const ast::Op& op) { absl::StrAppend(out, Text(op)); });
}

TEST(Parser, Ops) {
  const Case kCases[] = {
      {"op f() -> (y) {}", "f(-> y) { }"},
      {";\n op f() -> (y)\n{\n}\n\n; op g() -> (z) {}", "f(-> y) { }\ng(-> z) { }"},
      {"op f(x: f32[N, 2*N, ..M], s: shape T[], shape: i64[3]) -> (y, z) {}",
       "f(x: f32[N, ('2' * N), ..M]; s: shape T[]; shape: i64['3']; -> y z) { }"},
      {"op f(x: shape[N]) -> (y) {}", "1:9: expected a type (bool u8 i8 u16 i16 u32 i32 u64 i64 "
                                      "bf16 f16 f32 f64, or a capital name), found 'shape'"},
      {"op f(; $a, $b: f32 = -1.5, $c = 2 in [-inf, 3], $d: T in [0, 1]) -> (y) {}",
       "f($a: none = none in none to none; $b: f32 = -1.5 in none to none; "
       "$c: none = 2 in -inf to 3; $d: T = none in 0 to 1; -> y) { }"},
  };
  for (const Case& c : kCases) EXPECT_EQ(FileTree(c.text), c.expected) << c.text;
}

// Each between "op f(x: T[N]) -> (y) { " and " }".
TEST(Parser, Statements) {
  const Case kCases[] = {
      {"y = 1", "y[] = '1';"},
      {"y = a; z[i] = b", "y[] = a; z[i] = b;"},
      {"y[i, ..n] = a\n\n;; z = b\n", "y[i, ..n] = a; z[] = b;"},
      {"y[i] = a\n where i < N - 1, j < 2*M", "y[i] = a where i < (N - '1') where j < ('2' * M);"},
      {"y[i] =\n a +\n b", "y[i] = (a + b);"},
      // Accumulations.
      {"y[i]: f32[N] += a", "y[i]: f32[N] sum = a;"},
      {"y[x[i], 0]: T[N, ..M] *= a where i < N",
       "y[(at x[i]), '0']: T[N, ..M] prod = a where i < N;"},
      {"y[]: f32[] max= a; z[]: f32[] min = a", "y[]: f32[] max = a; z[]: f32[] min = a;"},
      // Calls, and expressions that look like them: scalar ops, casts, to a type variable as well.
      {"y = g()", "y call g(;);"},
      {"y = g(a, b; k = 1, n = N - 1)", "y call g(a, b; k = '1' n = (N - '1'));"},
      {"y = g(; k = $k)", "y call g(; k = $k);"},
      {"(y) = g(a)", "y call g(a;);"},
      {"(y, z) = g(a)", "y and z call g(a;);"},
      {"y = exp(a)", "y[] = (exp of a);"},
      {"y = f32(a)", "y[] = (f32 of a);"},
      {"y = T(a)", "y[] = (T of a);"},
      {"y = U(a)", "y call U(a;);"},
      // Blocks.
      {"for t < N { a[t] = b; c = d } e = f", "for t < N { a[t] = b c[] = d }; e[] = f;"},
      {"for t < N - 1\n{\n}\n", "for t < (N - '1') { };"},
      {"for t < N {} for t < M {}", "for t < N { }; for t < M { };"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(FileTree(absl::StrCat("op f(x: T[N]) -> (y) { ", c.text, " }")),
              absl::StrCat("f(x: T[N]; -> y) { ", c.expected, " }"))
        << c.text;
  }
}

// A capital name is a cast in the op whose argument has it as its type, and in no other.
TEST(Parser, TypeVariablesAreOfOneOp) {
  EXPECT_EQ(FileTree("op f(x: T[N]) -> (y) { y = T(a) } op g(x: U[N]) -> (y) { y = T(a) }"),
            "f(x: T[N]; -> y) { y[] = (T of a); }\ng(x: U[N]; -> y) { y call T(a;); }");
}

TEST(Parser, ErrorsOfOps) {
  const Case kCases[] = {
      {"", "1:1: expected an op (op NAME(..) -> (..) {..}), found the end of the text"},
      {"# nothing\n\n",
       "3:1: expected an op (op NAME(..) -> (..) {..}), found the end of the text"},
      {"f", "1:1: expected 'op', found 'f'"},
      {"op", "1:3: expected the op's name, found the end of the text"},
      {"op sum", "1:4: expected the op's name, found the reserved word 'sum'"},
      {"op f[", "1:5: expected '(', found '['"},
      {"op f(x)", "1:7: expected ':', found ')'"},
      {"op f($k)", "1:6: expected an argument ($params stand after ';'), found '$k'"},
      {"op f(1)", "1:6: expected an argument's name, found '1'"},
      {"op f(x: 1)", "1:9: expected a type, found '1'"},
      {"op f(x: f32 N)", "1:13: expected '[', found 'N'"},
      {"op f(x: f32[N)", "1:14: expected ',' or ']', found ')'"},
      {"op f(x: f32[N] y)", "1:16: expected ',', ';' or ')', found 'y'"},
      {"op f(x: f32[N],)", "1:16: expected an argument's name, found ')'"},
      {"op f(;)", "1:7: expected a $param, found ')'"},
      {"op f(; k)", "1:8: expected a $param, found 'k'"},
      {"op f(; $k: 1)", "1:12: expected a type, found '1'"},
      {"op f(; $k = a)", "1:13: expected a literal, found 'a'"},
      {"op f(; $k = -)", "1:14: expected a literal, found ')'"},
      {"op f(; $k in 1)", "1:14: expected '[', found '1'"},
      {"op f(; $k in [1; 2])", "1:16: expected ',', found ';'"},
      {"op f(; $k in [nan, 1])", "1:15: expected a number or -inf (no bound), found 'nan'"},
      {"op f(; $k in [inf, 1])", "1:15: expected a number or -inf (no bound), found 'inf'"},
      {"op f(; $k in [1, -nan])", "1:18: expected a number or inf (no bound), found '-nan'"},
      {"op f(; $k in [1, -inf])", "1:18: expected a number or inf (no bound), found '-inf'"},
      {"op f(; $k in [1, 2, 3])", "1:19: expected ']', found ','"},
      {"op f() (y)", "1:8: expected '->', found '('"},
      {"op f() -> y", "1:11: expected '(', found 'y'"},
      {"op f() -> ()", "1:12: expected a result's name, found ')'"},
      {"op f() -> (y z)", "1:14: expected ')', found 'z'"},
      {"op f() -> (y) y", "1:15: expected '{', found 'y'"},
      {"op f() -> (y) {", "1:16: expected a statement or '}', found the end of the text"},
      {"op f() -> (y) {\n  y = 1\n", "3:1: expected a statement or '}', found the end of the text"},
      {"op f() -> (y) {} y", "1:18: expected 'op', found 'y'"},
  };
  for (const Case& c : kCases) EXPECT_EQ(FileTree(c.text), c.expected) << c.text;
}

// Each between "op f() -> (y) {\n" and "\n}".
TEST(Parser, ErrorsOfStatements) {
  const Case kCases[] = {
      {"1", "2:1: expected a name to define, found '1'"},
      {"where = 1", "2:1: expected a name to define, found the reserved word 'where'"},
      {"y", "2:2: expected '=', found the end of the line"},
      {"y[i]", "2:5: expected '=', found the end of the line"},
      {"y[i = 1", "2:5: expected ',' or ']', found '='"},
      {"y = ", "3:1: expected an expression, found '}'"},
      {"y[] = a", "2:2: a tensor without axes is defined without '[]': write y = .."},
      {"y[] = g(a)", "2:2: a tensor without axes is defined without '[]': write y = .."},
      {"y[i,] = a", "2:5: expected an expression, found ']'"},
      {"y = a b", "2:7: expected an operator, 'where' or the end of the statement, found 'b'"},
      {"y = a\n+ b", "3:1: expected a name to define, found '+'"},
      {"y = a y = b", "2:7: expected an operator, 'where' or the end of the statement, found 'y'"},
      // Accumulations.
      {"y[i] += a", "2:6: expected ':' and the result's type and dimensions before an "
                    "accumulation, found '+='"},
      {"y max= a", "2:3: expected ':' and the result's type and dimensions before an accumulation, "
                   "found 'max'"},
      {"y[i]: 3", "2:7: expected a type, found '3'"},
      {"y[i]: f32 += a", "2:11: expected '[', found '+='"},
      {"y[i]: f32[N] = a", "2:14: expected '+=', '*=', 'max=' or 'min=', found '='"},
      {"y[i]: f32[N] any= a", "2:14: expected '+=', '*=', 'max=' or 'min=', found 'any'"},
      {"y[i]: f32[N] max a", "2:14: expected '+=', '*=', 'max=' or 'min=', found 'max'"},
      // Ranges.
      {"y = a where", "2:12: expected an index, found the end of the line"},
      {"y = a where 1", "2:13: expected an index, found '1'"},
      {"y = a where i = N", "2:15: expected '<', found '='"},
      {"y = a where i < N < M",
       "2:19: expected an operator, 'where' or the end of the statement, found '<'"},
      {"y = a where i < N,", "3:1: expected an index, found '}'"},
      // Calls.
      {"y = g(a + 1)", "2:9: expected ',', ';' or ')', found '+'"},
      {"y = g(1)", "2:7: expected the name of a tensor, found '1'"},
      {"y = g(a; 1)", "2:10: expected the name of a parameter, without '$', found '1'"},
      {"y = g(a; $k = 1)", "2:10: expected the name of a parameter, without '$', found '$k'"},
      {"y = g(a; k)", "2:11: expected '=', found ')'"},
      {"y = g(a; k = )", "2:14: expected an expression, found ')'"},
      {"y = g(a) + 1",
       "2:10: expected an operator, 'where' or the end of the statement, found '+'"},
      {"(y, 1) = g(a)", "2:5: expected a name to define, found '1'"},
      {"(y z) = g(a)", "2:4: expected ',' or ')', found 'z'"},
      {"(y, z) g(a)", "2:8: expected '=', found 'g'"},
      {"(y, z) = 1", "2:10: expected the name of an op, found '1'"},
      {"(y, z) = g", "2:11: expected '(', found the end of the line"},
      // Blocks.
      {"for 1", "2:5: expected the index of the block, found '1'"},
      {"for sum", "2:5: expected the index of the block, found the reserved word 'sum'"},
      {"for t = N", "2:7: expected '<', found '='"},
      {"for t < N y = 1", "2:11: expected '{', found 'y'"},
      {"for t < N {\n for s < N {} }", "3:2: a 'for' block cannot stand in another"},
      {"for t < N {\n y = 1", "5:1: expected a statement or '}', found the end of the text"},
  };
  for (const Case& c : kCases) {
    const bool open = c.text == "for t < N {\n y = 1";
    EXPECT_EQ(FileTree(absl::StrCat("op f() -> (y) {\n", c.text, "\n}", open ? "\n" : "")),
              c.expected)
        << c.text;
  }
}

// ---- Positions

struct Places {
  std::string text;
  void Add(absl::string_view what, const ast::Position& position) {
    absl::StrAppend(&text, text.empty() ? "" : " ", what, "@", position.line, ":", position.column);
  }
  void Add(const std::vector<ast::Item>& items) {
    for (const ast::Item& item : items) {
      Add(item.is_pack ? ".." + item.pack : "item", item.position);
      if (!item.is_pack) Add(*item.expr);
    }
  }
  void Add(const ast::Expr& expr) {
    Add(expr.text.empty() ? "expr" : expr.text, expr.position);
    for (const ast::ExprPtr& arg : expr.args) Add(*arg);
    for (size_t i = 0; i < expr.operators.size(); ++i)
      Add(expr.operators[i]->text, expr.operator_positions[i]);
    Add(expr.items);
    if (expr.fill != nullptr) Add(*expr.fill);
    for (const ast::ExprPtr& condition : expr.conditions) Add(*condition);
  }
  void Add(const ast::Statement& statement) {
    Add("statement", statement.position);
    for (size_t i = 0; i < statement.targets.size(); ++i)
      Add(statement.targets[i], statement.target_positions[i]);
    Add(statement.items);
    if (!statement.type.text.empty()) Add(statement.type.text, statement.type.position);
    Add(statement.dims);
    if (statement.expr != nullptr) Add(*statement.expr);
    for (const ast::Bound& bound : statement.bounds) {
      Add(bound.index, bound.position);
      Add(*bound.limit);
    }
    for (const ast::Statement& inner : statement.block) Add(inner);
    if (!statement.callee.empty()) Add(statement.callee, statement.callee_position);
    for (size_t i = 0; i < statement.call_args.size(); ++i)
      Add(statement.call_args[i], statement.call_arg_positions[i]);
    for (const ast::Value& value : statement.call_values) {
      Add(value.name, value.position);
      Add(*value.expr);
    }
  }
};

TEST(Parser, PositionsOfExpressions) {
  const Case kCases[] = {
      {"a - b", "expr@1:1 a@1:1 b@1:5 -@1:3"},
      {"(a)", "a@1:2"},
      {"(a - b)*c", "expr@1:2 expr@1:2 a@1:2 b@1:6 -@1:4 c@1:9 *@1:8"},
      {"!a && - 1 < $p", "expr@1:1 !@1:1 a@1:2 expr@1:7 -1@1:7 $p@1:13 <@1:11 &&@1:4"},
      {"x[i + 1,\n  ..n | -2 if c]",
       "x@1:1 item@1:3 expr@1:3 i@1:3 1@1:7 +@1:5 ..n@2:3 -2@2:9 c@2:15"},
      {"sum[j](exp(a))", "sum@1:1 exp@1:8 a@1:12 item@1:5 j@1:5"},
      {" size(..N)", "N@1:2"},
      {" celu(a)", "celu@1:2 a@1:7 1.0@1:2"},
  };
  for (const Case& c : kCases) {
    const auto expr = ParseExpression(c.text);
    ASSERT_TRUE(expr.ok()) << expr.status();
    Places places;
    places.Add(**expr);
    EXPECT_EQ(places.text, c.expected) << c.text;
  }
}

TEST(Parser, PositionsOfOps) {
  const auto file = ParseFile("# first\n"
                              "op f(x: f32[N], s: shape T[2]; $k: f32 = -1 in [0, 1]) -> (y, z) {\n"
                              "  y[i] = a where i < N\n"
                              "  (p, z) = g(a; k = 1)\n"
                              "  w[0]: f32[M] += a\n"
                              "  for t < N { u = v }\n"
                              "}\n");
  ASSERT_TRUE(file.ok()) << file.status();
  const ast::Op& op = file->ops[0];
  Places places;
  places.Add("op", op.position);
  places.Add(op.name, op.name_position);
  for (const ast::Argument& arg : op.args) {
    places.Add(arg.name, arg.position);
    places.Add(arg.type.text, arg.type.position);
    places.Add(arg.dims);
  }
  const ast::Param& param = op.params[0];
  places.Add(param.name, param.position);
  places.Add(param.type->text, param.type->position);
  for (const auto& literal : {param.value, param.low, param.high})
    places.Add(literal->text, literal->position);
  for (const ast::Result& result : op.results) places.Add(result.name, result.position);
  EXPECT_EQ(places.text,
            "op@2:1 f@2:4 x@2:6 f32@2:9 item@2:13 N@2:13 s@2:17 T@2:26 item@2:28 2@2:28 $k@2:32 "
            "f32@2:36 -1@2:42 0@2:49 1@2:52 y@2:60 z@2:63");
  const char* const kStatements[] = {
      "statement@3:3 y@3:3 item@3:5 i@3:5 a@3:10 i@3:18 N@3:22",
      "statement@4:3 p@4:4 z@4:7 g@4:12 a@4:14 k@4:17 1@4:21",
      "statement@5:3 w@5:3 item@5:5 0@5:5 f32@5:9 item@5:13 M@5:13 a@5:19",
      "statement@6:3 t@6:7 N@6:11 statement@6:15 u@6:15 v@6:19",
  };
  ASSERT_EQ(op.statements.size(), std::size(kStatements));
  for (size_t i = 0; i < op.statements.size(); ++i) {
    Places statement;
    statement.Add(op.statements[i]);
    EXPECT_EQ(statement.text, kStatements[i]);
  }
}

TEST(Parser, ReservedWords) {
  for (const char* word :
       {"sum", "prod", "max",  "min", "argmax", "argmin", "any",   "all",  "where", "if",   "in",
        "for", "op",   "size", "inf", "nan",    "true",   "false", "bool", "u8",    "bf16", "f64"})
    EXPECT_TRUE(IsReserved(word)) << word;
  for (const char* word : {"", "shape", "Sum", "exp", "T", "f31", "summ", "block"})
    EXPECT_FALSE(IsReserved(word)) << word;
}

}  // namespace
}  // namespace nestor
