// Windows before and after they read a padded view, and which nests share one.
#include "jit/schedule/padded_views.h"

#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "fusion/pass_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[B, N], w: f32[O, R], ids: i64[R]; $d: i64 = 1, $s: i64 = 1 in [1, inf]) -> (y: f32[B, O, N], one: f32[1]) {\n",
    "\n  drop one[0] = 0.0\n}\n"};
#define WINDOWS(value)                                                                                   \
  "for b in [0, B) { for o in [0, O) { for i in [0, N) { acc s: f32 = sum for r in [0, R) { s += " value \
  " } y[b, o, i] = s } } }"
#define VIEWED(assumed, shape, copy, value)                                \
  "assume : " assumed " for b in [0, B) { temp view: f32[" shape "] " copy \
  " for o in [0, O) { for i in [0, N) {"                                   \
  " acc s: f32 = sum for r in [0, R) { s += " value " } y[b, o, i] = s } } }"

TEST(PaddedViews, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {WINDOWS("w[o, r] * x[b, i + r - 1 | 0.0]"),
       VIEWED(
           "549755813887*(N + R + 16)", "N + R + 16",
           "for t in [0, 1) { view[t] = 0.0 } for t_2 in [1, N + 1) { view[t_2] = x[b, t_2 - 1] }"
           " for t_3 in [N + 1, N + R + 16) { view[t_3] = 0.0 }",
           "w[o, r] * view[i + r]")},
      // Any fill and steps.
      {WINDOWS("w[o, r] * x[b, $s*i + 2*r | -inf]"),
       VIEWED(
           "549755813887*($s*N + 2*R + 16)", "$s*N + 2*R + 16",
           "for t in [0, N) { view[t] = x[b, t] } for t_2 in [N, $s*N + 2*R + 16) { view[t_2] = -inf }",
           "w[o, r] * view[i*$s + 2*r]")},
      // Backwards.
      {WINDOWS("w[o, r] * x[b, i - r | 0.0]"),
       VIEWED(
           "549755813887*(N + R + 17)", "N + R + 17",
           "for t in [0, R) { view[t] = 0.0 } for t_2 in [R, N + R) { view[t_2] = x[b, t_2 - R] }"
           " for t_3 in [N + R, N + R + 17) { view[t_3] = 0.0 }",
           "w[o, r] * view[i - r + R]")},
      // Operands that windows slide over, so that whole vectors can be read up to the last place.
      {"for b in [0, B) { for o in [0, O) { for i in [0, N - R) { acc s: f32 = sum for r in [0, R) {"
       " s += w[o, r] * x[b, i + r] } y[b, o, i] = s } } } for b in [0, B) { for o in [0, O) { drop y[b, o, 0] = 0.0 } }",
       "assume : 549755813887*(R + max(N - R, 0) + 16)"
       " for b in [0, B) { temp view: f32[R + max(N - R, 0) + 16] for t in [0, N) { view[t] = x[b, t] }"
       " for t_2 in [N, R + max(N - R, 0) + 16) { view[t_2] = 0.0 } for o in [0, O) { for i in [0, N - R) {"
       " acc s: f32 = sum for r in [0, R) { s += w[o, r] * view[i + r] } y[b, o, i] = s } } }"
       " for b_2 in [0, B) { for o_2 in [0, O) { drop y[b_2, o_2, 0] = 0.0 } }"},
      // Without rows, a view has one element.
      {"for b in [0, B) { for i in [0, N) { for o in [0, 0) { acc s: f32 = sum for r in [0, R) { s += w[o - 1, 0 | 0.0] * x[b, i] }"
       " drop y[b, o, i] = s } } } for b in [0, B) { for o in [0, O) { for i in [0, N) { y[b, o, i] = 0.0 } } }",
       "for b in [0, B) { temp view: f32 view = w[-1, 0 | 0.0] for o in [0, 0) { for i in [0, N) { acc s: f32 = sum"
       " for r in [0, R) { s += view * x[b, i] } drop y[b, o, i] = s } } }"
       " for b_2 in [0, B) { for o_2 in [0, O) { for i_2 in [0, N) { y[b_2, o_2, i_2] = 0.0 } } }"},
      // Values computed from the operand alone are copied, even from elements at a distance from
      // it; a single loop along an axis leaves nothing out.
      {WINDOWS("w[o, r] * exp(x[b, i + r - 1 | 0.5])"),
       VIEWED(
           "549755813887*(N + R + 16)", "N + R + 16",
           "for t in [0, 1) { view[t] = exp(0.5) } for t_2 in [1, N + 1) { view[t_2] = exp(x[b, t_2 - 1]) }"
           " for t_3 in [N + 1, N + R + 16) { view[t_3] = exp(0.5) }",
           "w[o, r] * view[i + r]")},
      {WINDOWS("w[o, r] * (x[b, 2*i | 0.0] + x[b, 2*i + 1 | 0.0])"),
       VIEWED("549755813887*(N + 16)", "N + 16",
              "for t in [0, N + 16) { view[t] = x[b, 2*t | 0.0] + x[b, 2*t + 1 | 0.0] }",
              "w[o, r] * view[i]")},
      // An operand that is read twice is copied once.
      {WINDOWS("x[b, i + r - 1 | -inf] * w[o, r] * x[b, i + r - 1 | -inf]"),
       VIEWED(
           "549755813887*(N + R + 16)", "N + R + 16",
           "for t in [0, 1) { view[t] = -inf } for t_2 in [1, N + 1) { view[t_2] = x[b, t_2 - 1] }"
           " for t_3 in [N + 1, N + R + 16) { view[t_3] = -inf }",
           "view[i + r] * w[o, r] * view[i + r]")},
      // A condition on an index that the place in the view tells.
      {WINDOWS("w[o, r] * x[b, 2*i | 0.0 if i < R]"),
       VIEWED("549755813887*(N + 16)", "N + 16",
              "for t in [0, N + 16) { view[t] = x[b, 2*t | 0.0 if t < R] }", "w[o, r] * view[i]")},
      // Not operands that are in range, move in steps of unknown sign, are looked up, or have
      // conditions on indices that their place does not tell.
      {WINDOWS("w[o, r] * x[b, i]"), ""},
      {WINDOWS("w[o, r] * x[b, i + $d*r | 0.0]"), ""},
      {WINDOWS("w[o, r] * x[b, i + ids[r] | 0.0]"), ""},
      {WINDOWS("w[o, r] * x[b, i + r | 0.0 if r < i]"), ""},
      // Nor if the length differs in each iteration around.
      {"for b in [0, B) { for o in [0, O) { for i in [0, min(N, b + 1)) { acc s: f32 = sum for r in [0, R) {"
       " s += w[o, r] * x[b, i + r - 1 | 0.0] } y[b, o, i] = s } } }",
       ""},
      // Sliding windows, though rows share nothing; strips of a batch loop that they
      // slide along, too.
      {"for b in [0, B) { for o in [0, O) { for i in [0, N) { acc s: f32 = sum for r in [0, R) { s += x[b, i + r | 0.0] } y[b, o, i] = s } } }",
       "assume : 549755813887*N + 549755813887*R"
       " for b in [0, B) { for o in [0, O) { temp view: f32[N + R] for t in [0, N) { view[t] = x[b, t] }"
       " for t_2 in [N, N + R) { view[t_2] = 0.0 }"
       " for i in [0, N) { acc s: f32 = sum for r in [0, R) { s += view[i + r] } y[b, o, i] = s } } }"},
      // Not windows of known size, which lanes read in place, with masks; except if values are
      // computed from them.
      {"for b in [0, B) { for i in [0, N) { acc s: f32 = sum for r in [0, 3) { s += w[0, r] * x[b, i + r - 1 | 0.0] }"
       " drop y[b, 0, i] = s } }",
       ""},
      {"for b in [0, B) { for i in [0, N) { acc s: f32 = sum for r in [0, 3) { s += w[0, r] * exp(x[b, i + r - 1 | 0.0]) }"
       " drop y[b, 0, i] = s } }",
       R"(
         assume : 549755813887*N + 1649267441661
         for b in [0, B) {
           temp view: f32[N + 3]
           for t in [0, 1) { view[t] = exp(0.0) }
           for t_2 in [1, N + 1) { view[t_2] = exp(x[b, t_2 - 1]) }
           for t_3 in [N + 1, N + 3) { view[t_3] = exp(0.0) }
           for i in [0, N) {
             acc s: f32 = sum
             for r in [0, 3) { s += w[0, r] * view[i + r] }
             drop y[b, 0, i] = s
           }
         })"},
      {"for b in [0, B) { for i in [0, N) { acc s: f32 = sum for r in [0, R) { s += x[b + r, i + r | 0.0] } drop y[b, 0, i] = s } }"
       " for b in [0, B) { for o in [0, O) { drop y[b, o, 0] = 0.0 } }",
       "assume : 549755813887*N*R + 8796093022192*N + 549755813887*R*R + 8796093022192*R"
       " for b_3 in [0, (B + 15)/16) { temp view: f32[R + 16, N + R]"
       " for t in [0, min(R + 16, -16*b_3 + B)) { for t_2 in [0, N) { view[t, t_2] = x[16*b_3 + t, t_2] }"
       " for t_2_3 in [N, N + R) { view[t, t_2_3] = 0.0 } }"
       " for t_3 in [-16*b_3 + B, R + 16) { for t_2_2 in [0, N + R) { view[t_3, t_2_2] = 0.0 } }"
       " for b in [16*b_3, min(B, 16*b_3 + 16)) { for i in [0, N) { acc s: f32 = sum"
       " for r in [0, R) { s += view[-16*b_3 + b + r, i + r] } drop y[b, 0, i] = s } } }"
       " for b_2 in [0, B) { for o in [0, O) { drop y[b_2, o, 0] = 0.0 } }"},
  };
  ExpectPass(MaterializePaddedViews, kFrame, kCases);
}

