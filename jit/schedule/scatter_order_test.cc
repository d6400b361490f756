// Scatters before and after their loops change places.
#include "jit/schedule/scatter_order.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, M], u: i32[N, M], w: f32[N, 5]) -> (y: f32[N], z: f32[N, M], v: i32[N]) {\n",
    "\n  drop y[0] = 0.0 drop z[0, 0] = 0.0 drop v[0] = u[0, 0]\n}\n"};

absl::StatusOr<bool> ExactScatters(Program& program) { return ScatterInMemoryOrder(program, {}); }
absl::StatusOr<bool> AllScatters(Program& program) {
  return ScatterInMemoryOrder(program, {/*reorders_rounding=*/true});
}

TEST(ScatterOrder, TextInTextOut) {
  ExpectPass(
      AllScatters, kFrame,
      {
          {"for j in [0, N) { for i in [0, M) { drop y[j + i*N/3] += x[j, i] } }",
           "for i in [0, M) { for j in [0, -(i*N/3) + N) { y[j + i*N/3] += x[j, i] } }"},
          // Loops are cut where the outcome of the mask changes.
          {"for j in [0, N/3 + 2) { for i in [0, 3) { drop y[j + i*N/3] if j + i*N/3 < (i*N + N + 2)/3 += w[0, i] } }",
           "for i in [0, 3) { for j in [0, (i*N + N + 2)/3 - i*N/3) { y[j + i*N/3] += w[0, i] } }"},
          // Along two axes.
          {"for j in [0, N) { for i in [0, 3) { for l in [0, M) { for k in [0, 5) { drop z[j + i*N/3, l + k*M/5] max= w[l, k | 0.0] } } } }",
           R"(
             for i in [0, 3) {
               for j in [0, -(i*N/3) + N) {
                 for k in [0, 5) { for l in [0, M) { drop z[j + i*N/3, l + k*M/5] max= w[l, k | 0.0] } }
               }
             })"},
          {"for j in [0, N) { for i in [0, M) { drop v[j + i*N/3] += u[j, i] } }",
           "for i in [0, M) { for j in [0, -(i*N/3) + N) { v[j + i*N/3] += u[j, i] } }"},
          // Not where no loop jumps inside; where a bound or the value would move.
          {"for i in [0, M) { for j in [0, N) { drop y[j + i*N/3] += x[j, i] } }", ""},
          {"for j in [0, N) { for i in [0, M) { drop y[j + 2*i] += x[j, i] } }", ""},
          {"for j in [0, N) { for i in [0, j) { drop y[j + i*N/3] += x[j, i | 0.0] } }", ""},
          {"for j in [0, N) { for i in [0, M) { drop y[j + i*N/3] += y[j] } }", ""},
          {"for j in [0, N) { for i in [0, M) { drop y[j + i*N/3] = x[j, i] } }", ""},
      });
  ExpectPass(ExactScatters, kFrame,
             {
                 {"for j in [0, N) { for i in [0, M) { drop y[j + i*N/3] += x[j, i] } }", ""},
                 {"for j in [0, N) { for i in [0, M) { drop y[j + i*N/3] max= x[j, i] } }",
                  "for i in [0, M) { for j in [0, -(i*N/3) + N) { y[j + i*N/3] max= x[j, i] } }"},
             });
}

}  // namespace
}  // namespace nestor::loop
