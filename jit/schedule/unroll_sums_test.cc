// Short sums before and after they are written out, and those that are too long for it.
#include "jit/schedule/unroll_sums.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N + 30], w: f32[30, 30]) -> (y: f32[N], one: f32[1]) {\n",
    "\n  drop one[0] = 0.0\n}\n"};

TEST(UnrollSums, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { acc s: f32 = sum for r in [0, 3) { s += w[r, 0] * x[i + r] } y[i] = s }",
       "for i in [0, N) { temp s: f32 s = 0.0 + w[0, 0] * x[i] + w[1, 0] * x[i + 1] + w[2, 0] * x[i + 2] y[i] = s }"},
      {"for i in [0, N) { acc s: f32 = max for r in [1, 3) { for q in [r, 3) { s max= x[i + q] } } y[i] = s }",
       ""},
      {"for i in [0, N) { acc s: f32 = max for r in [1, 3) { for q in [0, 2) { s max= w[r, q] } } y[i] = s * x[i] }",
       "for i in [0, N) { temp s: f32 s = max(max(max(max(-inf, w[1, 0]), w[1, 1]), w[2, 0]), w[2, 1]) y[i] = s * x[i] }"},
      // One step alone; but not where the sum is read before it.
      {"for i in [0, N) { acc s: f32 = sum s += x[i] y[i] = s }",
       "for i in [0, N) { temp s: f32 s = 0.0 + x[i] y[i] = s }"},
      {"for i in [0, N) { acc s: f32 = sum y[i] = s s += x[i] }", ""},
      // Not sums that are long, of unknown length, empty, or much work in each step.
      {"for i in [0, N) { acc s: f32 = sum for r in [0, 26) { s += w[r, 0] * x[i + r] } y[i] = s }",
       ""},
      {"for i in [0, N) { acc s: f32 = sum for r in [0, 6) { for q in [0, 5) { s += w[r, q] } } y[i] = s }",
       ""},
      // Of a longer one over a masked window, each row.
      {"for i in [0, N) { acc s: f32 = sum for r in [0, 9) { for q in [1, 4) { s += w[r, q] * x[i + q - 2 | 0.0] } } y[i] = s }",
       "for i in [0, N) { acc s: f32 = sum for r in [0, 9) { s += w[r, 1] * x[i - 1 | 0.0]"
       " s += w[r, 2] * x[i | 0.0] s += w[r, 3] * x[i + 1 | 0.0] } y[i] = s }"},
      {"for i in [0, N) { acc s: f32 = sum for r in [0, 12) { for q in [0, 11) { s += w[r, q] * x[i + q - 2 | 0.0] } } y[i] = s }",
       ""},
      {"for i in [0, N) { acc s: f32 = sum for r in [0, N) { s += x[r] } y[i] = s }", ""},
      {"for i in [0, N) { acc s: f32 = sum for r in [3, 3) { s += x[i + r] } y[i] = s }", ""},
      {"for i in [0, N) { acc s: f32 = sum for r in [0, 3) { s += exp(x[i + r]) } y[i] = s }", ""},
      // Nor sums that something else adds to, even from another scope, or loops that do more.
      {"for i in [0, N) { acc s: f32 = sum for r in [0, 3) { s += x[i + r] } s += x[i] y[i] = s }",
       ""},
      {"for i in [0, N) { acc s: f32 = sum for j in [0, N) { for r in [0, 3) { s += x[j + r] } } y[i] = s }",
       ""},
      {"for i in [0, N) { acc s: f32 = sum for r in [0, 3) { s += x[i + r] y[i] = s } }", ""},
  };
  ExpectPass(UnrollSums, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
