// Sums of products under a condition before and after the pass.
#include "jit/schedule/gated_sums.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, K], m: bool[N, K], w: f32[K, M], c: bool[K, M], a: f32[K], g: i32[N, K], h: i32[K, M]) "
    "-> (y: f32[N, M], z: f32[M], q: i32[N, M]) {\n",
    "\n  drop y[0, 0] = 0.0 drop z[0] = 0.0 drop q[0, 0] = i32(0)\n}\n"};
#define SUM(value) \
  "for i in [0, N) { for j in [0, M) { acc s: f32 = sum for k in [0, K) { s += " value " }"

TEST(GateFactors, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {SUM("where(m[i, k], x[i, k] * w[k, j], 0.0)") " y[i, j] = s } }",
       R"(assume : 549755813887*K*N
         temp gated: f32[N, K]
         for i_2 in [0, N) {
           for k_2 in [0, K) {
             gated[i_2, k_2] = where(m[i_2, k_2], x[i_2, k_2], 0.0)
           }
         }
         for i in [0, N) {
           for j in [0, M) {
             acc s: f32 = sum
             for k in [0, K) {
               s += gated[i, k] * w[k, j]
             }
             y[i, j] = s
           }
         }
         acc not_a_number: i64 = max
         for i_3 in [0, N) {
           for j_2 in [0, M) {
             not_a_number max= i64(y[i_3, j_2] != y[i_3, j_2])
           }
         }
         acc not_finite: i64 = max
         for j_3 in [0, M) {
           for k_3 in [0, K) {
             drop not_finite if not_a_number[] == 1 max= i64(w[k_3, j_3] * 0.0 != 0.0)
           }
         }
         for i_4 in [0, N) {
           for j_4 in [0, M) {
             acc s_2: f32 = sum
             for k_4 in [0, K) {
               drop s_2 if not_finite[] == 1 += where(m[i_4, k_4], x[i_4, k_4] * w[k_4, j_4], 0.0)
             }
             drop y[i_4, j_4] if not_finite[] == 1 = s_2
           }
         })"},
      // The other factor, and a result that is NaN where the sum is.
      {SUM("where(c[k, j], x[i, k] * w[k, j], 0.0)") " y[i, j] = max(s, 0.0) } }",
       R"(assume : 549755813887*K*M
         temp gated: f32[M, K]
         for j_2 in [0, M) {
           for k_2 in [0, K) {
             gated[j_2, k_2] = where(c[k_2, j_2], w[k_2, j_2], 0.0)
           }
         }
         for i in [0, N) {
           for j in [0, M) {
             acc s: f32 = sum
             for k in [0, K) {
               s += gated[j, k] * x[i, k]
             }
             y[i, j] = max(s, 0.0)
           }
         }
         acc not_a_number: i64 = max
         for i_2 in [0, N) {
           for j_3 in [0, M) {
             not_a_number max= i64(y[i_2, j_3] != y[i_2, j_3])
           }
         }
         acc not_finite: i64 = max
         for i_3 in [0, N) {
           for k_3 in [0, K) {
             drop not_finite if not_a_number[] == 1 max= i64(x[i_3, k_3] * 0.0 != 0.0)
           }
         }
         for i_4 in [0, N) {
           for j_4 in [0, M) {
             acc s_2: f32 = sum
             for k_4 in [0, K) {
               drop s_2 if not_finite[] == 1 += where(c[k_4, j_4], x[i_4, k_4] * w[k_4, j_4], 0.0)
             }
             drop y[i_4, j_4] if not_finite[] == 1 = max(s_2, 0.0)
           }
         })"},
      // A row inside of a loop.
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum for k in [0, K) {"
       " s += where(m[i, k], a[k] * w[k, j], 0.0) } y[i, j] = s } drop z[0] = 1.0 }",
       R"(assume : 549755813887*K
         for i in [0, N) {
           temp gated: f32[K]
           for k_2 in [0, K) {
             gated[k_2] = where(m[i, k_2], a[k_2], 0.0)
           }
           for j in [0, M) {
             acc s: f32 = sum
             for k in [0, K) {
               s += gated[k] * w[k, j]
             }
             y[i, j] = s
           }
           acc not_a_number: i64 = max
           for j_2 in [0, M) {
             not_a_number max= i64(y[i, j_2] != y[i, j_2])
           }
           acc not_finite: i64 = max
           for j_3 in [0, M) {
             for k_3 in [0, K) {
               drop not_finite if not_a_number[] == 1 max= i64(w[k_3, j_3] * 0.0 != 0.0)
             }
           }
           for j_4 in [0, M) {
             acc s_2: f32 = sum
             for k_4 in [0, K) {
               drop s_2 if not_finite[] == 1 += where(m[i, k_4], a[k_4] * w[k_4, j_4], 0.0)
             }
             drop y[i, j_4] if not_finite[] == 1 = s_2
           }
           drop z[0] = 1.0
         })"},
      // As the gradient has it.
      {SUM("mulz(where(m[i, k], w[k, j], 0.0), x[i, k])") " y[i, j] = s } }",
       R"(assume : 549755813887*K*N
         temp gated: f32[N, K]
         for i_2 in [0, N) {
           for k_2 in [0, K) {
             gated[i_2, k_2] = where(m[i_2, k_2], x[i_2, k_2], 0.0)
           }
         }
         for i in [0, N) {
           for j in [0, M) {
             acc s: f32 = sum
             for k in [0, K) {
               s += mulz(w[k, j], gated[i, k])
             }
             y[i, j] = s
           }
         }
         acc not_a_number: i64 = max
         for i_3 in [0, N) {
           for j_2 in [0, M) {
             not_a_number max= i64(y[i_3, j_2] != y[i_3, j_2])
           }
         }
         acc not_finite: i64 = max
         for j_3 in [0, M) {
           for k_3 in [0, K) {
             drop not_finite if not_a_number[] == 1 max= i64(w[k_3, j_3] * 0.0 != 0.0)
           }
         }
         for i_4 in [0, N) {
           for j_4 in [0, M) {
             acc s_2: f32 = sum
             for k_4 in [0, K) {
               drop s_2 if not_finite[] == 1 += mulz(where(m[i_4, k_4], w[k_4, j_4], 0.0), x[i_4, k_4])
             }
             drop y[i_4, j_4] if not_finite[] == 1 = s_2
           }
         })"},
      // Not conditions on both, one on the factor that is shared, or integers.
      {SUM("where(m[i, k] && c[k, j], x[i, k] * w[k, j], 0.0)") " y[i, j] = s } }", ""},
      {SUM("where(m[i, k], x[i, k] * w[k, j], 1.0)") " y[i, j] = s } }", ""},
      {SUM("where(m[i, k], x[i, k] + w[k, j], 0.0)") " y[i, j] = s } }", ""},
      {"for i in [0, N) { for j in [0, M) { acc s: i32 = sum for k in [0, K) {"
       " s += where(m[i, k], g[i, k] * h[k, j], i32(0)) } q[i, j] = s } }",
       ""},
      // Not columns of which there are more in each row.
      {"for i in [0, N) { for j in [0, min(i, M)) { acc s: f32 = sum for k in [0, K) {"
       " s += where(m[i, k], x[i, k] * w[k, j], 0.0) } drop q[i, j] = i32(s) } }",
       ""},
      // Not a product of a matrix and a vector.
      {"for j in [0, M) { acc s: f32 = sum for k in [0, K) { s += where(m[0, k | false], a[k] * w[k, j], 0.0) } z[j] = s }",
       ""},
  };
  ExpectPass(GateFactors, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