// The gradient of a window's elements: all of them share a view, in which rows lie one
// after the other.
constexpr Frame kGradient = {"program p(g: f32[B, O, N], x: f32[B, C, N]) -> (y: f32[9, C, O]) {\n",
                             "\n}\n"};

#define OVER_WINDOW(places, value)                                                               \
  "for q in [0, " places                                                                         \
  ") { for o in [0, O) { for c in [0, C) { acc s: f32 = sum for b in [0, B) { for i in [0, N) {" \
  " s += g[b, o, i] * " value " } } y[q, c, o] = s } } }"

TEST(PaddedViews, ShortLoopsShareThemWhole) {
  constexpr PassCase kCases[] = {
      {OVER_WINDOW("3", "x[b, c, i + q - 1 | 0.0]"),
       "assume : 549755813887*B*C*N + 1649267441661*B*C temp view: f32[C, B, N + 3]"
       " for t in [0, C) { for t_2 in [0, B) { for t_3 in [0, 1) { view[t, t_2, t_3] = 0.0 }"
       " for t_3_2 in [1, N + 1) { view[t, t_2, t_3_2] = x[t_2, t, t_3_2 - 1] }"
       " for t_3_3 in [N + 1, N + 3) { view[t, t_2, t_3_3] = 0.0 } } }"
       " for q in [0, 3) { for c in [0, C) { for o in [0, O) { acc s: f32 = sum for b in [0, B) { for i in [0, N) {"
       " s += g[b, o, i] * view[c, b, i + q] } } y[q, c, o] = s } } }"},
      // Many places of a window are rows themselves.
      {OVER_WINDOW("9", "x[b, c, i + q - 1 | 0.0]"),
       "assume : 549755813887*B*N + 4947802324983*B for c in [0, C) { temp view: f32[B, N + 9]"
       " for t in [0, B) { for t_2 in [0, 1) { view[t, t_2] = 0.0 }"
       " for t_2_2 in [1, N + 1) { view[t, t_2_2] = x[t, c, t_2_2 - 1] }"
       " for t_2_3 in [N + 1, N + 9) { view[t, t_2_3] = 0.0 } }"
       " for q in [0, 9) { for o in [0, O) { acc s: f32 = sum for b in [0, B) { for i in [0, N) {"
       " s += g[b, o, i] * view[b, i + q] } } y[q, c, o] = s } } }"},
  };
  ExpectPass(MaterializePaddedViews, kGradient, kCases);
}

