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
#define VIEWED(shape, load, value)                                                                              \
  "for b in [0, B) { temp view: f32[" shape "] for t in [0, " shape ") { view[t] = " load " }"                   \
  " for o in [0, O) { for i in [0, N) { acc s: f32 = sum for r in [0, R) { s += " value " } y[b, o, i] = s } } }"

TEST(PaddedViews, TextInTextOut) {
  fusion::ExpectPass(MaterializePaddedViews, kFrame, {
      {WINDOWS("w[o, r] * x[b, i + r - 1 | 0.0]"),
       VIEWED("max(N - 1, 0) + max(R - 1, 0) + 1", "x[b, t - 1 | 0.0]", "w[o, r] * view[i + r]")},
      // Any fill, steps, and backwards; a condition on what is around.
      {WINDOWS("w[o, r] * x[b, $s*i + 2*r - 3 | -inf if b < 7]"),
       VIEWED("$s*max(N - 1, 0) + 2*max(R - 1, 0) + 1", "x[b, t - 3 | -inf if b < 7]", "w[o, r] * view[$s*i + 2*r]")},
      {WINDOWS("w[o, r] * x[b, i - r | 0.0]"),
       VIEWED("max(N - 1, 0) + max(R - 1, 0) + 1", "x[b, t - max(R - 1, 0) | 0.0]", "w[o, r] * view[i - r + max(R - 1, 0)]")},
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
