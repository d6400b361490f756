// Hostile text: whatever its bytes are, and however long a word is, the answer is an op or a short
// Status in UTF-8 that begins with the place.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "re2/re2.h"
#include "uops/message.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

constexpr char kProgram[] = "op f(x: f32[M, N]; $k = 1) -> (y) {  # sums\n"
                            "  y[i] = sum[j](x[i, j + $k | 0.5]) where j < N\n"
                            "}\n";

void ExpectMessage(const absl::Status& status) {
  const std::string message(status.message());
  EXPECT_TRUE(RE2::PartialMatch(message, R"(^\d+:\d+: )")) << message;
  EXPECT_EQ(message, ValidUtf8(message));
  EXPECT_LT(message.size(), 1000u);
}

TEST(ProgramText, AnyByteAnywhere) {
  const std::string program = kProgram;
  const size_t comment = program.find('#'), end = program.find('\n');
  for (size_t at = 0; at <= program.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = program;
      text.insert(at, 1, static_cast<char>(byte));
      SCOPED_TRACE(testing::PrintToString(text));
      const absl::StatusOr<Op> op = ParseOp(text);
      const bool in_comment = at > comment && at <= end && byte != '\n';
      const bool decided = in_comment || byte >= 0x80;
      ASSERT_TRUE(!decided || op.ok() == in_comment) << op.status();
      if (!op.ok()) ExpectMessage(op.status());
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(ProgramText, ByteOrderMarkOnlyBeforeIt) {
  const std::string mark(kByteOrderMark);
  EXPECT_TRUE(ParseOp(mark + kProgram).ok());
  EXPECT_TRUE(ParseOp(mark + "# \xe9\n" + kProgram).ok());
  EXPECT_EQ(ParseOp(mark + "op f() -> (y) { y = q }").status().message(),
            ParseOp("op f() -> (y) { y = q }").status().message());
  ExpectMessage(ParseOp(mark + mark + kProgram).status());
  ExpectMessage(ParseOp(mark).status());
}

TEST(ProgramText, LongWordsAreClipped) {
  const std::string word(100000, 'a');
  for (const char* name :
       {"op", "x", "f32", "M", "$k", "y", "i", "sum", "j", "where", "N", "0.5", "1"}) {
    for (size_t at = std::string(kProgram).find(name); at != std::string::npos;
         at = std::string(kProgram).find(name, at + 1)) {
      const bool number = name[0] >= '0' && name[0] <= '9';
      std::string text = kProgram;
      text.insert(at + std::string(name).size(), number ? std::string(100000, '9') : word);
      const absl::StatusOr<Op> op = ParseOp(text);
      if (!op.ok()) ExpectMessage(op.status());
    }
  }
  const std::string callee = absl::StrCat("op f(x: f32[N]) -> (y) { y = ", word, "(x) }");
  ExpectMessage(ParseOp(callee).status());
}

struct Hint {
  const char* expression;
  const char* piece;
};

TEST(ProgramText, OtherLanguagesAreUnderstood) {
  const Hint hints[] = {
      {"x[i] ^ x[i]", "1:38: unexpected '^': a power is pow(a, b), an exclusive or xor(a, b)"},
      {"x[i] < 0.0 ? x[i] : 0.0", "1:44: unexpected '?': a choice is where(c, a, b)"},
      {"x[i] // 2.0",
       "1:38: unexpected '//': floor division is floordiv(a, b), a comment begins with #"},
      {"x[i] /* it's */", "1:38: unexpected '/*': a comment runs from # to the end of the line"},
      {"x[i] ** 2.0", "1:38: unexpected '**': a power is pow(a, b)"},
      {"x[i] << 2", "unexpected '<<': a shift to the left is shl(a, b)"},
      {"x[i] >> 2", "unexpected '>>': a shift to the right is shr(a, b)"},
      {"x[i] & x[i]", "unexpected '&': an and is a && b"},
      {"~x[i]", "unexpected '~': a not is !a"},
      {"x[i] @ x[i]", "unexpected '@': a product of matrices is sum[k]("},
      {"x[i] - mean[j](x[j])", "1:40: unknown reduction 'mean' (there are sum, prod, "},
      {"x[i] - mean[j](x[j])", ": a mean is sum[j](x[j]) / N"},
      {"x[i] - avg[j]", "unknown tensor 'avg': a mean is sum[j](x[j]) / N"},
      {"summ[j](x[j])", "unknown reduction 'summ', did you mean 'sum'? (there are "},
      {"relu(x)",
       "1:38: 'x' has 1 dimension and is read without indices: write x[i]; only a call of an op, as NAME = OP(x)"},
      {"x(i)", "1:33: 'x' is a tensor: an element is x[..]"},
      {"if x[i] > 0.0 then 1.0 else 0.0",
       "1:33: expected an expression, found 'if': a choice is where(c, a, b)"},
      {"x[i] * z", "'z' has 2 dimensions and is read without indices: write z[i, ..]"},
      {"x[i] + k", "unknown name 'k': it is an index elsewhere"},
      {"x[i] where i < N, i < N", "already bounded"},
      {"x[i] where i < i",
       "1:48: a range may not hold an index, here 'i': put the condition into an access"},
      {"sum[j](x[j]) where j < i", "a range may not hold an index, here 'i'"},
      {"sum[j](x[j]) where i < N, j < 2*(N + i)", "a range may not hold an index, here 'i'"},
      {"sum[j](x[j]) where i < N, j < min(N, k)", "a range may not hold an index, here 'k'"},
  };
  for (const Hint& hint : hints) {
    // An index of an earlier statement is known, but belongs to that statement.
    const std::string text =
        absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = ", hint.expression, " }");
    const std::string with_z = absl::StrReplaceAll(
        text, {{"x: f32[N]) -> (y) {", "x: f32[N], z: f32[M, N]) -> (y) { w[k] = x[k];"}});
    const bool needs_more = absl::StrContains(hint.expression, "z") ||
                            absl::StrContains(hint.piece, "'k'") ||
                            absl::StrContains(hint.piece, "'k' ");
    const absl::Status status = ParseOp(needs_more ? with_z : text).status();
    EXPECT_TRUE(absl::StrContains(status.message(), hint.piece)) << hint.expression << "\n"
                                                                 << status;
  }
}

}  // namespace
}  // namespace nestor
