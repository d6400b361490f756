// Loops before and after they are cut at the borders of pads and images.
#include "fusion/split_loops.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], u: f32[M], w2: f32[N, C], i: i64[N]; $p: i64, $s: i64 in [1, inf]) -> "
    "(y: f32[N], z: f32[N + 1], p: f32[N + 2*$p], q: f32[N + M], w: f32[N, C]) {\n"
    "  for e in [0, N) { y[e] = 1.0  for f in [0, C) { w[e, f] = 1.0 } }\n"
    "  for g in [0, N + 1) { z[g] = 1.0 }  for h in [0, N + 2*$p) { p[h] = 1.0 }  for k in [0, N + M) { q[k] = 1.0 }\n",
    "\n}\n"};

TEST(SplitLoops, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // The borders of a pad.
      {"for v in [0, N + 1) { z[v] = x[v - 1 | 0.0] }",
       "for v in [0, 1) { z[v] = 0.0 }  for v_2 in [1, N + 1) { z[v_2] = x[v_2 - 1] }"},
      {"for v in [0, N + 2*$p) { p[v] = x[v - $p | 0.0] }",
       "for v in [0, $p) { p[v] = 0.0 }  for v_2 in [max($p, 0), min($p + N, 2*$p + N)) { p[v_2] = x[v_2 - $p] }  for v_3 in [$p + N, 2*$p + N) { p[v_3] = 0.0 }"},
      {"for v in [0, N) { y[v] = x[2*v | 1.5] }",
       "for v in [0, (N + 1)/2) { y[v] = x[2*v] }  for v_2 in [(N + 1)/2, N) { y[v_2] = 1.5 }"},
      {"for v in [0, N) { y[v] = x[N - 2 - v | 1.5] }",
       "for v in [0, N - 1) { y[v] = x[-v + N - 2] }  for v_2 in [max(N - 1, 0), N) { y[v_2] = 1.5 }"},
      {"for v in [0, N) { for c in [0, C) { w[v, c] = w2[v - 1, c - 1 | 0.0] } }",
       "for v in [0, min(N, 1)) { for c in [0, C) { w[v, c] = 0.0 } }  for v_2 in [1, N) { for c_2 in [0, min(C, 1)) { w[v_2, c_2] = 0.0 }  for c_2_2 in [1, C) { w[v_2, c_2_2] = w2[v_2 - 1, c_2_2 - 1] } }"},
      // A stencil: where the row may end at its border, a mask stays there. Not where the loop
      // gathers, nor for steps of a recurrence with a loop inside.
      {"for v in [0, N) { y[v] = x[v - 1 | 0.0] + x[v + 2 | 0.0] }",
       "for v in [0, min(N, 1)) { y[v] = 0.0 + x[v + 2 | 0.0] }  for v_2 in [1, N - 2) { y[v_2] = x[v_2 - 1] + x[v_2 + 2] }  "
       "for v_3 in [max(N - 2, 1), N) { y[v_3] = x[v_3 - 1] + 0.0 }"},
      // The innermost ones of more points.
      {"for v in [0, N) { y[v] = x[v - 1 | 0.0] + x[v - 2 | 0.0] + x[v + 1 | 0.0] }",
       "for v in [0, min(N, 2)) { y[v] = x[v - 1 | 0.0] + 0.0 + x[v + 1 | 0.0] }  for v_2 in [2, N - 1) { y[v_2] = x[v_2 - 1] "
       "+ x[v_2 - 2] + x[v_2 + 1] }  for v_3 in [max(N - 1, 2), N) { y[v_3] = x[v_3 - 1] + x[v_3 - 2] + 0.0 }"},
      {"for v in [0, N) { y[v] = x[v - 1 | 0.0] + x[v + 2 | 0.0] + x[i[v] | 0.0] }", ""},
      {"for v in [0, N) { for c in [0, C) { w[v, c] = w[v - 1, c | 0.0] + w2[v + 1, c | 0.0] } }",
       ""},
      // The halves of a concatenation; a piece of one value.
      {"for v in [0, N + M) { q[v] = x[v | 0.0] + u[v - N | 0.0] }",
       "for v in [0, N) { q[v] = x[v] + 0.0 }  for v_2 in [N, M + N) { q[v_2] = 0.0 + u[v_2 - N] }"},
      {"for v in [0, N + M) { q[v] = where(index(v) < index(N), x[v | 0.0], u[v - N | 0.0]) }",
       "for v in [0, N) { q[v] = x[v] }  for v_2 in [N, M + N) { q[v_2] = u[v_2 - N] }"},
      {"for v in [0, N) { y[v] = where(index(v) == index(M), x[v], 2.0) }",
       "for v in [0, min(M, N)) { y[v] = 2.0 }  for v_2 in [M, min(N, M + 1)) { y[v_2] = x[v_2] }  for v_3 in [M + 1, N) { y[v_3] = 2.0 }"},
      // A sum of products whose factors are all gated alike; not where one of them is not, or
      // has another fill.
      {"for v in [0, N) { acc a: f32 = sum for k in [0, N) { a += x[k | 0.0 if k <= v] * y[v | 0.0 if k <= v] } y[v] = a }",
       "for v in [0, N) { acc a: f32 = sum for k in [0, v + 1) { a += x[k] * y[v] } for k_2 in [v + 1, N) { a += 0.0 * 0.0 } y[v] = a }"},
      {"for v in [0, N) { acc a: f32 = sum for k in [0, N) { a += x[k | 0.0 if k <= v] * y[v] } y[v] = a }",
       ""},
      {"for v in [0, N) { acc a: f32 = sum for k in [0, N) { a += x[k | 0.0 if k <= v] * y[v | 0.0 if k < v] } y[v] = a }",
       ""},
      {"for v in [0, N) { acc a: f32 = sum for k in [0, N) { a += x[k | 0.0 if k <= v] * y[v | 1.0 if k <= v] } y[v] = a }",
       ""},
      // An identity stays where it may turn -0 into 0.
      {"for v in [0, N) { y[v] += where(index(v) < 3, x[v], 0.0) }",
       "for v in [0, min(N, 3)) { y[v] += x[v] }  for v_2 in [3, N) { y[v_2] += 0.0 }"},
      // A border that repeats the outermost elements, or reflects those inside: the inner extreme
      // turns over first.
      {"for v in [0, N + 2*$p) { p[v] = x[min(N - 1, max(v - $p, 0)) | 0.0] }",
       "for v in [0, min($p + 1, 2*$p + N)) { p[v] = x[min(N - 1, 0) | 0.0] } for v_2 in [max($p + 1, 0), min($p + N - 1, 2*$p + N)) { p[v_2] = x[v_2 - $p] } for v_2_2 in [max($p + N - 1, max($p + 1, 0)), 2*$p + N) { p[v_2_2] = x[N - 1 | 0.0] }"},
      {"for v in [0, N + 2*$p) { p[v] = x[min(max(v - $p, $p - v), 2*N - 2 - max(v - $p, $p - v)) | 0.0] }",
       "for v in [0, min($p - 2*N + 2, min($p - N + 1, min($p + 1, 2*$p + N)))) { p[v] = 0.0 } for v_2 in [max($p - 2*N + 2, 0), min($p - N + 1, min($p + 1, 2*$p + N))) { p[v_2] = x[v_2 - $p + 2*N - 2] } for v_3 in [max($p - N + 1, 0), min($p + 1, 2*$p + N)) { p[v_3] = x[-v_3 + $p] } for v_4 in [max($p + 1, 0), min($p + N - 1, 2*$p + N)) { p[v_4] = x[v_4 - $p] } for v_4_2 in [max($p + N - 1, max($p + 1, 0)), min($p + 2*N - 1, 2*$p + N)) { p[v_4_2] = x[-v_4_2 + $p + 2*N - 2] } for v_4_2_2 in [max($p + 2*N - 1, max($p + N - 1, max($p + 1, 0))), 2*$p + N) { p[v_4_2_2] = 0.0 }"},
      {"for v in [0, N) { y[v] = x[max(v - $p, 0) | 0.0] }",
       "for v in [0, min(N, $p + 1)) { y[v] = x[0] } for v_2 in [max($p + 1, 0), min(N, $p + N)) { y[v_2] = x[v_2 - $p] } for v_2_2 in [max($p + N, max($p + 1, 0)), N) { y[v_2_2] = 0.0 }"},
      // Products keep the place of a factor; a gathered place stays.
      {"for v in [0, N) { acc a: f32 = sum for k in [0, M) { a += u[k] * x[max(v - 1, 0) | 0.0] } y[v] = a }",
       ""},
      {"for v in [0, N) { y[v] = x[max(i[v] - 1, 0) | 0.0] }", ""},
      // A gate bounds its loop; a triangle.
      {"for v in [0, N) { drop y[v] if 2 <= v, v < M = x[v] }",
       "for v in [2, min(M, N)) { y[v] = x[v] }"},
      {"for l in [0, N) { acc a: f32 = sum  for s in [0, C) { drop a if s <= l += w[l, s] }  y[l] = a }",
       "for l in [0, N) { acc a: f32 = sum  for s in [0, min(C, l + 1)) { a += w[l, s] }  y[l] = a }"},
      {"for l in [0, N) { acc a: f32 = max  for s in [0, C) { a max= where(index(s) <= index(l), w[l, s], -inf) }  y[l] = a }",
       "for l in [0, N) { acc a: f32 = max  for s in [0, min(C, l + 1)) { a max= w[l, s] }  y[l] = a }"},
      {"for h in [0, N) { acc a: f32 = sum  for r in [0, M) { drop a if 0 <= h - r, h - r < C += w[h, h - r] * u[r] }  y[h] = a }",
       "for h_2 in [0, N) { acc a: f32 = sum  for r in [max(h_2 - C + 1, 0), min(M, h_2 + 1)) { a += w[h_2, h_2 - r] * u[r] }  y[h_2] = a }"},
      {"for h in [0, N) { acc a: f32 = sum  for r in [0, M) { drop a if (h - r)%$s == 0, 0 <= (h - r)/$s, (h - r)/$s < C += w[h, (h - r)/$s] }  y[h] = a }",
       "for h_2 in [0, N) { acc a: f32 = sum  for r in [max(h_2 - $s*C + 1, 0), min(M, h_2 + 1)) { drop a if (h_2 - r)%$s == 0 += w[h_2, (h_2 - r)/$s] }  y[h_2] = a }"},
      // Outer loops whose bodies decide it; their declarations are repeated.
      {"for l in [0, N) { temp t: f32  for s in [0, C) { t = w[l, s] }  y[l] = where(index(l) < index(M), t, 0.0) }",
       "for l in [0, min(M, N)) { temp t: f32  for s in [0, C) { t = w[l, s] }  y[l] = t }  for l_2 in [M, N) { temp t_2: f32  for s_2 in [0, C) { t_2 = w[l_2, s_2] }  y[l_2] = 0.0 }"},
      {"for l in [0, N) { acc a: f32 = sum  for s in [0, C) { a += w[l - 1, s | 0.0] }  y[l] = a }", "for l in [0, min(N, 1)) { acc a: f32 = sum  y[l] = a }  for l_2 in [1, N) { acc a_2: f32 = sum  for s_2 in [0, C) { a_2 += w[l_2 - 1, s_2] }  y[l_2] = a_2 }"},
      {"for l in [0, N) { for s in [0, C) { drop y[l] if l != 3, s < 2 = w[l, s] } }",
       "for l in [0, min(N, 3)) { for s in [0, min(C, 2)) { y[l] = w[l, s] } }  for l_3 in [4, N) { for s_3 in [0, min(C, 2)) { y[l_3] = w[l_3, s_3] } }"},
      // Nothing to decide, or not by an index alone, or of no known sign, or gathered.
      {"for v in [0, N) { y[v] = x[v] }", ""},
      {"for v in [0, N) { y[v] = x[v*$p | 0.0] }", ""},
      {"for v in [0, N) { y[v] = x[v%3 | 0.0] }", ""},
      {"for v in [0, N) { y[v] = x[i[v] | 0.0] }", ""},
      {"for v in [0, N) step 2 { drop y[v] = x[v - 1 | 0.0] }", ""},
  };
  ExpectPass(SplitLoops, kFrame, kCases);
}

