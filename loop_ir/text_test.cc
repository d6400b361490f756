// Programs print as they were written; messages for wrong texts; and damaged texts, which must not
// crash the parser.
#include "loop_ir/text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop_ir/program.h"

namespace nestor::loop {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Programs in the form that they print in.
constexpr const char* kPrograms[] = {
    R"(program nothing() -> () {
}
)",

    R"(program softmax(x: f32[N, C]) -> (y: f32[N, C]) {
  for n in [0, N) {
    temp e: f32[C]
    acc m: f32 = max
    for k in [0, C) {
      m max= x[n, k]
    }
    acc s: f32 = sum
    for c in [0, C) {
      e[c] = exp(x[n, c] - m)
      s += e[c]
    }
    for c_2 in [0, C) {
      y[n, c_2] = e[c_2] / s
    }
  }
}
)",

    R"(program signature(x: f32[N, 2*N + 1, $k], s: shape bf16[A, B], r: f64; $k: i64 = 1 in [1, inf], $eps: f32 = 1e-05, $b: bool, $lo: f32 in [-inf, 0.5]) -> (y: f32[max($k, N)], z: i64) {
  require A == B "axis 0 of \"s\"\nand axis 1"
  require 0 <= -2*$k + A <= 7 "in range"
  require -inf <= N <= inf "anything"
  domain : $k*N
  domain d < 2*N - 1, d_2 < A: d*$k + d_2 - $k, d_2/$k; d*d_2
  domain d < A; d*$k
  assume d < A, d_2 < N: d*d_2, $k/d
  version min(max(-N + 4, 0), 1) == 1
  version min(A/2, 1) == 0
  temp t: u8[A/2, B%2]
  acc a: f32 = prod
}
)",

    R"(program said(x: f32[N, C], ids: i64[N]) -> (y: f32[N, C]) {
  proven
  for n in [0, N) {
    for c in [0, C) vector(8) interleave(2) tail prefetch x[n + 1, c] prefetch(2) x[ids[min(n + 1, N - 1)], c] {
      stream y[n, c] = x[ids[n] checked, c] + x[n, c + 1 checked | 0.0 if n < 3]
    }
    stream drop y[ids[ids[n]] checked, 0 checked loads checked] if n < 3 = 1.0 needed if n < 2, 0 < n
  }
}
)",

    R"(program scopes(x: f32[N], ids: i64[N]) -> (y: f32[N]) {
  temp t: f32[N]
  for i in [0, N) step 8 parallel vector unroll {
    temp r: f32[4, 16] register
    acc a: f32[4] = sum register
    for j in [i, min(N, i + 8)) {
      y[j] = 0.0
    }
  }
  for k in [N, 0) {
  }
  for l in [0, N%8) {
    drop y[l + 1] if l < 3, ids[l] != 2 = 0.5
    drop y[l] += x[ids[ids[l + 1] + 1] | -inf]
    drop t[ids[l]] if !(l < 3 || l == 4 && N <= 5) max= x[l]
  }
  t[0] = 1.0
}
)",

    R"(program accumulations(x: f32[N], b: bool[N]) -> (y: i64) {
  for i in [0, N) {
    acc s: f32 = sum
    s += x[i]
    acc p: f32 = prod
    p *= x[i]
    acc h: f32 = max
    h max= x[i]
    acc l: f32 = min
    l min= x[i]
    acc some: bool = any
    some any= b[i]
    acc every: bool = all
    every all= b[i]
    acc best: f32 = argmax
    best argmax= (x[i], index(i))
    acc worst: f32 = argmin
    worst argmin= (x[i] + 1.0, best)
    drop y if i == N - 1 = worst
  }
}
)",

    // Words that begin items are names where a name is expected.
    R"(program words(temp: f32[N], block: f32) -> (register: f32[N], drop: f32, needed: f32[N]) {
  for stream in [0, N) {
    acc acc: f32 = sum
    temp r: f32
    register[stream] = temp[stream]
    acc += temp[stream]
    drop = block
    needed[stream] = block needed if stream == 0
    needed[stream] += block
    drop drop if stream == 0 max= acc
  }
}
)",
};

TEST(Text, RoundTrip) {
  for (const char* text : kPrograms) {
    const absl::StatusOr<Program> program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    EXPECT_EQ(ToText(*program), text);
  }
}

// A statement in a program that has a tensor of each type and every loop.
std::string Around(absl::string_view statement) {
  return absl::StrCat(
      "program p(x: f32[N, M], d: f64[N], h: bf16[N], i: i64[N], u: u8[N], b: bool[N], s: f32; "
      "$k: i64, $eps: f32, $flag: bool) -> (y: f32[N, M], z: f32) {\n"
      "  for n in [0, N) {\n"
      "    for m in [0, M) {\n"
      "      ",
      statement,
      "\n"
      "    }\n"
      "  }\n"
      "}\n");
}

