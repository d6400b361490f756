#include "jit/schedule/unroll_and_jam.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

constexpr fusion::Frame kFrame = {
    "program p(x: f32[K, C], e: f32[K, 1023], l: f32[K, 2048], w: f32[K], ids: i64[C], s: f32[K, K], f: f32[9, C], "
    "g: f32[3, C]) -> (y: f32[C], n: f32[K], one: f32[1]) {\n",
    "\n  block { drop n[0] = 0.0  drop one[0] = 0.0 }\n}\n"};
#define ROWS_OF(text) "block { temp a: f32[C] for i in [0, C) { a[i] = 0.0 } " text " for o in [0, C) { y[o] = a[o] } }"

TEST(UnrollAndJam, TextInTextOut) {
  fusion::ExpectPass(UnrollAndJam, kFrame, {
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[k, j] } }"),
       ROWS_OF("for k_3 in [0, min(4294967296*(C/1024), K/4)) { for j in [0, C) {"
               " a[j] = a[j] + x[4*k_3, j] + x[4*k_3 + 1, j] + x[4*k_3 + 2, j] + x[4*k_3 + 3, j] } }"
               " for k_2 in [4*min(4294967296*(C/1024), K/4), K) { for j_2 in [0, C) { a[j_2] += x[k_2, j_2] } }")},
      // Of any range, reduction and value.
      {ROWS_OF("for k in [2, K) { for j in [0, C) { a[j] max= x[k, j] * w[k] } }"),
       ROWS_OF("for k_3 in [0, min(4294967296*(C/1024), max(K - 2, 0)/4)) { for j in [0, C) {"
               " a[j] = max(max(max(max(a[j], x[4*k_3 + 2, j] * w[4*k_3 + 2]), x[4*k_3 + 3, j] * w[4*k_3 + 3]),"
               " x[4*k_3 + 4, j] * w[4*k_3 + 4]), x[4*k_3 + 5, j] * w[4*k_3 + 5]) } }"
               " for k_2 in [4*min(4294967296*(C/1024), max(K - 2, 0)/4) + 2, K) { for j_2 in [0, C) { a[j_2] max= x[k_2, j_2] * w[k_2] } }")},
      {ROWS_OF("for k in [0, 9) { for j in [0, C) { a[j] += f[k, j] } }"),
       ROWS_OF("for k_3 in [0, min(4294967296*(C/1024), 2)) { for j in [0, C) {"
               " a[j] = a[j] + f[4*k_3, j] + f[4*k_3 + 1, j] + f[4*k_3 + 2, j] + f[4*k_3 + 3, j] } }"
               " for k_2 in [4*min(4294967296*(C/1024), 2), 9) { for j_2 in [0, C) { a[j_2] += f[k_2, j_2] } }")},
      // Backwards.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[K - 1 - k, j] } }"),
       ROWS_OF("for k_3 in [0, min(4294967296*(C/1024), K/4)) { for j in [0, C) {"
               " a[j] = a[j] + x[-4*k_3 + K - 1, j] + x[-4*k_3 + K - 2, j] + x[-4*k_3 + K - 3, j] + x[-4*k_3 + K - 4, j] } }"
               " for k_2 in [4*min(4294967296*(C/1024), K/4), K) { for j_2 in [0, C) { a[j_2] += x[-k_2 + K - 1, j_2] } }")},
      // Rows of one page, never; larger ones always.
      {"block { temp a: f32[1023] for i in [0, 1023) { a[i] = 0.0 } "
       "for k in [0, K) { for j in [0, 1023) { a[j] += e[k, j] } } for o in [0, C) { y[o] = a[o | 0.0] } }", ""},
      {"block { temp a: f32[2048] for i in [0, 2048) { a[i] = 0.0 } "
       "for k in [0, K) { for j in [0, 2048) { a[j] += l[k, j] } } for o in [0, C) { y[o] = a[o | 0.0] } }",
       "block { temp a: f32[2048] for i in [0, 2048) { a[i] = 0.0 } for k_3 in [0, K/4) { for j in [0, 2048) {"
       " a[j] = a[j] + l[4*k_3, j] + l[4*k_3 + 1, j] + l[4*k_3 + 2, j] + l[4*k_3 + 3, j] } }"
       " for k_2 in [4*(K/4), K) { for j_2 in [0, 2048) { a[j_2] += l[k_2, j_2] } }"
       " for o in [0, C) { y[o] = a[o | 0.0] } }"},
      // Not fewer than four rows.
      {ROWS_OF("for k in [0, 3) { for j in [0, C) { a[j] += g[k, j] } }"), ""},
      {ROWS_OF("for k in [4*(K/4), K) { for j in [0, C) { a[j] += x[k, j] } }"), ""},
      // Not where a row's elements meet: their order would change.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[0] += x[k, j] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) { drop a[j/2] += x[k, j] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) { drop a[ids[j]] += x[k, j] } }"), ""},
      // Not where rows have results of their own, or another length each.
      {"block { for i in [0, K) { n[i] = 0.0 } for k in [0, K) { for j in [0, C) { n[k] += x[k, j] } } "
       "for o in [0, C) { y[o] = 0.0 } }", ""},
      {"block { temp a: f32[K] for i in [0, K) { a[i] = 0.0 } for k in [0, K) { for j in [0, k) { a[j] += s[k, j] } } "
       "for o in [0, C) { y[o] = 0.0 } drop one[0] = a[0 | 0.0] }", ""},
      // Not where what is summed depends on the sum, or costs more than its loads.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[k, j] * a[j] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += exp(x[k, j]) } }"), ""},
      // Not what is no reduction into memory, or scheduled already.
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] = x[k, j] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) { a[j] += x[k, j]  a[j] += w[k] } }"), ""},
      {ROWS_OF("for k in [0, K) { for j in [0, C) vector { a[j] += x[k, j] } }"), ""},
  });
}

}  // namespace
}  // namespace nestor::jit