constexpr Frame kRows = {"program p(x: f32[N, M], w: f32[3]) -> (y: f32[N, M]) {\n", "\n}\n"};

TEST(SplitWindows, AtBordersOfAnImage) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { for j in [0, M) { acc m: f32 = max for r in [max(-j + 1, 0), min(-j + M + 1, 3)) { m max= x[i, j + r - 1] }"
       " y[i, j] = m } }",
       "for i in [0, N) { for j in [0, min(M, 1)) { acc m: f32 = max for r in [-j + 1, min(-j + M + 1, 3)) { m max= x[i, j + r - 1] }"
       " y[i, j] = m }"
       " for j_2 in [1, M - 1) { acc m_2: f32 = max for r_2 in [0, 3) { m_2 max= x[i, j_2 + r_2 - 1] } y[i, j_2] = m_2 }"
       " for j_3 in [max(M - 1, 1), M) { acc m_3: f32 = max for r_3 in [0, -j_3 + M + 1) { m_3 max= x[i, j_3 + r_3 - 1] }"
       " y[i, j_3] = m_3 } }"},
      // Masked loads, which are in range inside, so that the code tests no mask there.
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum for r in [0, 3) { s += exp(x[i, 2*j + r - 1 | 0.0]) } y[i, j] = s } }",
       R"(
         for i in [0, N) {
           for j in [0, min(M, 1)) {
             acc s: f32 = sum
             for r in [0, 3) { s += exp(x[i, 2*j + r - 1 | 0.0]) }
             y[i, j] = s
           }
           for j_2 in [1, M/2) {
             acc s_2: f32 = sum
             for r_2 in [0, 3) { s_2 += exp(x[i, 2*j_2 + r_2 - 1 | 0.0]) }
             y[i, j_2] = s_2
           }
           for j_3 in [max(M/2, 1), M) {
             acc s_3: f32 = sum
             for r_3 in [0, 3) { s_3 += exp(x[i, 2*j_3 + r_3 - 1 | 0.0]) }
             y[i, j_3] = s_3
           }
         })"},
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum for r in [0, 3) { s += w[r] * x[i + r - 1, j + r - 1 | 0.0] } y[i, j] = s } }",
       R"(
         for i in [0, min(N, 1)) {
           for j in [0, M) {
             acc s: f32 = sum
             for r in [0, 3) { s += w[r] * x[i + r - 1, j + r - 1 | 0.0] }
             y[i, j] = s
           }
         }
         for i_2 in [1, N - 1) {
           for j_2 in [0, M) {
             acc s_2: f32 = sum
             for r_2 in [0, 3) { s_2 += w[r_2] * x[i_2 + r_2 - 1, j_2 + r_2 - 1 | 0.0] }
             y[i_2, j_2] = s_2
           }
         }
         for i_3 in [max(N - 1, 1), N) {
           for j_3 in [0, M) {
             acc s_3: f32 = sum
             for r_3 in [0, 3) { s_3 += w[r_3] * x[i_3 + r_3 - 1, j_3 + r_3 - 1 | 0.0] }
             y[i_3, j_3] = s_3
           }
         })"},
      // Sums of products of few steps.
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum for r in [max(-j + 1, 0), min(-j + M + 1, 3)) { s += w[r] * x[i, j + r - 1] }"
       " y[i, j] = s } }",
       R"(
         for i in [0, N) {
           for j in [0, min(M, 1)) {
             acc s: f32 = sum
             for r in [-j + 1, min(-j + M + 1, 3)) { s += w[r] * x[i, j + r - 1] }
             y[i, j] = s
           }
           for j_2 in [1, M - 1) {
             acc s_2: f32 = sum
             for r_2 in [0, 3) { s_2 += w[r_2] * x[i, j_2 + r_2 - 1] }
             y[i, j_2] = s_2
           }
           for j_3 in [max(M - 1, 1), M) {
             acc s_3: f32 = sum
             for r_3 in [0, -j_3 + M + 1) { s_3 += w[r_3] * x[i, j_3 + r_3 - 1] }
             y[i, j_3] = s_3
           }
         })"},
      // Not where lanes can be masked.
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum for r in [0, 3) { s += exp(x[i, j + r - 1 | 0.0]) } y[i, j] = s } }",
       ""},
      // Not: a border that may be long, a sum of products of many steps, or one that is seldom
      // made, loops that are no window of one statement, and windows that do not move.
      {"for i in [0, N) { for j in [0, M) { acc m: f32 = max for r in [max(-j + N, 0), min(-j + M + 1, 3)) { m max= x[i, j + r - N] }"
       " y[i, j] = m } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum for r in [max(-j + 1, 0), min(-j + M + 1, 17)) { s += w[0] * x[i, j + r - 1] }"
       " y[i, j] = s } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum for r in [max(-j + 1, 0), min(-j + M + 1, 3)) {"
       " drop s if N == 1 += w[r] * x[i, j + r - 1] } y[i, j] = s } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { acc m: f32 = max for r in [max(-j + 1, 0), min(-j + M + 1, 3)) {"
       " m max= x[i, j + r - 1] m max= w[r] } y[i, j] = m } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { acc m: f32 = max for r in [max(-M + 1, 0), 3) { m max= x[i, j | 0.0 if r > 1] }"
       " y[i, j] = m } }",
       ""},
  };
  ExpectPass(SplitWindows, kRows, kCases);
}

}  // namespace
}  // namespace nestor::loop
