// Rows of stencils before and after the pass, on a machine with 8 lanes.
#include "jit/schedule/peel_borders.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[B, N], z: f32[B, N], s: f32[B, 14], l: f32[B, 8], w: f32[5], ids: i64[N]; $d: i64) "
    "-> (y: f32[B, N], t: f32[B, 14], m: f32[B, 8], n: f32[B]) {\n",
    "\n  drop t[0, 0] = 0.0 drop m[0, 0] = 0.0 drop n[0] = 0.0 drop y[0, 0] = 0.0\n}\n"};
#define ROWS(text) "for b in [0, B) { " text " }"
// A sum over a window, all names ending in `n`.
#define WINDOW(n)                                                                                  \
  "acc a" n ": f32 = sum for k" n " in [0, 3) { a" n " += w[k" n "] * x[b, i" n " + k" n " - 1 | " \
  "0.0] } y[b, i" n "] = a" n
#define WINDOW_1 WINDOW("")
#define WINDOW_2 WINDOW("_2")
#define WINDOW_3 WINDOW("_3")
#define WINDOW_4 WINDOW("_4")

absl::StatusOr<bool> ForAvx2(Program& program) { return PeelBorders(program, jit::Isa::kAvx2); }

TEST(PeelBorders, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i - 1 | 0.0] + x[b, i + 1 | 0.0] }"),
       ROWS(
           "for z_2 in [0, min(N/9, 1)) {"
           " for i_2 in [0, 8) vector { y[b, i_2] = x[b, i_2 - 1 | 0.0] + x[b, i_2 + 1] }"
           " for i_3 in [8, 8*((N + 7)/8) - 8) vector { y[b, i_3] = x[b, i_3 - 1] + x[b, i_3 + 1] }"
           " for i_4 in [N - 8, N) vector { y[b, i_4] = x[b, i_4 - 1] + x[b, i_4 + 1 | 0.0] } }"
           " for z_2_2 in [0, min(-min(N/9, 1) + 1, 1)) {"
           " for i in [0, min(N, 8)) vector { y[b, i] = x[b, i - 1 | 0.0] + x[b, i + 1 | 0.0] } }")},
      // On one side.
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i - 3 | 1.0] }"),
       ROWS(
           "for z_2 in [0, min(N/11, 1)) { for i_2 in [0, 8) vector { y[b, i_2] = x[b, i_2 - 3 | 1.0] }"
           " for i_3 in [8, 8*((N + 7)/8) - 8) vector { y[b, i_3] = x[b, i_3 - 3] }"
           " for i_4 in [N - 8, N) vector { y[b, i_4] = x[b, i_4 - 3] } }"
           " for z_2_2 in [0, min(-min(N/11, 1) + 1, 1)) {"
           " for i in [0, min(N, 10)) vector { y[b, i] = x[b, i - 3 | 1.0] } }")},
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i + 1 | 1.0] }"),
       ROWS(
           "for z_2 in [0, min(N/9, 1)) { for i_2 in [0, 8*((N + 7)/8) - 8) vector { y[b, i_2] = x[b, i_2 + 1] }"
           " for i_3 in [N - 8, N) vector { y[b, i_3] = x[b, i_3 + 1 | 1.0] } }"
           " for z_2_2 in [0, min(-min(N/9, 1) + 1, 1)) {"
           " for i in [0, min(N, 8)) vector { y[b, i] = x[b, i + 1 | 1.0] } }")},
      // Two places behind a row are in two vectors, unless it ends with a whole one.
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i + 2 | 1.0] }"),
       ROWS(
           "for z_2 in [0, min(N/18, 1)) { for i_2 in [0, 8*((N + 6)/8) - 8) vector { y[b, i_2] = x[b, i_2 + 2] }"
           " for i_3 in [N - 16, N) vector { y[b, i_3] = x[b, i_3 + 2 | 1.0] } }"
           " for z_2_2 in [0, min(-min(N/18, 1) + 1, 1)) {"
           " for i in [0, min(N, 17)) vector { y[b, i] = x[b, i + 2 | 1.0] } }")},
      // At the steps of inner loops.
      {ROWS("for i in [0, N) vector { " WINDOW_1 " }"),
       ROWS("for z_2 in [0, min(N/9, 1)) { for i_2 in [0, 8) vector { " WINDOW_2 " }"
            " for i_3 in [8, 8*((N + 7)/8) - 8) vector { " WINDOW_3 " }"
            " for i_4 in [N - 8, N) vector { " WINDOW_4 " } }"
            " for z_2_2 in [0, min(-min(N/9, 1) + 1, 1)) {"
            " for i in [0, min(N, 8)) vector { " WINDOW_1 " } }")},
      // A row of known length.
      {ROWS("for i in [0, 14) vector { t[b, i] = s[b, i - 1 | 0.0] + s[b, i + 1 | 0.0] }"),
       ROWS("for i_2 in [0, 8) vector { t[b, i_2] = s[b, i_2 - 1 | 0.0] + s[b, i_2 + 1] }"
            " for i_3 in [6, 14) vector { t[b, i_3] = s[b, i_3 - 1] + s[b, i_3 + 1 | 0.0] }")},
      // What is decided in a piece is left out.
      {"for b in [0, 1) { for i in [0, 14) vector { t[b, i] = s[b - 1, i | 2.0] + s[b, i - 1 | 0.0] } }",
       "for b in [0, 1) { for i_2 in [0, 8) vector { t[b, i_2] = 2.0 + s[b, i_2 - 1 | 0.0] }"
       " for i_3 in [6, 14) vector { t[b, i_3] = 2.0 + s[b, i_3 - 1 | 0.0] } }"},
      // Not: one vector, loops without masks or with others, borders that are no number or wide.
      {ROWS("for i in [0, 8) vector { m[b, i] = l[b, i - 1 | 0.0] }"), ""},
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i] }"), ""},
      {ROWS("for i in [0, N) vector { y[b, i] = x[b - 1, i | 0.0] }"), ""},
      {ROWS("for i in [0, N) { y[b, i] = x[b, i - 1 | 0.0] }"), ""},
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i - $d | 0.0] }"), ""},
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i - 17 | 0.0] }"), ""},
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i + 1 | 0.0 if b < 3] }"), ""},
      {"for i in [0, N) parallel vector { y[0, i] = x[0, i - 1 | 0.0] }", ""},
      // Not: bodies that read what they write, or add to it, or do not write everywhere.
      {ROWS(
           "temp r: f32[N] for j in [0, N) vector { r[j] = x[b, j] } "
           "for i in [0, N) vector { r[i] = r[i] + x[b, i - 1 | 0.0] } for j in [0, N) vector { y[b, j] = r[j] }"),
       ""},
      {ROWS("acc a: f32[N] = sum for i in [0, N) vector { a[i] += x[b, i - 1 | 0.0] } "
            "for j in [0, N) { y[b, j] = a[j] }"),
       ""},
      {ROWS("for i in [0, N) vector { y[b, i] = x[b, i - 1 | 0.0] needed if i < b }"), ""},
      // Not where the caller may pass the memory of z for y.
      {ROWS("for i in [0, N) vector { y[b, i] = z[b, i] * x[b, i - 1 | 0.0] }"), ""},
  };
  ExpectPass(ForAvx2, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
