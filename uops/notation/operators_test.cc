// The table of operators against the parsers and printers that read it.
#include "uops/index/operators.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "uops/notation/lexer.h"
#include "uops/notation/module.h"
#include "uops/notation/parser.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

TEST(Operators, AreTokensOfTheirOwn) {
  for (const InfixOperator& op : kInfixOperators) {
    const auto tokens = Tokenize(absl::StrCat("a", op.text, "b"));
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    ASSERT_EQ(tokens->size(), 4u) << op.text;
    EXPECT_EQ((*tokens)[1].text, op.text);
  }
}

TEST(Operators, AreFoundByWhatTheyAre) {
  for (const InfixOperator& op : kInfixOperators) {
    EXPECT_EQ(FindInfix(op.text), &op);
    EXPECT_EQ(InfixOf(op.op, DType::kBool), &op);
    EXPECT_EQ(InfixOf(op.op, DType::kI32), op.logical ? nullptr : &op) << op.text;
  }
  for (const PrefixOperator& op : kPrefixOperators) {
    EXPECT_EQ(FindPrefix(op.text), &op);
    EXPECT_EQ(PrefixOf(op.op, DType::kI32), op.logical ? nullptr : &op) << op.text;
  }
  for (const IndexFunction& function : kIndexFunctions) {
    EXPECT_EQ(FindIndexFunction(Row(function.op).name), &function);
    EXPECT_EQ(FindIndexFunction(function.index), &function);
  }
}

// SEMANTICS 2, "Precedence from loose to tight".
TEST(Operators, BindAsTheGrammarSays) {
  const std::vector<absl::string_view> levels[] = {
      {"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "%"}};
  size_t count = 0;
  int tightness = kLoosest;
  for (const std::vector<absl::string_view>& level : levels) {
    for (absl::string_view text : level) EXPECT_EQ(FindInfix(text)->tightness, tightness) << text;
    count += level.size();
    ++tightness;
  }
  EXPECT_EQ(count, std::size(kInfixOperators));
  EXPECT_EQ(tightness, kPrefixTightness);
}

// The text of `a FIRST b SECOND c` as a tree.
std::string Grouped(const ast::Expr& expr) {
  if (expr.kind != ast::ExprKind::kChain) return expr.text;
  std::string text = absl::StrCat("(", Grouped(*expr.args[0]));
  for (size_t i = 1; i < expr.args.size(); ++i) {
    absl::StrAppend(&text, expr.operators[i - 1]->text, Grouped(*expr.args[i]));
  }
  return text + ")";
}

TEST(Operators, GroupByTightness) {
  for (const InfixOperator& p : kInfixOperators) {
    for (const InfixOperator& q : kInfixOperators) {
      const std::string text = absl::StrCat("a", p.text, "b", q.text, "c");
      const auto expr = ParseExpression(text);
      if (p.Compares() && q.Compares()) {
        EXPECT_EQ(expr.status().message(),
                  absl::StrCat("1:", 3 + p.text.size(),
                               ": expected '&&' or '||' (comparisons do not chain), found '",
                               q.text, "'"));
        continue;
      }
      ASSERT_TRUE(expr.ok()) << text << ": " << expr.status();
      const std::string expected = p.tightness == q.tightness ? absl::StrCat("(", text, ")")
                                   : p.tightness > q.tightness
                                       ? absl::StrCat("((a", p.text, "b)", q.text, "c)")
                                       : absl::StrCat("(a", p.text, "(b", q.text, "c))");
      EXPECT_EQ(Grouped(**expr), expected);
    }
  }
}

// An op whose result is `expr`, of operands of that type.
absl::StatusOr<Op> OpOf(absl::string_view type, absl::string_view expr) {
  return ParseOp(absl::StrCat("op f(a: ", type, "[N], b: ", type,
                              "[N], x: f32[N, N]) -> (y) { y[i, j] = ", expr, " }"));
}

// As a value, as an index and as a condition, each operator prints as it was written, and similar
// operators give different programs.
TEST(Operators, PrintAsTheyAreRead) {
  for (const InfixOperator& op : kInfixOperators) {
    const absl::string_view type = op.logical ? "bool" : op.text == "/" ? "f32" : "i32";
    const std::string value = absl::StrCat("a[i] ", op.text, " b[j]");
    const auto read = OpOf(type, value);
    ASSERT_TRUE(read.ok()) << value << ": " << read.status();
    EXPECT_NE(PrintOp(*read).find(value), std::string::npos) << PrintOp(*read);
    const auto direct = OpOf(type, absl::StrCat(Row(op.op).name, "(a[i], b[j])"));
    ASSERT_TRUE(direct.ok()) << direct.status();
    EXPECT_TRUE(SameOp(*read, *direct)) << PrintOp(*read) << PrintOp(*direct);

    const std::string index = op.IsArithmetic() ? absl::StrCat("x[i, i ", op.text, " (j + 5)]")
                              : op.logical ? absl::StrCat("x[i, j if i == j ", op.text, " i < 3]")
                                           : absl::StrCat("x[i, j if i ", op.text, " j]");
    const auto masked = OpOf(type, absl::StrCat(index, " + f32(a[i]) + f32(b[j])"));
    ASSERT_TRUE(masked.ok()) << index << ": " << masked.status();
    const auto again = ParseOp(PrintOp(*masked));
    ASSERT_TRUE(again.ok()) << again.status() << PrintOp(*masked);
    EXPECT_TRUE(SameOp(*masked, *again)) << PrintOp(*masked);
  }
}

// a OP b on indices equals the result of the table's scalar op on i64.
TEST(Operators, ComputeOnIndicesAsOnValues) {
  const int64_t numbers[] = {-7, -2, -1, 0, 1, 2, 3, 8};
  for (const InfixOperator& op : kInfixOperators) {
    for (int64_t a : numbers) {
      for (int64_t b : numbers) {
        const bool divides = op.op == ScalarOp::kDiv || op.op == ScalarOp::kMod;
        if (divides && b == 0) continue;  // no value as an index
        IndexPool pool;
        const int64_t x = op.logical ? a > 0 : a, y = op.logical ? b > 0 : b;
        const auto result = pool.ConstValue(CombineIndices(pool, op, pool.Const(x), pool.Const(y)));
        ASSERT_TRUE(result.has_value()) << op.text;
        const ScalarOp scalar = op.op == ScalarOp::kDiv ? ScalarOp::kFloorDiv : op.op;
        const DType type = op.logical ? DType::kBool : DType::kI64;
        const Bits args[] = {Scalar::Integer(type, x).bits, Scalar::Integer(type, y).bits};
        const Bits bits = Primitive(scalar, type, type)(args);
        EXPECT_EQ(*result, (Scalar{op.IsArithmetic() ? DType::kI64 : DType::kBool, bits}.ToInt()))
            << x << op.text << y;
      }
    }
  }
}

}  // namespace
}  // namespace nestor
