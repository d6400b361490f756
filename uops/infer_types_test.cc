// The types of a statement's values, as they print, and those that do not mix. Seen through the
// notation, as infer_types.h is no header of the library.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

struct Case {
  const char* expression;
  const char* expected;
};

// "TYPE: the expression as it prints", or the error.
std::string Typed(const std::string& statement) {
  const absl::StatusOr<Op> op = ParseOp(absl::StrCat(
      "op f(a: f32[N], h: f16[N], d: f64[N], i8s: i8[N], i32s: i32[N], i64s: i64[N], u8s: u8[N], "
      "u64s: u64[N], b: bool[N]; $k = 1, $p: f32, $c: bool) -> (y) {\n",
      statement, "\n}"));
  if (!op.ok()) return std::string(op.status().message());
  const std::string text = PrintOp(*op);
  const size_t from = text.rfind(" = ") + 3;
  std::string value = text.substr(from, text.rfind("\n}") - from);
  value = value.substr(0, value.find(" where i < "));
  return absl::StrCat(Name(op->graph.type(op->results[0].node)), ": ", value);
}

void ExpectTypes(absl::Span<const Case> cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(Typed(absl::StrCat("y[i] = ", c.expression, " where i < N")), c.expected)
        << c.expression;
  }
}

// Literals and index values that meet nothing with a type.
TEST(InferTypes, OfWhatMeetsNone) {
  constexpr Case kCases[] = {
      {"1", "i64: i64(1)"},
      {"1.0", "f32: f32(1.0)"},
      {"1e2", "f32: f32(100.0)"},
      {"inf", "f32: f32(inf)"},
      {"true", "bool: true"},
      {"1 + 0.5", "f32: f32(1.0) + f32(0.5)"},
      {"i", "i64: i"},
      {"i + 1", "i64: i + 1"},
      {"i * 0.5", "f32: f32(i) * 0.5"},
      {"0.5 * (i + N)", "f32: 0.5 * f32(i + N)"},
      {"exp(1.0)", "f32: exp(f32(1.0))"},
      {"where(b[i], 1, 0.5)", "f32: where(b[i], f32(1.0), f32(0.5))"},
      {"1 < 2", "bool: i64(1) < i64(2)"},
  };
  ExpectTypes(kCases);
}

// They take the type of what they meet, on either side and at any depth.
TEST(InferTypes, OfWhatMeetsATensor) {
  constexpr Case kCases[] = {
      {"h[i] + 1", "f16: h[i] + 1.0"},
      {"1.0 - h[i] * 2", "f16: 1.0 - h[i] * 2.0"},
      {"1 + 2 * (3 - d[i])", "f64: 1.0 + 2.0 * (3.0 - d[i])"},
      {"u8s[i] + 255", "u8: u8s[i] + 255"},
      {"max(0, i8s[i])", "i8: max(0, i8s[i])"},
      {"where(b[i], 1, h[i])", "f16: where(b[i], 1.0, h[i])"},
      {"where(h[i] < 1, a[i], 2)", "f32: where(h[i] < 1.0, a[i], 2.0)"},
      {"d[i] == 1", "bool: d[i] == 1.0"},
      {"sum[j](d[j] * 2) + 1", "f64: sum[j](d[j] * 2.0) + 1.0"},
      {"sum[j](j * h[j]) * 0.5", "f16: sum[j](f16(j) * h[j]) * 0.5"},
      {"argmax[j](d[j]) + 1", "i64: argmax[j](d[j]) + 1"},
      {"$p * 2", "f32: $p * 2.0"},
      {"clamp(h[i], 0, 1)", "f16: clamp(h[i], 0.0, 1.0)"},
      // A cast types its literal, and hides its operand.
      {"f16(1)", "f16: f16(1.0)"},
      {"u8(7) + u8s[i]", "u8: 7 + u8s[i]"},
      {"f32(i32s[i]) * 0.5", "f32: f32(i32s[i]) * 0.5"},
      {"f64(a[i] + 1) + 1", "f64: f64(a[i] + 1.0) + 1.0"},
      {"bits(a[i]) + 1", "i32: bits(a[i]) + 1"},
      {"from_bits(i32s[i]) + 1", "f32: from_bits(i32s[i]) + 1.0"},
  };
  ExpectTypes(kCases);
}

