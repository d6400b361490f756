// Sums before and after they leave a nest, and those that must stay in it.
#include "jit/schedule/carried_sums.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[B, K], w: f32[K, N], g_in: f32[N]) -> (y: f32[B, N], g: f32[N], h: f32[N]) {\n",
    "\n  drop y[0, 0] = 0.0 drop g[0] = 0.0 drop h[0] = 0.0\n}\n"};

TEST(CarriedSums, StandBehindTheNest) {
  ExpectPass(
      MoveCarriedSums, kFrame,
      {
          // Sums of a stored value; of an input.
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[i, j] = s "
           "g[j] += y[i, j] h[j] += y[i, j] * x[i, 0] } }",
           R"(
             for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[i, j] = s } }
             for i_2 in [0, B) { for j_2 in [0, N) { g[j_2] += y[i_2, j_2] } }
             for i_3 in [0, B) { for j_3 in [0, N) { h[j_3] += y[i_3, j_3] * x[i_3, 0] } }
          )"},
          // Sums of a scalar that was also stored.
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } temp t: f32 t = s * 2.0 "
           "y[i, j] = t g[j] += t } }",
           R"(
             for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } temp t: f32 t = s * 2.0 y[i, j] = t } }
             for i_2 in [0, B) { for j_2 in [0, N) { g[j_2] += y[i_2, j_2] } }
          )"},
          // Sums of elements that another loop stored in the same row.
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[i, j] = s } "
           "for l in [0, N) { g[l] += y[i, l] } }",
           R"(
             for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[i, j] = s } }
             for i_2 in [0, B) { for l_2 in [0, N) { g[l_2] += y[i_2, l_2] } }
          )"},
      });
}

TEST(CarriedSums, Stay) {
  ExpectPass(
      MoveCarriedSums, kFrame,
      {
          // No statement is deeper.
          {"for i in [0, B) { for j in [0, N) { y[i, j] = x[i, 0] g[j] += y[i, j] } }", ""},
          // The summed value is nowhere in memory.
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } g[j] += s } }",
           ""},
          // It is stored, or summed, under a mask only.
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } "
           "y[i, j] = s[ | 0.0 if j%2 == 1] g[j] += s } }",
           ""},
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } "
           "y[i, j] = s g[j] += s[ | 0.0 if j%2 == 1] } }",
           ""},
          // The value changes later, or was not stored before.
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[0, j] = s g[j] += y[0, j] } }",
           ""},
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } g[j] += y[i, j] y[i, j] = s } }",
           ""},
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[i, j] = s g[j] += y[0, j] } }",
           ""},
          // Something else is carried; two sums into one.
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[i, j] = s g[j] += y[i, j] h[j] = s } }",
           ""},
          {"for i in [0, B) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[i, j] = s g[j] += y[i, j] g[j] += x[i, 0] } }",
           ""},
          // No iteration depends on another.
          {"for j in [0, N) { for i in [0, B) { acc s: f32 = sum for k in [0, K) { s += x[i, k] * w[k, j] } y[i, j] = s g[j] += y[i, j] } }",
           ""},
      });
}

}  // namespace
}  // namespace nestor::loop
