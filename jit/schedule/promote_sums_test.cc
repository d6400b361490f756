// Sums in memory before and after they became accumulators.
#include "jit/schedule/promote_sums.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, M]) -> (y: f32[N, M], g: f32[N], m: f32[N], h: f16[N]) {\n",
    "\n  drop y[0, 0] = 0.0 drop g[0] = 0.0 drop m[0] = 0.0 drop h[0] = f16(0.0)\n}\n"};

TEST(PromoteSums, TextInTextOut) {
  ExpectPass(
      PromoteSums, kFrame,
      {
          {"for i in [0, N) { g[i] = 0.0 m[i] = -inf for j in [0, M) { y[i, j] = x[i, j] g[i] += x[i, j] m[i] max= x[i, j] } y[i, 0] = g[i] }",
           "for i in [0, N) { acc acc: f32 = sum acc acc_2: f32 = max for j in [0, M) { y[i, j] = x[i, j] acc += x[i, j] acc_2 max= x[i, j] } "
           "m[i] = acc_2 g[i] = acc y[i, 0] = g[i] }"},
          // Another initial value; a sum that is read on the way; another place; a sum that is
          // rounded each time.
          {"for i in [0, N) { g[i] = 1.0 for j in [0, M) { g[i] += x[i, j] } }", ""},
          {"for i in [0, N) { g[i] = 0.0 for j in [0, M) { y[i, j] = g[i] g[i] += x[i, j] } }", ""},
          {"for i in [0, N) { g[i] = 0.0 for j in [0, N) { g[j] += x[i, 0] } }", ""},
          {"for i in [0, N) { h[i] = f16(0.0) for j in [0, M) { h[i] += f16(x[i, j]) } }", ""},
      });
}

}  // namespace
}  // namespace nestor::loop
