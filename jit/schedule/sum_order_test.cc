// The order of a contraction's sums before and after the pass.
#include "jit/schedule/sum_order.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[C, N], w: f32[O, C, R], d: f32[H, N], e: f32[O, Q, R])"
                          " -> (y: f32[O, N - R + 1], z: f32[H, O, N], one: f32[1]) {\n",
                          "\n  drop one[0] = 0.0 drop y[0, 0] = 0.0 drop z[0, 0, 0] = 0.0\n}\n"};

// A nest with two sums.
#define MOVES(sums)                                                              \
  "for h in [0, H) { for o in [0, O) { for i in [0, N) { acc s: f32 = sum " sums \
  " s += e[o, q, r | 0.0] * d[h + q - 1, i + r | 0.0] } } z[h, o, i] = s } } }"

TEST(SumOrder, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, R) { s += w[o, c, r] * x[c, i + r] } } y[o, i] = s } }",
       "for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for r in [0, R) { for c in [0, C) { s += w[o, c, r] * x[c, i + r] } } y[o, i] = s } }"},
      // A sum of few steps moves inside of one whose bounds move with a batch.
      {MOVES("for r in [0, 3) { for q in [max(-h + 1, 0), min(Q, -h + H + 1)) {"),
       MOVES("for q in [max(-h + 1, 0), min(Q, -h + H + 1)) { for r in [0, 3) {")},
      {MOVES("for r in [0, 13) { for q in [max(-h + 1, 0), min(Q, -h + H + 1)) {"), ""},
      {MOVES("for r in [0, 3) { for q in [0, Q) {"), ""},
      // Not without a window, or a contraction.
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, 3) { s += w[o, c, r | 0.0] * x[c, i + r | 0.0] } } y[o, i] = s } }",
       ""},
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, R) { s += x[c, i + r] } } y[o, i] = s } }",
       ""},
  };
  ExpectPass(SumWindowsFirst, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