TEST(Text, Statements) {
  const struct {
    const char* text;
    const char* canonical;  // "": text itself
  } kCases[] = {
      // Precedence and association.
      {"z = s + s*s", "z = s + s * s"},
      {"z = (s + s) * s - s / (s / s) % s", ""},
      {"z = s - (s - s)", ""},
      {"z = ((s - s) - s)", "z = s - s - s"},
      {"z = -(s + s) * -s", ""},
      {"z = - -s", "z = --s"},
      {"z = where(!(s < s || b[n] && $flag == (s != s)), $eps, s)", ""},
      {"z = where(s > s && s >= s, s, s)", ""},
      {"z = where((s < s) == b[n], s, s)", ""},
      // Literals and constants.
      {"z = 1.0 + -2.5 + inf + -inf + nan + 1e+20 + -0.0", ""},
      {"z = f32(1)", "z = 1.0"},
      {"z = f32(f64(0.1))", ""},
      {"z = f32(f32(0.1))", ""},
      {"z = f32(f64(d[n]) + f64(-0.1))", ""},
      {"z = f32(u8(3) + u[n]) + f32(h[n] * bf16(1.5))", ""},
      {"z = f32(i[n] + -3 * index(n*$k + N))", ""},
      {"z = f32(i64(-9223372036854775808))", "z = f32(i64(-9223372036854775808))"},
      {"z = neg(2.0) + neg(f32(0.5))", "z = neg(2.0) + neg(0.5)"},
      {"z = f32(bool(i[n]) && true || not(false))", ""},
      {"z = f32(or(i[n], and(i[n], 7)))", ""},
      {"z = f32(not(i[n]))", ""},
      // Functions.
      {"z = max(min(s, s), fma(s, s, pow(s, floordiv(s, 2.0))))", ""},
      {"z = from_bits(bits(s))", ""},
      // Accesses.
      {"y[n, m] = x[n, m | 0.0]", ""},
      {"y[n, m] = x[n - 1, 2*m | $eps if n > 0, m >= 1]",
       "y[n, m] = x[n - 1, 2*m | $eps if 0 < n, 1 <= m]"},
      {"y[n, m] = s + s[ | -1.0 if n < 3]", ""},
      {"y[n, m] = f32(i[n | index($k)])", ""},
      {"y[n, m] = f32(h[n | 0.1])", ""},
      {"y[n, m] = f32(d[n | 0.1]) + f32(u[n | 255])", ""},
      {"y[n, m] = x[i[n], i[i[m + n]]]", "y[n, m] = x[i[n], i[i[n + m]]]"},
      {"y[n, m] = x[m*n, (n + 1)/(m + 2)]", "y[n, m] = x[m*n, (n + 1)/(m + 2)]"},
      {"y[min(n, m), max(m, 3)] *= 2.0", ""},
      {"y[m + n, n + $k*m + N - N]=s;z=s", "y[n + m, n + m*$k] = s\n      z = s"},
      {"z = s # a comment", "z = s"},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<Program> program = ParseProgram(Around(c.text));
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << c.text;
    const std::string printed = ToText(*program);
    EXPECT_EQ(printed, Around(*c.canonical ? c.canonical : c.text));
    const absl::StatusOr<Program> again = ParseProgram(printed);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
    EXPECT_EQ(ToText(*again), printed);
    EXPECT_EQ(again->values.size(), program->values.size());
  }
}

TEST(Text, NamesReusedInSiblingScopesAreMadeUnique) {
  const absl::StatusOr<Program> program = ParseProgram(R"(
      program p(x: f32[N]) -> (y: f32[N]) {
        for i in [0, N) { temp t: f32  t = x[i]  y[i] = t }
        for i in [0, N) { temp t: f32  t = y[i]  y[i] = t }
      })");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(ToText(*program),
              HasSubstr("for i_2 in [0, N) {\n    temp t_2: f32\n    t_2 = y[i_2]"));
}

// The text depends neither on numbers nor on indices named like dimensions or
// tensors.
TEST(Text, OfAProgramBuiltInAnotherOrder) {
  Program p;
  p.name = "p";
  const IndexId n = p.pool.Symbol("n");
  const int32_t inner = p.AddVar("t"), outer = p.AddVar("n");
  const TensorId temp = p.AddTensor({"t", DType::kF32, {n}});
  const TensorId x = p.AddTensor({"x", DType::kF32, {n}, Storage::kInput});
  p.inputs = {x};
  const IndexId sum = p.pool.Add(p.pool.Var(inner), p.pool.Var(outer));
  Loop in{inner, p.pool.Const(0), n, 1, {}, {}};
  in.body.push_back({Statement{{temp, {sum}}, absl::nullopt, p.AddLoad({x, {sum}}), {}}});
  Loop out{outer, p.pool.Const(0), n, 1, {}, {}};
  out.body.push_back({in});
  p.body = {DeclarationOf(temp), Item{out}};
  const std::string text = ToText(p);
  EXPECT_THAT(
      text,
      HasSubstr(
          "for n_2 in [0, n) {\n    for t_2 in [0, n) {\n      t[n_2 + t_2] = x[n_2 + t_2]\n"));
  EXPECT_EQ(ToText(ParseProgram(text).value()), text);
}

