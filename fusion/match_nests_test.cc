// Pairs of nests and what is shared: the gain, and which loops become one.
#include "fusion/match_nests.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text_testing.h"

namespace nestor::loop {
namespace {

Program Around(absl::string_view items) {
  return Parsed(absl::StrCat(
      "program p(x: f32[N, M], w: f32[M, K], e: f32[N, M], f: f32[N, M], h: f32[N, M]) -> (y: f32[N, M], z: f32[N, M], c: f32[M, N], d: f32[N, K], v: f32[N], u: f32[M], r: f32, q: f32) {\n",
      items,
      "\n  drop y[0, 0] = 0.0  drop z[0, 0] = 0.0  drop c[0, 0] = 0.0  drop d[0, 0] = 0.0"
      "\n  drop v[0] = 0.0  drop u[0] = 0.0  r = 0.0  q = 0.0\n}\n"));
}

// "values 2: i=a j=b", the gain and the shared loops; "-": none.
std::string TextOf(const Program& program, const Nest& earlier, const Nest& later,
                   const absl::optional<NestMatch>& match) {
  if (!match) return "-";
  const char* const kNames[] = {"values", "reads", "none"};
  std::string text = absl::StrCat(kNames[static_cast<int>(match->relation)], " ", match->gain, ":");
  for (const auto& [i, j] : match->shared) {
    absl::StrAppend(&text, " ", program.vars[earlier.band[i].var], "=",
                    program.vars[later.band[j].var]);
  }
  return text;
}

TEST(MatchNests, Table) {
  const struct {
    const char* earlier;
    const char* later;
    const char* want;
  } kCases[] = {
      // All loops; the strongest relation is named, and the largest tensor walked once.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for a in [0, N) { for b in [0, M) { z[a, b] = y[a, b] } }", "values 2: i=a j=b"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for a in [0, N) { for b in [0, M) { z[a, b] = x[a, b] } }", "reads 2: i=a j=b"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = 1.0 } }",
       "for a in [0, N) { for b in [0, M) { z[a, b] = 2.0 } }", "none 0: i=a j=b"},
      {"for i in [0, N) { v[i] = 1.0 }", "for a in [0, N) { for b in [0, M) { z[a, b] = v[a] } }",
       "values 1: i=a"},
      {"for i in [0, N) { v[i] = 1.0 }", "for a in [0, N) { for b in [0, M) { z[a, b] = 2.0 } }",
       "-"},
      // Sums of unrelated products: each may be a contraction with the loops around.
      {"for i in [0, N) { for j in [0, M) { r += x[i, j] * e[i, j] } }",
       "for a in [0, N) { for b in [0, M) { q += f[a, b] * h[a, b] } }", "-"},
      {"for i in [0, N) { for j in [0, M) { r += x[i, j] * e[i, j] } }",
       "for a in [0, N) { for b in [0, M) { q += x[a, b] * f[a, b] } }", "reads 2: i=a j=b"},
      {"for i in [0, N) { for j in [0, M) { r += x[i, j] } }",
       "for a in [0, N) { for b in [0, M) { q += f[a, b] * h[a, b] } }", "none 0: i=a j=b"},
      // Statements have no loops.
      {"r = 1.0", "for a in [0, N) { v[a] = r }", "-"},
      // A loop along which a value passes to another iteration is not shared; the others are.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for a in [0, N) { for b in [0, M) { z[a, b] = y[a, b - 1 | 0.0] } }", "values 2: i=a"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for a in [0, N) { for b in [0, M) { c[b, a] = y[a - 1, b | 0.0] } }", "-"},
      {"for j in [0, M) { for i in [0, N) { c[j, i] = x[i, j] } }",
       "for a in [0, N) { for b in [0, M) { u[b] = c[b, a - 1 | 0.0] } }", "values 2: j=b"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for a in [0, N) { for b in [0, M) { z[a, b] = y[a - 1, b - 1 | 0.0] } }", "-"},
      {"for i in [0, N) { v[i] = 1.0 }", "for a in [0, N) { z[a, 0] = v[a] + v[0] }", "-"},
      // Loops that move no reads alike are left out, unless all are matched.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for a in [0, N) { acc s: f32 = sum  for b in [0, M) { s += x[a, b] }  v[a] = s }",
       "reads 2: i=a"},
      // Permuted, in the earlier one's order, where dependences, sums and memory allow it.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for b in [0, M) { for a in [0, N) { z[a, b] = y[a, b] } }", "values 2: i=a j=b"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for b in [0, M) { for a in [0, N) { c[b, a] = y[a, b] } }", "values 2: i=a j=b"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for b in [0, M) { for a in [0, N) { r += y[a, b] } }", "-"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for b in [0, M) { for a in [0, N) { r min= y[a, b] } }", "values 2: i=a j=b"},
      {"for j in [0, M) { u[j] = 1.0 }", "for a in [0, N) { for b in [0, M) { c[b, a] = u[b] } }",
       "values 1: j=b"},
      {"for j in [0, M) { u[j] = 1.0 }", "for a in [0, N) { for b in [0, M) { z[a, b] = u[b] } }",
       "-"},
      // Ranges and steps.
      {"for i in [0, N) { v[i] = 1.0 }", "for a in [1, N) { v[a] = 2.0 }", "-"},
      {"for i in [0, N) step 2 { v[i] = 1.0 }", "for a in [0, N) step 2 { v[a] = 2.0 }",
       "values 1: i=a"},
      {"for i in [0, N) step 2 { v[i] = 1.0 }", "for a in [0, N) { v[a] = 2.0 }", "-"},
      // A contraction shares loops only with nests that it passes rows to, or gets them from.
      {"for i in [0, N) { for k in [0, K) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] * w[j, k] }  d[i, k] = s } }",
       "for a in [0, N) { for b in [0, K) { d[a, b] = d[a, b] + 1.0 } }", "values 2: i=a k=b"},
      {"for i in [0, N) { for k in [0, K) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] * w[j, k] }  d[i, k] = s } }",
       "for a in [0, N) { acc t: f32 = sum  for b in [0, K) { t += d[a, b] }  v[a] = t }",
       "values 2: i=a"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for a in [0, N) { for k in [0, K) { acc s: f32 = sum  for b in [0, M) { s += y[a, b] * w[b, k] }  d[a, k] = s } }",
       "values 2: i=a"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for a in [0, N) { for k in [0, K) { acc s: f32 = sum  for b in [0, M) { s += x[a, b] * w[b, k] }  d[a, k] = s } }",
       "-"},
  };
  for (const auto& c : kCases) {
    const Program program = Around(absl::StrCat(c.earlier, "  ", c.later));
    const Item& earlier = program.body[0];
    const Item& later = program.body[1];
    const Nest a = NestOf(program, earlier), b = NestOf(program, later);
    EXPECT_EQ(TextOf(program, a, b, MatchNests(program, earlier, a, later, b)), c.want)
        << c.earlier << "\n"
        << c.later;
  }
}

}  // namespace
}  // namespace nestor::loop