// Rows that lie next to each other do not begin at powers of two.
TEST(PaddedViews, ChannelsLast) {
  constexpr Frame kRows = {"program p(x: f32[N, C], w: f32[O, R, C]) -> (y: f32[N, O]) {\n",
                           "\n}\n"};
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { for o in [0, O) { acc s: f32 = sum for r in [0, R) { for c in [0, C) {"
       " s += w[o, r, c] * x[i + r - 1, c | 0.0] } } y[i, o] = s } }",
       "assume : 549755813887*C*N + 549755813887*C*R + 8796093022192*N*min(C/256, 1) + 8796093022192*R*min(C/256, 1)"
       " temp view: f32[N + R, C + 16*min(C/256, 1)]"
       " for t in [0, min(N + R, 1)) { for t_2 in [0, C) { view[t, t_2] = 0.0 } }"
       " for t_3 in [1, min(N + R, N + 1)) { for t_2_2 in [0, C) { view[t_3, t_2_2] = x[t_3 - 1, t_2_2] } }"
       " for t_4 in [N + 1, N + R) { for t_2_3 in [0, C) { view[t_4, t_2_3] = 0.0 } }"
       " for i in [0, N) { for o in [0, O) { acc s: f32 = sum for r in [0, R) { for c in [0, C) {"
       " s += w[o, r, c] * view[i + r, c] } } y[i, o] = s } }"},
  };
  ExpectPass(MaterializePaddedViews, kRows, kCases);
}

// Where results lie across channels and kernels, the operand read at each place of a window fills
// the lanes of a short sum: its channels lie side by side in the view, and whole vectors of them
// can be read. In a long sum its rows are read in place, one after the other.
constexpr Frame kAcross = {
    "program p(g: f32[B, O, N], x: f32[B, C, N], g2: f32[2, O, 20], x2: f32[2, C, 20]) -> (y: f32[O, C, 3]) {\n",
    "\n}\n"};

#define AT_EACH_PLACE(b, n, value)                                              \
  " { acc s: f32 = sum for b in [0, " b ") { for i in [0, " n ") { s += " value \
  " } } y[o, c, q] = s }"

TEST(PaddedViews, WhatIsReadAtEachPlaceOfAWindow) {
  constexpr PassCase kCases[] = {
      {"for o in [0, O) { for c in [0, C) { for q in [0, 3)" AT_EACH_PLACE(
           "2", "20", "g2[b, o, i] * x2[b, c, i + q - 1 | 0.0]") " } }",
       "assume : 25288767438802*C + 404620279020832"
       " temp view: f32[2, 23, C + 16]"
       " for t in [0, 2) { for t_2 in [0, 1) { for t_3 in [0, C) { view[t, t_2, t_3] = 0.0 } }"
       " for t_2_2 in [1, 21) { for t_3_2 in [0, C) { view[t, t_2_2, t_3_2] = x2[t, t_3_2, t_2_2 - 1] } }"
       " for t_2_3 in [21, 23) { for t_3_3 in [0, C) { view[t, t_2_3, t_3_3] = 0.0 } } }"
       " for t_4 in [0, 2) { for t_5 in [0, 23) { for t_6 in [C, C + 16) { view[t_4, t_5, t_6] = 0.0 } } }"
       " for q in [0, 3) { for o in [0, O) { for c in [0, C)" AT_EACH_PLACE(
           "2", "20", "g2[b, o, i] * view[b, q + i, c]") " } }"},
      {"for o in [0, O) { for c in [0, C) { for q in [0, 3)" AT_EACH_PLACE(
           "B", "N", "g[b, o, i] * x[b, c, i + q - 1 | 0.0]") " } }",
       "assume : 549755813887*B*C*N + 1649267441661*B*C"
       " temp view: f32[C, B, N + 3]"
       " for t in [0, C) { for t_2 in [0, B) { for t_3 in [0, 1) { view[t, t_2, t_3] = 0.0 }"
       " for t_3_2 in [1, N + 1) { view[t, t_2, t_3_2] = x[t_2, t, t_3_2 - 1] }"
       " for t_3_3 in [N + 1, N + 3) { view[t, t_2, t_3_3] = 0.0 } } }"
       " for q in [0, 3) { for c in [0, C) { for o in [0, O)" AT_EACH_PLACE(
           "B", "N", "g[b, o, i] * view[c, b, q + i]") " } }"},
  };
  ExpectPass(MaterializePaddedViews, kAcross, kCases);
}

// Rows of an image in strips, as for transposed results: the rows of a strip share a view.
constexpr Frame kImage = {
    "program p(w: f32[O, C, 3], x: f32[C, H, W]) -> (y: f32[O, H, W], one: f32[1]) {\n",
    "\n  drop one[0] = 0.0\n}\n"};

#define OVER_STRIP(end, value)                                                 \
  "for k in [4*p, " end                                                        \
  ") { for l in [0, W) { for o in [0, O) { acc s: f32 = sum for c in [0, C) {" \
  " for q in [0, 3) { s += w[o, c, q] * " value " } } y[o, k, l] = s } } }"

TEST(PaddedViews, RowsOfAStripShareThem) {
  constexpr PassCase kCases[] = {
      {"for p in [0, (H + 3)/4) { " OVER_STRIP("min(H, 4*p + 4)",
                                               "x[c, k + q - 1, l + q | 0.0]") " }",
       "assume : 3848290697209*C*W + 73117523246971*C for p in [0, (H + 3)/4) { temp view: f32[C, 7, W + 19]"
       " for t in [0, C) { for t_2 in [0, -4*p + 1) { for t_3 in [0, W + 19) { view[t, t_2, t_3] = 0.0 } }"
       " for t_2_2 in [max(-4*p + 1, 0), min(-4*p + H + 1, 7)) {"
       " for t_3_2 in [0, W) { view[t, t_2_2, t_3_2] = x[t, 4*p + t_2_2 - 1, t_3_2] }"
       " for t_3_2_2 in [W, W + 19) { view[t, t_2_2, t_3_2_2] = 0.0 } }"
       " for t_2_3 in [-4*p + H + 1, 7) { for t_3_3 in [0, W + 19) { view[t, t_2_3, t_3_3] = 0.0 } } }"
       " for k in [4*p, min(H, 4*p + 4)) { for o in [0, O) { for l in [0, W) { acc s: f32 = sum for c in [0, C) {"
       " for q in [0, 3) { s += w[o, c, q] * view[c, -4*p + k + q, l + q] } } y[o, k, l] = s } } } }"},
  };
  ExpectPass(MaterializePaddedViews, kImage, kCases);
}

// A copy that few kernels read is made for more rows at a time: less of it is copied twice.
TEST(PaddedViews, StripsOfFewKernelsAreLonger) {
  const auto text_of = [](absl::string_view kernels) {
    Program program = ParseVerified(absl::Substitute(
        "program p(w: f32[$0, C, 3], x: f32[C, H, W]) -> (y: f32[$0, H, W]) { for o in [0, $0) { for k in [0, H) { "
        "for l in [0, W) { acc s: f32 = sum for c in [0, C) { for q in [0, 3) { "
        "s += w[o, c, q] * x[c, k + q - 1, l + q | 0.0] } } y[o, k, l] = s } } } }",
        kernels));
    EXPECT_TRUE(MaterializePaddedViews(program).value());
    return ToText(program);
  };
  EXPECT_THAT(text_of("O"), testing::HasSubstr("temp view: f32[C, 7, W + 19]"));
  EXPECT_THAT(text_of("9"), testing::HasSubstr("temp view: f32[C, 7, W + 19]"));
  EXPECT_THAT(text_of("8"), testing::HasSubstr("temp view: f32[C, 11, W + 19]"));
}

// Nests of a strip that read the same elements share a view as large as the largest.
TEST(PaddedViews, NestsOfAStripShareThem) {
  constexpr PassCase kCases[] = {
      {"for p in [0, (H + 3)/4) { for k in [4*p, min(H, 4*p + 4)) { for l in [0, W) { for o in [0, O) {"
       " acc s: f32 = sum for c in [0, C) { s += w[o, c, 0] * x[c, k, l] } y[o, k, l] = s } } } " OVER_STRIP(
           "min(H, 4*p + 4)", "x[c, k + q, l + q | 0.0]") " }",
       "assume : 3848290697209*C*W + 73117523246971*C for p in [0, (H + 3)/4) { temp view: f32[C, 7, W + 19]"
       " for t in [0, C) { for t_2 in [0, min(-4*p + H, 7)) { for t_3 in [0, W) { view[t, t_2, t_3] = x[t, 4*p + t_2, t_3] }"
       " for t_3_3 in [W, W + 19) { view[t, t_2, t_3_3] = 0.0 } }"
       " for t_2_2 in [-4*p + H, 7) { for t_3_2 in [0, W + 19) { view[t, t_2_2, t_3_2] = 0.0 } } }"
       " for k in [4*p, min(H, 4*p + 4)) { for l in [0, W) { for o in [0, O) {"
       " acc s: f32 = sum for c in [0, C) { s += w[o, c, 0] * view[c, -4*p + k, l] } y[o, k, l] = s } } }"
       " for k_2 in [4*p, min(H, 4*p + 4)) { for l_2 in [0, W) { for o_2 in [0, O) { acc s_2: f32 = sum for c_2 in [0, C) {"
       " for q in [0, 3) { s_2 += w[o_2, c_2, q] * view[c_2, -4*p + k_2 + q, l_2 + q] } } y[o_2, k_2, l_2] = s_2 } } } }"},
  };
  ExpectPass(MaterializePaddedViews, kImage, kCases);
}

}  // namespace
}  // namespace nestor::loop
