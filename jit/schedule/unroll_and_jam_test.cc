// Rows before and after four of them are taken at a time, and loops that are left alone.
#include "jit/schedule/unroll_and_jam.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[K, C], e: f32[K, 1023], l: f32[K, 2048], w: f32[K], ids: i64[C], s: f32[K, K], f: f32[9, C], "
    "g: f32[3, C]) -> (y: f32[C], n: f32[K], one: f32[1]) {\n",
    "\n  drop n[0] = 0.0  drop one[0] = 0.0\n}\n"};
#define ROWS_OF(text) \
  "temp a: f32[C] for i in [0, C) { a[i] = 0.0 } " text " for o in [0, C) { y[o] = a[o] }"

TEST(UnrollAndJam, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[k, j] } }"),
       ROWS_OF(
           "for k_3 in [0, min(4294967296*(C/1024), K/4)) { for j in [0, C) {"
           " a[j] = a[j] + x[4*k_3, j] + x[4*k_3 + 1, j] + x[4*k_3 + 2, j] + x[4*k_3 + 3, j] } }"
           " for k_2 in [4*min(4294967296*(C/1024), K/4), K) { for j_2 in [0, C) { a[j_2] += x[k_2, j_2] } }")},
      // Steps that are not needed may run.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[k, j] needed if k + j < K } }"),
       ROWS_OF(
           "for k_3 in [0, min(4294967296*(C/1024), K/4)) { for j in [0, C) {"
           " a[j] = a[j] + x[4*k_3, j] + x[4*k_3 + 1, j] + x[4*k_3 + 2, j] + x[4*k_3 + 3, j] } }"
           " for k_2 in [4*min(4294967296*(C/1024), K/4), K) { for j_2 in [0, C) {"
           " a[j_2] += x[k_2, j_2] needed if k_2 + j_2 < K } }")},
      // Any range, reduction and value.
      {ROWS_OF("for k in [2, K) { for j in [0, C) { a[j] max= x[k, j] * w[k] } }"),
       ROWS_OF(
           "for k_3 in [0, min(4294967296*(C/1024), max(K - 2, 0)/4)) { for j in [0, C) {"
           " a[j] = max(max(max(max(a[j], x[4*k_3 + 2, j] * w[4*k_3 + 2]), x[4*k_3 + 3, j] * w[4*k_3 + 3]),"
           " x[4*k_3 + 4, j] * w[4*k_3 + 4]), x[4*k_3 + 5, j] * w[4*k_3 + 5]) } }"
           " for k_2 in [4*min(4294967296*(C/1024), max(K - 2, 0)/4) + 2, K) { for j_2 in [0, C) { a[j_2] max= x[k_2, j_2] * w[k_2] } }")},
      {ROWS_OF("for k in [0, 9) { for j in [0, C) { a[j] += f[k, j] } }"),
       ROWS_OF(
           "for k_3 in [0, min(4294967296*(C/1024), 2)) { for j in [0, C) {"
           " a[j] = a[j] + f[4*k_3, j] + f[4*k_3 + 1, j] + f[4*k_3 + 2, j] + f[4*k_3 + 3, j] } }"
           " for k_2 in [4*min(4294967296*(C/1024), 2), 9) { for j_2 in [0, C) { a[j_2] += f[k_2, j_2] } }")},
      // Backwards.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[K - 1 - k, j] } }"),
       ROWS_OF(
           "for k_3 in [0, min(4294967296*(C/1024), K/4)) { for j in [0, C) {"
           " a[j] = a[j] + x[-4*k_3 + K - 1, j] + x[-4*k_3 + K - 2, j] + x[-4*k_3 + K - 3, j] + x[-4*k_3 + K - 4, j] } }"
           " for k_2 in [4*min(4294967296*(C/1024), K/4), K) { for j_2 in [0, C) { a[j_2] += x[-k_2 + K - 1, j_2] } }")},
      // Rows of one page, never; larger ones always.
      {"temp a: f32[1023] for i in [0, 1023) { a[i] = 0.0 } "
       "for k in [0, K) { for j in [0, 1023) { a[j] += e[k, j] } } for o in [0, C) { y[o] = a[o | 0.0] }",
       ""},
      {"temp a: f32[2048] for i in [0, 2048) { a[i] = 0.0 } "
       "for k in [0, K) { for j in [0, 2048) { a[j] += l[k, j] } } for o in [0, C) { y[o] = a[o | 0.0] }",
       "temp a: f32[2048] for i in [0, 2048) { a[i] = 0.0 } for k_3 in [0, K/4) { for j in [0, 2048) {"
       " a[j] = a[j] + l[4*k_3, j] + l[4*k_3 + 1, j] + l[4*k_3 + 2, j] + l[4*k_3 + 3, j] } }"
       " for k_2 in [4*(K/4), K) { for j_2 in [0, 2048) { a[j_2] += l[k_2, j_2] } }"
       " for o in [0, C) { y[o] = a[o | 0.0] }"},
      // Not fewer than four rows.
      {ROWS_OF("for k in [0, 3) { for j in [0, C) { a[j] += g[k, j] } }"), ""},
      {ROWS_OF("for k in [4*(K/4), K) { for j in [0, C) { a[j] += x[k, j] } }"), ""},
      // Not where a row's elements meet: their order would change.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[0] += x[k, j] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) { drop a[j/2] += x[k, j] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) { drop a[ids[j]] += x[k, j] } }"), ""},
      // Not where each row has a result or a length of its own.
      {"for i in [0, K) { n[i] = 0.0 } for k in [0, K) { for j in [0, C) { n[k] += x[k, j] } } "
       "for o in [0, C) { y[o] = 0.0 }",
       ""},
      {"temp a: f32[K] for i in [0, K) { a[i] = 0.0 } for k in [0, K) { for j in [0, k) { a[j] += s[k, j] } } "
       "for o in [0, C) { y[o] = 0.0 } drop one[0] = a[0 | 0.0]",
       ""},
      // Not where the summed value depends on the sum, or costs more than its loads.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[k, j] * a[j] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += exp(x[k, j]) } }"), ""},
      // Not where there is no reduction into memory, or it is scheduled already.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] = x[k, j] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[k, j]  a[j] += w[k] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) vector { a[j] += x[k, j] } }"), ""},
  };
  ExpectPass(UnrollAndJam, kFrame, kCases);
}

