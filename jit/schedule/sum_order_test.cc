#include "jit/schedule/sum_order.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

constexpr fusion::Frame kFrame = {
    "program p(x: f32[C, N], w: f32[O, C, R]) -> (y: f32[O, N - R + 1], one: f32[1]) {\n",
    "\n  block { drop one[0] = 0.0 }\n}\n"};

TEST(SumOrder, TextInTextOut) {
  fusion::ExpectPass(SumWindowsFirst, kFrame, {
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, R) { s += w[o, c, r] * x[c, i + r] } } y[o, i] = s } }",
       "for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for r in [0, R) { for c in [0, C) { s += w[o, c, r] * x[c, i + r] } } y[o, i] = s } }"},
      // Not what is no window, or no contraction.
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, 3) { s += w[o, c, r | 0.0] * x[c, i + r | 0.0] } } y[o, i] = s } }",
       ""},
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, R) { s += x[c, i + r] } } y[o, i] = s } }",
       ""},
  });
}

}  // namespace
}  // namespace nestor::jit
