// Ops as text: the form in which each kind of op and expression prints, which nodes are named and
// how, which ranges are written; and the text read again. semantics_test reads all of its programs
// again, recurrence_test.cc prints blocks.
#include "uops/notation/print.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"
#include "uops/notation/parser.h"

namespace nestor {
namespace {

// The text of the op, which must be that of the op read from it.
std::string Printed(const Op& op) {
  const std::string text = PrintOp(op);
  const absl::StatusOr<Op> again = ParseOp(text);
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << text;
  if (again.ok()) {
    EXPECT_TRUE(SameOp(op, *again)) << text << PrintOp(*again);
    EXPECT_EQ(PrintOp(*again), text);
  }
  return text;
}

std::string Printed(absl::string_view text) {
  const absl::StatusOr<Op> op = ParseOp(text);
  return op.ok() ? Printed(*op) : op.status().ToString();
}

// The statements in one line, as one would write them there.
std::string Body(const std::string& text) {
  std::vector<std::string> lines =
      absl::StrSplit(text.substr(text.find("{\n") + 2), '\n', absl::SkipEmpty());
  if (!lines.empty() && lines.back() == "}") lines.pop_back();
  for (std::string& line : lines) absl::StripAsciiWhitespace(&line);
  return absl::StrReplaceAll(absl::StrJoin(lines, "; "),
                             {{"{; ", "{ "}, {"; }", " }"}, {"; }; ", " } "}});
}

struct Case {
  const char* written;
  const char* printed;
};

// Bodies of an op with these tensors, dimensions and $params; the text must be read again.
std::string PrintedBody(absl::string_view statements, absl::string_view results) {
  return Body(Printed(absl::StrCat(
      "op f(x: f32[N, M], v: f32[N], u: f32[M], ids: i64[N], b: bool[N], s: f32[]; $k = 1, $p: f32, "
      "$c: bool, $d: u8 = 0) -> (",
      results, ") { ", statements, " }")));
}

void ExpectPrinted(absl::Span<const Case> cases, absl::string_view results = "y") {
  for (const Case& c : cases) {
    EXPECT_EQ(PrintedBody(c.written, results), *c.printed == '\0' ? c.written : c.printed)
        << c.written;
  }
}

// ---- Expressions. An empty text prints as it is written.

TEST(Print, Precedence) {
  const Case kCases[] = {
      {"y[i] = v[i] + v[i] * v[i] - v[i] / v[i]", ""},
      {"y[i] = (v[i] + 1.0) * v[i]", ""},
      {"y[i] = (v[i] + 1.0) + v[i]", "y[i] = v[i] + 1.0 + v[i]"},
      {"y[i] = v[i] + (1.0 + v[i])", ""},
      {"y[i] = v[i] - (1.0 - v[i])", ""},
      {"y[i] = v[i] * (2.0 * v[i])", ""},
      {"y[i] = v[i] / 2.0 / v[i]", ""},
      {"y[i] = -v[i] * v[i]", ""},
      {"y[i] = -(v[i] * v[i])", ""},
      {"y[i] = -(-v[i])", "y[i] = --v[i]"},
      {"y[i] = -exp(v[i])", ""},
      {"y[i] = v[i] * -1.5", ""},
      {"y[i] = !(b[i] && v[i] < 1.0)", ""},
      {"y[i] = !b[i] && v[i] < 1.0 || b[i]", ""},
      {"y[i] = b[i] && (v[i] < 1.0 || b[i])", ""},
      {"y[i] = (v[i] < 1.0) == b[i]", ""},
      {"y[i] = (v[i] < 1.0 || b[i]) == b[i]", ""},
      {"y[i] = (v[i] + 1.0) < -v[i]", "y[i] = v[i] + 1.0 < -v[i]"},
      {"y[i] = ids[i] % 3 / 2", "y[i] = floordiv(ids[i] % 3, 2)"},
      {"y[i] = i64(v[i]) % (ids[i] + 1)", ""},
  };
  ExpectPrinted(kCases);
}

// A literal stands bare beside what gives it its type, else in a cast.
TEST(Print, Literals) {
  const Case kCases[] = {
      {"y[i] = v[i] + 1", "y[i] = v[i] + 1.0"},
      {"y[i] = 0.1 + v[i]", ""},
      {"y[i] = max(v[i], -inf)", ""},
      {"y[i] = where(b[i], nan, v[i])", ""},
      {"y[i] = where(true, v[i], v[i])", ""},
      {"y[i] = v[i] + exp(2.0)", "y[i] = v[i] + exp(f32(2.0))"},
      {"y[i] = 1 where i < N", "y[i] = i64(1) where i < N"},
      {"y[i] = 1. where i < N", "y[i] = f32(1.0) where i < N"},
      {"y = i64(3)", ""},
      {"y = u8(255)", ""},
      {"y = true", ""},
      {"y = bf16(-0.5)", ""},
      {"y = f64(0.1)", ""},
      {"y[i] = ids[i] == 3", ""},
      {"y[i] = b[i] == false", ""},
      {"y[i] = where(b[i], 1.0, 2.0)", "y[i] = where(b[i], f32(1.0), f32(2.0))"},
      {"y[i] = pow(2.0, v[i])", ""},
      {"y[i] = f64(v[i]) * 2.0", ""},
  };
  ExpectPrinted(kCases);
}

// Fills, conditions, gathers, and $params as values, indices and fills.
TEST(Print, Accesses) {
  const Case kCases[] = {
      {"y[i] = v[i + 1] where i < N", ""},
      {"y[i] = v[i - 1 | -1.5] where i < N", ""},
      {"y[i] = v[i + $k | $p] where i < N", ""},
      {"y[i] = v[i | 0 if i < 3]", "y[i] = v[i if i < 3]"},
      {"y[i] = v[i | -inf if i < 3, i != $k]", ""},
      {"y[i] = v[i if !(i < 3 || i == 5 && $k <= i)]", ""},
      {"y[i] = v[i if 3 > i]", "y[i] = v[i if i < 3]"},
      {"y[i] = v[i if i < 3, 1 == 1]", "y[i] = v[i if i < 3]"},
      {"y[i] = v[i if 1 == 2]", "y[i] = v[i if false]"},
      {"y[i] = v[ids[i]]", ""},
      {"y[i] = v[ids[ids[i]] + 1 | 2.0 if ids[i] < N]", ""},
      {"y[i, j] = x[j, i]", ""},
      {"y[i] = x[i, i]", ""},
      {"y = s[| 1.0 if $k == 3]", "y = s[ | 1.0 if $k == 3]"},
      {"y[i] = v[i] * $p", ""},
      {"y[i] = where($c, v[i], $p)", ""},
      {"y[i] = ids[i] + $k", ""},
      {"y[i] = u[i*$k + N/2 - 1] where i < min(N, M)",
       "y[i] = u[i*$k + N/2 - 1] where i < min(M, N)"},
      {"y[i] = v[(i + 1)*2 % 3] where i < N", "y[i] = v[(2*i + 2)%3] where i < N"},
  };
  ExpectPrinted(kCases);
}

// Values of indices, which are functions where an operator would be another one.
TEST(Print, IndexValues) {
  const Case kCases[] = {
      {"y[i] = i where i < N", ""},
      {"y[i] = 2*i + $k where i < N", ""},
      {"y[i] = f32(i) + v[i]", ""},
      {"y[i] = floordiv(i, 2) where i < N", ""},
      {"y[i] = mod(i, 2) where i < N", "y[i] = i%2 where i < N"},
      {"y[i] = ids[i] + i", ""},
      {"y = N*M", "y = M*N"},
      {"y[i, j] = i < j where i < N, j < M", ""},
      {"y[i] = max(i, $k) where i < N", ""},
      // A tensor of index values is no index: its arithmetic may wrap.
      {"a[i] = i where i < N; y[i] = a[i] * 2", "t0[i] = i where i < N; y[i] = t0[i] * 2"},
      {"a[i] = i where i < N; y[i] = max(-a[i], a[i])",
       "t0[i] = i where i < N; y[i] = max(-t0[i], t0[i])"},
      {"a[i] = i where i < N; y[i] = f32(a[i])", "y[i] = f32(i) where i < N"},
      {"a[i] = i where i < N; y[i] = abs(a[i])", "y[i] = abs(i) where i < N"},
  };
  ExpectPrinted(kCases);
}

TEST(Print, ReductionsAndScatters) {
  const Case kCases[] = {
      {"y = sum[i](v[i])", ""},
      {"y[i] = sum[j](x[i, j]) + v[i]", ""},
      {"y[i] = max[j](x[i, j] + u[j])", ""},
      {"y = prod[i, j](x[i, j])", ""},
      {"y = argmin[i](v[i])", ""},
      {"y = any[i](b[i]) && all[i](!b[i])", "y = any[i](b[i]) && all[j](!b[j])"},
      {"y = sum[j](v[j] * sum[k](x[j, k]))", "y = sum[i](v[i] * sum[j](x[i, j]))"},
      {"y[c] = sum[a](x[a, c])", "y[i] = sum[j](x[j, i])"},
      {"y[i] = sum[j](v[i + j]) where i < 3, j < 2", ""},
      {"y[i] = sum[j](v[i]) where j < M", ""},
      {"y[ids[i]]: f32[N] += v[i]", ""},
      {"y[ids[i], j]: f32[9, M] *= x[i, j]", ""},
      {"y[i + 1]: f32[2*N] max= v[i]", ""},
      {"y[]: f32[] min= v[i]", ""},
      {"y[i]: f32[M] += x[j, i]", "t0[i, j] = x[j, i]; y[i]: f32[M] += t0[i, j]"},
      {"y[i]: f32[N] += 1 where i < N", "t0[i] = f32(1.0) where i < N; y[i]: f32[N] += t0[i]"},
  };
  ExpectPrinted(kCases);
}

// ---- Statements and names

// A node has a name where it is used twice, gathered from, scattered or read out of order.
TEST(Print, Names) {
  const Case kCases[] = {
      {"a[i] = exp(v[i]); y[i] = a[i] + 1.0", "y[i] = exp(v[i]) + 1.0"},
      {"a[i] = exp(v[i]); y[i] = a[i] * a[i]", "t0[i] = exp(v[i]); y[i] = t0[i] * t0[i]"},
      {"a[i] = exp(v[i]); y[i] = a[i + 1] where i < N",
       "t0[i] = exp(v[i]); y[i] = t0[i + 1] where i < N"},
      {"a[i] = ids[i] * 2; y[i] = v[a[i]]", "t0[i] = ids[i] * 2; y[i] = v[t0[i]]"},
      {"a[i] = exp(v[i]); y[i, j] = a[i] * u[j] + a[j]",
       "t0[i] = exp(v[i]); y[i, j] = t0[i] * u[j] + t0[j]"},
      {"a[i] = exp(v[i]); b2[i] = sin(v[i]); y[i] = a[i]*b2[i]*a[i]*b2[i]",
       "t0[i] = exp(v[i]); t1[i] = sin(v[i]); y[i] = t0[i] * t1[i] * t0[i] * t1[i]"},
      {"y[i] = exp(v[i]) + exp(v[i])", "t0[i] = exp(v[i]); y[i] = t0[i] + t0[i]"},
      // Literals, $params and arguments need none.
      {"y[i] = v[i] * 2 + v[i] * 2 * $p * $p",
       "t0[i] = v[i] * 2.0; y[i] = t0[i] + t0[i] * $p * $p"},
  };
  ExpectPrinted(kCases);
}

// Results keep their names, share a tensor, or are arguments.
TEST(Print, Results) {
  const Case kCases[] = {
      {"y[i] = exp(v[i]); z[i] = y[i] + 1.0", ""},
      {"z[i] = exp(v[i]); y[i] = z[i]", "y[i] = exp(v[i]); z[i] = y[i]"},
      {"y[i] = v[i]; z[i, j] = x[i, j]", ""},
      {"y = s; z = s", ""},
      {"y[i, j] = v[i] where j < M; z[i] = v[i]", ""},
  };
  ExpectPrinted(kCases, "y, z");
}

// New names are no names that the op has, and no words of the notation.
TEST(Print, KeepsNamesApart) {
  const Case kCases[] = {
      {"op f(t0: f32[i], j: f32[k]) -> (t1) {\n"
       "  a[p] = exp(t0[p])\n"
       "  t1[p, q] = a[p] * j[q] * a[p]\n"
       "}\n",
       "op f(t0: f32[i], j: f32[k]) -> (t1) {\n"
       "  t2[l] = exp(t0[l])\n"
       "  t1[l, m] = t2[l] * j[m] * t2[l]\n"
       "}\n"},
      {"op f(t: f32[t_2]) -> (y) { for s < t_2 { y[s] = y[s - 1] + t[s] } }",
       "op f(t: f32[t_2]) -> (y) {\n"
       "  for t_3 < t_2 {\n"
       "    y[t_3] = y[t_3 - 1] + t[t_3]\n"
       "  }\n"
       "}\n"},
      // All fourteen letters, then numbers.
      {"op f(x: f32[A, A, A, A, A, A, A, A, A, A, A, A, A, A, A]) -> (y) {\n"
       "  y = sum[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o](x[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o])\n"
       "}\n",
       "op f(x: f32[A, A, A, A, A, A, A, A, A, A, A, A, A, A, A]) -> (y) {\n"
       "  y = sum[i, j, k, l, m, n, o, p, q, r, s, u, v, w, i14](x[i, j, k, l, m, n, o, p, q, r, s, u, v, w, i14])\n"
       "}\n"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Printed(c.written), c.printed);
}

// A deep expression is in parts, each of which is read without deep recursion.
TEST(Print, CutsDeepExpressions) {
  std::string deep = "x[i]";
  for (int depth = 0; depth < kMaxNesting - 10; ++depth) deep = absl::StrCat("exp(", deep, ")");
  const std::string text = Printed(
      absl::StrCat("op f(x: f32[N]) -> (y) { a[i] = ", deep, "; y[i] = a[i] + ", deep, " }"));
  EXPECT_NE(text.find("t3[i] ="), std::string::npos) << text;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, "exp(");
    EXPECT_LE(parts.size(), 45u) << line;
  }
}

// ---- Ranges

// Where the accesses say a range, it is not written.
TEST(Print, Ranges) {
  const Case kCases[] = {
      {"y[i, j] = x[i, j] where i < N, j < M", "y[i, j] = x[i, j]"},
      {"y[i, j] = x[i, j] where i < N - 1, j < M", "y[i, j] = x[i, j] where i < N - 1"},
      {"y[i] = v[i] where i < M", ""},
      {"y[i] = v[i] + u[i]", ""},  // the sizes are known to be equal
      {"y[i] = v[i] + u[i] where i < N", ""},
      {"y[i] = u[i] + v[i]", ""},
      {"y[i] = v[0] + u[i]", ""},
      {"y[i, j] = v[i] where j < 3", ""},
      {"y[i] = v[i + 1] + v[i]", ""},
      {"y[i] = v[ids[i]]", ""},
      {"y[i] = sum[j](x[i, j]) where j < 2", ""},
  };
  ExpectPrinted(kCases);
}

TEST(Print, EqualitiesIfAskedFor) {
  const absl::StatusOr<Op> op = ParseOp("op f(a: f32[N], b: f32[M], c: f32[K, 2*N]) -> (y) {\n"
                                        "  t[i] = a[i] + b[i]\n"
                                        "  y[i, j] = t[i] * b[i] + c[i, j] + a[i]\n"
                                        "}\n");
  ASSERT_TRUE(op.ok()) << op.status();
  const std::string plain = PrintOp(*op), commented = PrintOp(*op, {.equalities = true});
  EXPECT_EQ(plain.find('#'), std::string::npos);
  EXPECT_EQ(commented.find("  # M == N\n"), commented.find("{\n") + 2) << commented;
  EXPECT_EQ(commented.rfind("# M == N"), commented.find("# M == N")) << commented;
  EXPECT_TRUE(SameOp(*op, ParseOp(commented).value()));
}

// ---- Signatures

TEST(Print, Signatures) {
  // Each prints as it is written.
  for (
      const char* text : {
          "op f() -> (y) {\n  y = true\n}\n",
          "op f(x: f32[]) -> (y) {\n  y = x\n}\n",
          "op f(x: f32[N, 2*N + 1, 3]) -> (y) {\n  y[i, j, k] = x[i, j, k]\n}\n",
          "op f(x: f32[max(M, N), M*N, N%2, (N + 1)/2], z: i8[N], w: u64[M]) -> (y) {\n"
          "  y[i] = z[i]\n}\n",
          "op f(x: shape bf16[N], z: f16[N]) -> (y, p) {\n  p[i] = i where i < N\n  y[i] = z[i]\n}\n",
          "op f(; $k, $l = 2, $m in [0, 5], $n = -3 in [-inf, 5], $o in [1, inf]) -> (y) {\n"
          "  y = $k + $l + $m + $n + $o\n}\n",
          "op f(; $a: f32, $b: f64 = 0.1 in [-inf, 1.0], $c: bool = true, $d: u8 = 255, $e: bf16 = "
          "1.5 in [0.5, 2.0]) -> (y) {\n  y = $b\n}\n",
      })
    EXPECT_EQ(Printed(text), text);
}

// A text has no calls, so a $param has the ranges of all ops that it is passed to.
TEST(Print, RangesOfCallees) {
  const absl::StatusOr<Module> module =
      Module::Parse("op g(x: f32[N]; $p in [1, 4]) -> (y) { y[i] = x[i] * f32($p) }\n"
                    "op f(x: f32[N]; $k in [-inf, 3], $l = 9, $m) -> (y) {\n"
                    "  u = g(x; p=$k)\n"
                    "  v = g(u; p=$l)\n"  // the default is refused, in whatever text
                    "  y = g(v; p=2*$m)\n"
                    "}\n");
  ASSERT_TRUE(module.ok()) << module.status();
  const absl::StatusOr<Op> op = module->Instantiate("f", {});
  ASSERT_TRUE(op.ok()) << op.status();
  EXPECT_EQ(PrintOp(*op).find("op f(x: f32[N]; $k in [1, 3], $l = 9, $m) -> (y) {"), 0u)
      << PrintOp(*op);
}

// Type variables and packs are what they were given as; calls are inlined.
TEST(Print, KnownTypesAndRanks) {
  const absl::StatusOr<Module> module =
      Module::Parse("op twice(a: T[..N]) -> (b) { b[..n] = 2 * a[..n] }\n"
                    "op f(x: T[..N, C], n: U[C]; $p: T = 1) -> (y, z) {\n"
                    "  u = twice(x)\n"
                    "  y[..n, c] = u[..n, c] + $p + T(n[c]) * size(..N)\n"
                    "  z = sum[..n, c](u[..n, c])\n"
                    "}\n");
  ASSERT_TRUE(module.ok()) << module.status();
  const struct {
    ArgumentSpecs specs;
    const char* text;
  } kCases[] = {
      {{{"x", {DType::kF64, 1}}, {"n", {DType::kI32, 1}}},
       "op f(x: f64[C], n: i32[C]; $p: f64 = 1.0) -> (y, z) {\n"
       "  t0[i] = 2.0 * x[i]\n"
       "  y[i] = t0[i] + $p + f64(n[i]) * 1.0\n"
       "  z = sum[i](t0[i])\n"
       "}\n"},
      {{{"x", {DType::kBF16, 3}}, {"n", {DType::kBool, 1}}},
       "op f(x: bf16[N0, N1, C], n: bool[C]; $p: bf16 = 1.0) -> (y, z) {\n"
       "  t0[i, j, k] = 2.0 * x[i, j, k]\n"
       "  y[i, j, k] = t0[i, j, k] + $p + bf16(n[k]) * bf16(N0*N1)\n"
       "  z = sum[i, j, k](t0[i, j, k])\n"
       "}\n"},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<Op> op = module->Instantiate("f", c.specs);
    ASSERT_TRUE(op.ok()) << op.status();
    EXPECT_EQ(Printed(*op), c.text);
  }
}

// ---- Recurrences: what recurrence_test.cc does not print

TEST(Print, Recurrences) {
  const Case kCases[] = {
      // A step whose type only other steps would give is written with a cast.
      {"for t < N { y[t] = y[t - 1] + 1 }", "for t < N { y[t] = i64(y[t - 1] + 1) }"},
      {"for t < N { a[t] = y[t - 1] * 2; y[t] = a[t] + a[t] }",
       "for t < N { t0[t] = i64(y[t - 1] * 2); y[t] = t0[t] + t0[t] }"},
      {"for t < N { y[t] = y[t - 1] + 0.5; a[t] = y[t] }",
       "for t < N { y[t] = f32(y[t - 1] + 0.5) }"},
      // Two systems are two blocks; a view that is no result is named, too.
      {"for t < N { y[t] = y[t - 1] + v[t] } for t < N { z[t] = z[t + 1] * v[t] } a[i] = z[i]",
       "for t < N { y[t] = y[t - 1] + v[t] }"},
      {"for t < N { a[t] = a[t - 1] + v[t] } y[i] = exp(a[i]) + a[0]",
       "for t < N { t0[t] = t0[t - 1] + v[t] } y[i] = exp(t0[i]) + t0[0]"},
      // A scatter inside of a block.
      {"for t < N { y[ids[j], t]: f32[M, N] += y[j, t - 1] * v[t] where j < N }",
       "for t < N { t0[i, t] = y[i, t - 1] * v[t] where i < N; y[ids[i], t]: f32[M, N] += t0[i, t] }"},
      {"for t < N { y[t, i] = y[t - 1, i] * x[t, i] }", ""},
      {"for t < N { y[t, i] = y[t - 1, i] + v[t] where i < 3 }", ""},
  };
  ExpectPrinted(kCases);
}

}  // namespace
}  // namespace nestor