// An index value meets a float by a conversion, an integer tensor by widening that.
TEST(InferTypes, OfIndexValues) {
  constexpr Case kCases[] = {
      {"a[i] + i", "f32: a[i] + f32(i)"},
      {"h[i] * (i + $k)", "f16: h[i] * f16(i + $k)"},
      {"i32s[i] + i", "i64: i64(i32s[i]) + i"},
      {"i8s[i] * 2 + i", "i64: i64(i8s[i]) * 2 + i"},
      {"u8s[i] < i", "bool: i64(u8s[i]) < i"},
      {"i64s[i] + i", "i64: i64s[i] + i"},
      {"where(b[i], i32s[i], i)", "i64: where(b[i], i64(i32s[i]), i)"},
      {"max(i8s[i], N)", "i64: max(i64(i8s[i]), N)"},
  };
  ExpectTypes(kCases);
}

TEST(InferTypes, ThatDoNotMix) {
  constexpr Case kCases[] = {
      {"a[i] + d[i]", "2:15: types f32 and f64 do not mix: cast one, as in f32(..)"},
      {"1 + a[i] + d[i]", "2:19: types f32 and f64 do not mix: cast one, as in f32(..)"},
      {"a[i] < i32s[i]", "2:15: types f32 and i32 do not mix: cast one, as in f32(..)"},
      {"b[i] + 1", "2:15: the literal '1' does not fit bool"},
      {"b[i] + b[i]", "2:13: 'add' takes a number, is given bool"},
      {"exp(1)", "2:8: 'exp' takes a float, is given i64"},
      {"b[i] && a[i]", "2:16: types bool and f32 do not mix: cast one, as in bool(..)"},
      {"u64s[i] + i", "2:18: types u64 and i64 (an index) do not mix: cast one"},
      {"i + u64s[i]", "2:12: types u64 and i64 (an index) do not mix: cast one"},
      {"where(a[i], 1, 2)", "2:14: types bool and f32 do not mix: cast one, as in bool(..)"},
      {"where(b[i], a[i], d[i])", "2:26: types f32 and f64 do not mix: cast one, as in f32(..)"},
      {"i32s[i] + i + i32s[i]", "2:22: types i64 and i32 do not mix: cast one, as in i64(..)"},
      {"a[i] < 1 || i8s[i] == u8s[i]", "2:30: types i8 and u8 do not mix: cast one, as in i8(..)"},
      {"a[i] + sum[j](d[j])", "2:15: types f32 and f64 do not mix: cast one, as in f32(..)"},
      {"a[i] + exp(d[i])", "2:15: types f32 and f64 do not mix: cast one, as in f32(..)"},
      {"exp(i32s[i])", "2:8: 'exp' takes a float, is given i32"},
      {"bits(d[i]) + bits(a[i])", "2:21: types i64 and i32 do not mix: cast one, as in i64(..)"},
      {"bits(h[i])", "2:8: 'bits' does not take f16"},
      {"sin(a[i], a[i])", "2:8: 'sin' takes 1 operand, is given 2"},
      {"clamp(a[i])", "2:8: 'clamp' takes 3 operands, is given 1"},
      {"u8s[i] + 256", "2:17: the literal '256' does not fit u8"},
      {"i32s[i] + 0.5", "2:18: the literal '0.5' does not fit i32"},
  };
  ExpectTypes(kCases);
}

// What a scatter declares meets its body as an operand would.
TEST(InferTypes, OfScatters) {
  const struct {
    const char* statement;
    const char* expected;
  } kCases[] = {
      {"y[i]: f16[N] += h[i] * 2", "f16"},
      {"y[i]: u8[N] += 255", "u8"},
      {"y[i]: f64[N] += i * 0.5", "f64"},
      {"y[i]: i64[N] += i32s[i] + i", "i64"},
      {"y[i]: f32[N] += d[i]", "2:17: types f32 and f64 do not mix: cast one, as in f32(..)"},
      {"y[i]: u8[N] += 256", "2:16: the literal '256' does not fit u8"},
      {"y[i]: i32[N] += i", "2:17: types i32 and i64 (an index) do not mix: cast one"},
      {"y[i]: i32[N] += i32s[i] + i",
       "2:17: types i32 and i64 do not mix: cast one, as in i32(..)"},
      {"y[i]: bool[N] max= b[i]", "2:7: a scatter by 'max=' does not take bool"},
  };
  for (const auto& c : kCases) {
    const std::string typed = Typed(c.statement);
    EXPECT_EQ(typed.substr(0, typed[0] == '2' ? typed.size() : typed.find(": ")), c.expected)
        << c.statement;
  }
}

}  // namespace
}  // namespace nestor