TEST(Text, Pieces) {
  const Program p = ParseProgram(Around("drop y[n, m] if n < m = s + 1.0")).value();
  const Item& outer = p.body[0];
  const Item& statement = outer.As<Loop>()->body[0].As<Loop>()->body[0];
  EXPECT_EQ(ToText(p, outer), "for n in [0, N)");
  EXPECT_EQ(ToText(p, statement), "drop y[n, m] if n < m = s + 1.0");
  EXPECT_EQ(ToText(p, statement.As<Statement>()->value), "s + 1.0");
  EXPECT_EQ(ToText(p, statement.As<Statement>()->target.place[1]), "m");
}

TEST(Text, ChainsOfAnyLength) {
  std::string chain = "s";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&chain, " + s");
  const std::string text = Around(absl::StrCat("z = ", chain));
  const absl::StatusOr<Program> program = ParseProgram(text);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ToText(*program), text);
}

TEST(Text, Errors) {
  const std::string deep(300, '('), minus(300, '-');
  const struct {
    std::string text;
    const char* error;
  } kCases[] = {
      {"", "1:1: expected 'program', found the end of the text"},
      {"program", "1:8: expected the program's name, found the end of the text"},
      {"program p(x: f99[N]) -> () {}", "1:14: expected a type, found 'f99'"},
      {"program p(x: f32[N], x: f32) -> () {}", "1:22: 'x' is already defined"},
      {"program p(sum: f32) -> () {}", "1:11: expected the name of a tensor, found 'sum'"},
      {"program p(x: f32[N) -> () {}", "1:19: expected ',' or ']', found ')'"},
      {"program p(; $k: i64 = 0.5) -> () {}", "1:23: the literal '0.5' does not fit i64"},
      {"program p(; $k: f32 in [nan, 1]) -> () {}",
       "1:25: expected a number or -inf (no bound), found 'nan'"},
      {"program p(; $k: i64 in [0, -inf]) -> () {}",
       "1:28: expected a number or inf (no bound), found '-inf'"},
      {"program p() -> () {\n  require inf <= 1 <= 2 \"a\"\n}",
       "2:11: expected a number or -inf (no bound), found 'inf'"},
      {"program p(; $k: i64, $k: i64) -> () {}", "1:22: '$k' is already defined"},
      {"program p(; k: i64) -> () {}", "1:13: expected a $param, found 'k'"},
      {"program p() -> (y: f32[N]) {}", "1:24: 'N' is no index of a loop around and no dimension"},
      {"program p() -> () {} x", "1:22: expected the end of the text, found 'x'"},
      {"program p() -> () { x = 1 }", "1:21: unknown tensor 'x'"},
      {"program p() -> () { version 1 == 2 }", "1:34: expected 0 or 1, found '2'"},
      {"program p() -> () {\n  require 1 == 2\n}", "3:1: expected a message in quotes, found '}'"},
      {"program p() -> () {\n  require 1 == 2 \"a\\q\"\n}", "2:18: bad escape"},
      {"program p() -> () { ? }", "1:21: unexpected '?': a choice is where(c, a, b)"},
      {"program p() -> () { temp t: f32 = sum }", "1:33: expected"},
      {"program p() -> () { acc t: f32 = mean }", "1:34: expected what is accumulated"},
      {Around("q = s"), "4:7: unknown tensor 'q'"},
      {Around("3 = s"), "4:7: expected a statement, a declaration, a loop or '}', found '3'"},
      {Around("z + s"), "4:9: expected '=' or an accumulation, found '+'"},
      {Around("z ="), "5:5: expected a value, found '}'"},
      {Around("z = w"), "4:11: unknown tensor 'w'"},
      {Around("z = n"), "4:11: unknown tensor 'n'"},
      {Around("z = s + 1"), "4:13: types f32 and i64 do not mix in 'add': cast one"},
      {Around("z = s < s < s"),
       "4:17: expected '&&' or '||' (comparisons do not chain), found '<'"},
      {Around("z = s && s"), "4:13: '&&' takes bool, is given f32: write and(..)"},
      {Around("z = !s"), "4:11: '!' takes bool, is given f32: write not(..)"},
      {Around("z = exp(s, s)"), "4:11: 'exp' takes 1 operands, is given 2"},
      {Around("z = exp(i[n])"), "4:11: 'exp' takes a float, is given i64"},
      {Around("z = where(s, s, s)"), "4:11: the condition of 'where' is bool, is given f32"},
      {Around("z = foo(s)"), "4:11: 'foo' is no scalar op"},
      {Around("z = cast(s)"), "4:11: 'cast' is no scalar op"},
      {Around("z = $q"), "4:11: unknown parameter '$q'"},
      {Around("z = $k"), "4:11: an integer $param is a value as index($k)"},
      {Around("z = u8(300)"), "4:14: the literal '300' does not fit u8"},
      {Around("z = x[n, $eps]"), "4:16: '$eps' is no integer $param"},
      {Around("z = x[n, q]"), "4:16: 'q' is no index of a loop around and no dimension"},
      {Around("z = x[n, 1.5]"), "4:16: the literal '1.5' does not fit i64"},
      {Around("z = x[n, exp(n)]"), "4:16: 'exp' is no index"},
      {Around("z = x[n m]"), "4:15: expected ',', '|' or ']', found 'm'"},
      {Around("z = x[n, m,]"), "4:18: expected an index expression, found ']'"},
      {Around("z = x[n, m, | 0.0]"), "4:19: expected an index expression, found '|'"},
      {Around("z = x[n, m | 0.0 for]"), "4:24: expected ',', 'if' or ']', found 'for'"},
      {Around("for n in [0, N) {}"), "4:11: 'n' is already defined"},
      {Around("for j in [0, N) vector(0) {}"), "4:30: a vector has 1 to 64 lanes"},
      {Around("for j in [0, N) vector(65) {}"), "4:30: a vector has 1 to 64 lanes"},
      {Around("for j in [0, N) vector(N) {}"), "4:30: expected a literal"},
      {Around("for j in [0, N) vector(8 {}"), "4:32: expected ')'"},
      {Around("for j in [0, N) vector(8) interleave(0) {}"),
       "4:44: 1 to 64 vectors run side by side"},
      {Around("for j in [0, N) prefetch {}"), "4:32: expected a tensor"},
      {Around("for j in [0, N) prefetch(3) x[i] {}"),
       "4:32: what is prefetched goes into the first cache, or the second one: (2)"},
      {Around("stream 3 = s"), "4:14: expected a statement"},
      {Around("z = x[checked, m]"),
       "4:13: 'checked' is no index of a loop around and no dimension"},
      {Around("for N in [0, N) {}"), "4:11: the loop index 'N' has the name of a dimension"},
      {Around("for j in (0, N) {}"), "4:16: expected '['"},
      {Around("for j in [0, N) {"), "8:1: expected a statement, a declaration, a loop or '}'"},
      {Around("temp z: f32"), "4:12: 'z' is already defined"},
      {Around("{ temp t: f32 } t = s"), "4:7: expected a statement"},
      {Around("for j in [0, N) { temp t: f32 } t = s"), "4:39: unknown tensor 't'"},
      {Around(absl::StrCat("z = ", deep, "s")), "nested too deeply (more than 200 levels)"},
      {Around(absl::StrCat("z = x[n, ", deep)), "nested too deeply (more than 200 levels)"},
      {Around(absl::StrCat("z = ", minus, "s")), "nested too deeply (more than 200 levels)"},
      {Around([] {
         std::string loops;
         for (int i = 0; i < 300; ++i) absl::StrAppend(&loops, "for v", i, " in [0, N) { ");
         return loops;
       }()),
       "nested too deeply (more than 200 levels)"},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<Program> program = ParseProgram(c.text);
    ASSERT_FALSE(program.ok()) << c.text;
    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(program.status().message()), HasSubstr(c.error)) << c.text;
    if (c.error[0] >= '0' && c.error[0] <= '9') {
      EXPECT_THAT(std::string(program.status().message()), StartsWith(c.error)) << c.text;
    }
  }
}

// Every prefix of a text, and every text less one character, is parsed or refused.
TEST(Text, DamagedTextIsNoCrash) {
  for (const std::string text : kPrograms) {
    for (size_t i = 0; i < text.size(); ++i) {
      (void)ParseProgram(text.substr(0, i));
      const absl::StatusOr<Program> program = ParseProgram(text.substr(0, i) + text.substr(i + 1));
      if (!program.ok()) continue;
      const std::string printed = ToText(*program);
      const absl::StatusOr<Program> again = ParseProgram(printed);
      ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
      EXPECT_EQ(ToText(*again), printed);
    }
  }
}

}  // namespace
}  // namespace nestor::loop
