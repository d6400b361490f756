#include "jit/schedule/padded_views.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

constexpr fusion::Frame kFrame = {
    "program p(x: f32[B, N], w: f32[O, R], ids: i64[R]; $d: i64 = 1, $s: i64 = 1 in [1, inf]) -> (y: f32[B, O, N], one: f32[1]) {\n",
    "\n  block { drop one[0] = 0.0 }\n}\n"};
#define WINDOWS(value) \
  "for b in [0, B) { for o in [0, O) { for i in [0, N) { acc s: f32 = sum for r in [0, R) { s += " value " } y[b, o, i] = s } } }"
#define VIEWED(assumed, shape, copy, value)                                       \
  "assume : " assumed " for b in [0, B) { temp view: f32[" shape "] " copy " for o in [0, O) { for i in [0, N) {" \
  " acc s: f32 = sum for r in [0, R) { s += " value " } y[b, o, i] = s } } }"

TEST(PaddedViews, TextInTextOut) {
  fusion::ExpectPass(MaterializePaddedViews, kFrame, {
      {WINDOWS("w[o, r] * x[b, i + r - 1 | 0.0]"),
       VIEWED("549755813887*(N + R + 16)", "N + R + 16",
              "for t in [0, 1) { view[t] = 0.0 } for t_2 in [1, N + 1) { view[t_2] = x[b, t_2 - 1] }"
              " for t_3 in [N + 1, N + R + 16) { view[t_3] = 0.0 }",
              "w[o, r] * view[i + r]")},
      // Any fill and steps.
      {WINDOWS("w[o, r] * x[b, $s*i + 2*r | -inf]"),
       VIEWED("549755813887*($s*N + 2*R + 16)", "$s*N + 2*R + 16",
              "for t in [0, N) { view[t] = x[b, t] } for t_2 in [N, $s*N + 2*R + 16) { view[t_2] = -inf }",
              "w[o, r] * view[i*$s + 2*r]")},
      // Backwards.
      {WINDOWS("w[o, r] * x[b, i - r | 0.0]"),
       VIEWED("549755813887*(N + R + 17)", "N + R + 17",
              "for t in [0, R) { view[t] = 0.0 } for t_2 in [R, N + R) { view[t_2] = x[b, t_2 - R] }"
              " for t_3 in [N + R, N + R + 17) { view[t_3] = 0.0 }",
              "w[o, r] * view[i - r + R]")},
      // What windows go over, that whole vectors may be read to the last place.
      {"for b in [0, B) { for o in [0, O) { for i in [0, N - R) { acc s: f32 = sum for r in [0, R) {"
       " s += w[o, r] * x[b, i + r] } y[b, o, i] = s } } } for b in [0, B) { for o in [0, O) { drop y[b, o, 0] = 0.0 } }",
       "assume : 549755813887*(R + max(N - R, 0) + 16)"
       " for b in [0, B) { temp view: f32[R + max(N - R, 0) + 16] for t in [0, N) { view[t] = x[b, t] }"
       " for t_2 in [N, R + max(N - R, 0) + 16) { view[t_2] = 0.0 } for o in [0, O) { for i in [0, N - R) {"
       " acc s: f32 = sum for r in [0, R) { s += w[o, r] * view[i + r] } y[b, o, i] = s } } }"
       " for b_2 in [0, B) { for o_2 in [0, O) { drop y[b_2, o_2, 0] = 0.0 } }"},
      // Not what is in range, of steps of no known sign, looked up, or with conditions of its own.
      {WINDOWS("w[o, r] * x[b, i]"), ""},
      {WINDOWS("w[o, r] * x[b, i + $d*r | 0.0]"), ""},
      {WINDOWS("w[o, r] * x[b, i + ids[r] | 0.0]"), ""},
      {WINDOWS("w[o, r] * x[b, i + r | 0.0 if r < i]"), ""},
      // Not of what is no contraction.
      {"for b in [0, B) { for o in [0, O) { for i in [0, N) { acc s: f32 = sum for r in [0, R) { s += x[b, i + r | 0.0] } y[b, o, i] = s } } }", ""},
  });
}

}  // namespace
}  // namespace nestor::jit