constexpr Frame kWindows = {
    "program p(x: f32[N, H, W], w: f32[3], z: f32[H, W]) -> (y: f32[N, H, W], u: f32[H, W]) {\n",
    "\n  drop y[0, 0, 0] = 0.0  drop u[0, 0] = 0.0\n}\n"};
#define ROWS(text) "for n in [0, N) { temp t: f32[2]  t[0] = 0.0  " text " }"

TEST(UnrollAndJam, RowsOfWindows) {
  constexpr PassCase kCases[] = {
      {ROWS(
           "for h in [0, H - 1) { for c in [0, W) { temp a: f32  a = x[n, h, c] * w[0] + x[n, h + 1, c] * w[1]  y[n, h, c] = a } }"),
       ROWS(
           "for h_3 in [0, max(H - 1, 0)/4) { for c in [0, W) { temp a: f32  temp a_3: f32  temp a_4: f32  temp a_5: f32"
           "  a = x[n, 4*h_3, c] * w[0] + x[n, 4*h_3 + 1, c] * w[1]  a_3 = x[n, 4*h_3 + 1, c] * w[0] + x[n, 4*h_3 + 2, c] * w[1]"
           "  a_4 = x[n, 4*h_3 + 2, c] * w[0] + x[n, 4*h_3 + 3, c] * w[1]  a_5 = x[n, 4*h_3 + 3, c] * w[0] + x[n, 4*h_3 + 4, c] * w[1]"
           "  y[n, 4*h_3, c] = a  y[n, 4*h_3 + 1, c] = a_3  y[n, 4*h_3 + 2, c] = a_4  y[n, 4*h_3 + 3, c] = a_5 } }"
           " for h_2 in [4*(max(H - 1, 0)/4), H - 1) { for c_2 in [0, W) { temp a_2: f32"
           "  a_2 = x[n, h_2, c_2] * w[0] + x[n, h_2 + 1, c_2] * w[1]  y[n, h_2, c_2] = a_2 } }")},
      // The outermost loop, too, but not one that threads share together with the loop around.
      {"for h in [0, H - 1) { for c in [0, W) { u[h, c] = z[h, c] - z[h + 1, c] } }",
       "for h_3 in [0, max(H - 1, 0)/4) { for c in [0, W) { u[4*h_3, c] = z[4*h_3, c] - z[4*h_3 + 1, c]"
       "  u[4*h_3 + 1, c] = z[4*h_3 + 1, c] - z[4*h_3 + 2, c]  u[4*h_3 + 2, c] = z[4*h_3 + 2, c] - z[4*h_3 + 3, c]"
       "  u[4*h_3 + 3, c] = z[4*h_3 + 3, c] - z[4*h_3 + 4, c] } }"
       " for h_2 in [4*(max(H - 1, 0)/4), H - 1) { for c_2 in [0, W) { u[h_2, c_2] = z[h_2, c_2] - z[h_2 + 1, c_2] } }"},
      {"for n in [0, N) { for h in [0, H - 1) { for c in [0, W) { y[n, h, c] = x[n, h, c] - x[n, h + 1, c] } } }",
       ""},
      // Not windows that do not overlap, rows that read others' results, or heavy values.
      {ROWS(
           "for h in [0, H) { for c in [0, W) { y[n, h, c] = x[n, h, c] - x[n, h, c + 1 | 0.0] } }"),
       ""},
      {ROWS(
           "for h in [0, H/2) { for c in [0, W) { y[n, h, c] = x[n, 2*h, c] - x[n, 2*h + 1, c] } }"),
       ""},
      {ROWS(
           "for h in [1, H) { for c in [0, W) { y[n, h, c] = x[n, h, c] - x[n, h - 1, c] + y[n, h - 1, c] } }"),
       ""},
      {ROWS(
           "for h in [0, H - 1) { for c in [0, W) { y[n, h, c] = exp(x[n, h, c]) - exp(x[n, h + 1, c]) } }"),
       ""},
      // Not columns, triangles or loops that are vector already.
      {ROWS(
           "for h in [0, H) { for c in [0, W - 1) { drop y[n, c, h] = x[n, c, h | 0.0] - x[n, c + 1, h | 0.0] } }"),
       ""},
      {ROWS(
           "for h in [0, H - 1) { for c in [0, min(h, W)) { y[n, h, c] = x[n, h, c] - x[n, h + 1, c] } }"),
       ""},
      {ROWS(
           "for h in [0, H - 1) { for c in [0, W) vector { y[n, h, c] = x[n, h, c] - x[n, h + 1, c] } }"),
       ""},
  };
  ExpectPass(UnrollAndJam, kWindows, kCases);
}

}  // namespace
}  // namespace nestor::loop
