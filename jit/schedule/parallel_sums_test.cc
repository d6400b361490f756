// Sizes are symbols, and numbers at which it is known whether a sum is cut.
#include "jit/schedule/parallel_sums.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[K, N], v: f32[K], b: f32[8, 16, 12544], i: i32[K], s: f32[100], t: f32[8000000, 4], w: f32[A, K, N]) -> "
    "(y: f32[N], z: f32[N], r: f32, c: f32[16], n: i32, f: f32[4], h: f32[A, N], q: f32[K]) {\n",
    "\n  drop y[0] = 0.0  drop z[0] = 0.0  drop r[] = 0.0  drop c[0] = 0.0  drop n[] = i32(0)  drop f[0] = 0.0  "
    "drop h[0, 0] = 0.0  drop q[0] = 0.0\n}\n"};

TEST(ParallelSums, TextInTextOut) {
  const auto pass = [](Program& program) { return SumInParallel(program); };
  constexpr PassCase kCases[] = {
      // A sum of all.
      {"acc a: f32 = sum  for k in [0, K) { a += v[k] }  r = a", R"(
                                                                             assume : 549755813887*min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)
                                                                             acc a: f32 = sum
                                                                             temp a_parts: f32[min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)]
                                                                             for p_2 in [0, min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)) {
                                                                               acc a_2: f32 = sum
                                                                               for k_2_2 in [0, min(-64*p_2*((max((K + 63)/64, 65536) + 63)/64) + K, 64*((max((K + 63)/64, 65536) + 63)/64))) {
                                                                                 a_2 += v[64*p_2*((max((K + 63)/64, 65536) + 63)/64) + k_2_2]
                                                                               }
                                                                               a_parts[p_2] = a_2
                                                                             }
                                                                             for p_3 in [0, min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)) {
                                                                               a += a_parts[p_3]
                                                                             }
                                                                             r = a)"},
      // Sums of columns, two beside each other.
      {"for j in [0, N) { acc a: f32 = sum  acc m: f32 = max  for k in [0, K) { a += x[k, j]  m max= x[k, j] }  "
       "y[j] = a * 2.0  z[j] = m }",
       R"(
                                       assume : 549755813887*N*min(562949953421312*min(K/(2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64))), 1), min((K + max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)), 64))
                                       temp a_parts: f32[min(562949953421312*min(K/(2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64))), 1), min((K + max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)), 64)), N]
                                       temp m_parts: f32[min(562949953421312*min(K/(2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64))), 1), min((K + max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)), 64)), N]
                                       for p_2 in [0, min(562949953421312*min(K/(2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64))), 1), min((K + max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)), 64))) {
                                         for j_2 in [0, N) {
                                           acc a_2: f32 = sum
                                           acc m_2: f32 = max
                                           for k_2_2 in [0, min(-p_2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)) + K, max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)))) {
                                             a_2 += x[p_2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)) + k_2_2, j_2]
                                             m_2 max= x[p_2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)) + k_2_2, j_2]
                                           }
                                           a_parts[p_2, j_2] = a_2
                                           m_parts[p_2, j_2] = m_2
                                         }
                                       }
                                       for j_3 in [0, min(N, 562949953421312*min(K/(2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64))), 1))) parallel {
                                         acc a_3: f32 = sum
                                         acc m_3: f32 = max
                                         for p_3_2 in [0, min(562949953421312*min(K/(2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64))), 1), min((K + max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64)), 64))) {
                                           a_3 += a_parts[p_3_2, j_3]
                                           m_3 max= m_parts[p_3_2, j_3]
                                         }
                                         y[j_3] = a_3 * 2.0
                                         z[j_3] = m_3
                                       }
                                       for j in [0, min(N, -562949953421312*min(K/(2*max((K*((N + 511)/512) + 63)/64, max(65536/max(N, 1), 64))), 1) + 562949953421312)) parallel {
                                         acc a: f32 = sum
                                         acc m: f32 = max
                                         for k in [0, K) {
                                           a += x[k, j]
                                           m max= x[k, j]
                                         }
                                         y[j] = a * 2.0
                                         z[j] = m
                                       })"},
      // Over several loops, with known lengths.
      {"for j in [0, 16) { acc a: f32 = sum  for n_2 in [0, 8) { for k in [0, 12544) { a += b[n_2, j, k] } }  c[j] = a }",
       R"(
                                                                                                                             temp a_parts: f32[4, 16]
                                                                                                                             for p_2 in [0, 4) {
                                                                                                                               for j_2 in [0, 16) {
                                                                                                                                 acc a_2: f32 = sum
                                                                                                                                 for n_2_2_2 in [0, min(-2*p_2 + 8, 2)) {
                                                                                                                                   for k_2 in [0, 12544) { a_2 += b[2*p_2 + n_2_2_2, j_2, k_2] }
                                                                                                                                 }
                                                                                                                                 a_parts[p_2, j_2] = a_2
                                                                                                                               }
                                                                                                                             }
                                                                                                                             for j_3 in [0, 16) parallel {
                                                                                                                               acc a_3: f32 = sum
                                                                                                                               for p_3_2 in [0, 4) { a_3 += a_parts[p_3_2, j_3] }
                                                                                                                               c[j_3] = a_3
                                                                                                                             })"},
      {"for j in [0, 4) { acc a: f32 = sum  for k in [0, 8000000) { a += t[k, j] }  f[j] = a }", R"(
                                                                                                   temp a_parts: f32[64, 4]
                                                                                                   for p_2 in [0, 64) {
                                                                                                     for j_2 in [0, 4) {
                                                                                                       acc a_2: f32 = sum
                                                                                                       for k_2_2 in [0, min(-125000*p_2 + 8000000, 125000)) { a_2 += t[125000*p_2 + k_2_2, j_2] }
                                                                                                       a_parts[p_2, j_2] = a_2
                                                                                                     }
                                                                                                   }
                                                                                                   for j_3 in [0, 4) parallel {
                                                                                                     acc a_3: f32 = sum
                                                                                                     for p_3_2 in [0, 64) { a_3 += a_parts[p_3_2, j_3] }
                                                                                                     f[j_3] = a_3
                                                                                                   })"},
      // Rows of memory, beside other work.
      {"for j in [0, N) { y[j] = 0.0 }  for k in [0, K) { q[k] = v[k] + v[k]  for j_2 in [0, N) { y[j_2] += x[k, j_2] * q[k] } }",
       R"(
         assume : 549755813887*N*min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64)
         for j in [0, N) { y[j] = 0.0 }
         temp y_parts: f32[min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64), N]
         for p in [0, min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64)) {
           for c_2 in [0, N) { y_parts[p, c_2] = 0.0 }
           for k_2 in [0, min(-p*max((K + 63)/64, max(65536/max(N, 1), 64)) + K, max((K + 63)/64, max(65536/max(N, 1), 64)))) {
             q[p*max((K + 63)/64, max(65536/max(N, 1), 64)) + k_2] = v[p*max((K + 63)/64, max(65536/max(N, 1), 64)) + k_2] + v[p*max((K + 63)/64, max(65536/max(N, 1), 64)) + k_2]
             for j_2 in [0, N) {
               y_parts[p, j_2] += x[p*max((K + 63)/64, max(65536/max(N, 1), 64)) + k_2, j_2] * q[p*max((K + 63)/64, max(65536/max(N, 1), 64)) + k_2]
             }
           }
         }
         for p_2 in [0, min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64)) {
           for c_2_2 in [0, N) { y[c_2_2] += y_parts[p_2, c_2_2] }
         })"},
      {"for j in [0, N) { y[j] = 0.0  z[j] = -inf }  for k in [0, K) { for j_2 in [0, N) { y[j_2] += x[k, j_2]  "
       "z[j_2] max= x[k, j_2] } }",
       R"(
         assume : 549755813887*N*min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64)
         for j in [0, N) {
           y[j] = 0.0
           z[j] = -inf
         }
         temp y_parts: f32[min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64), N]
         temp z_parts: f32[min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64), N]
         for p in [0, min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64)) {
           for c_2 in [0, N) {
             y_parts[p, c_2] = 0.0
             z_parts[p, c_2] = -inf
           }
           for k_2 in [0, min(-p*max((K + 63)/64, max(65536/max(N, 1), 64)) + K, max((K + 63)/64, max(65536/max(N, 1), 64)))) {
             for j_2 in [0, N) {
               y_parts[p, j_2] += x[p*max((K + 63)/64, max(65536/max(N, 1), 64)) + k_2, j_2]
               z_parts[p, j_2] max= x[p*max((K + 63)/64, max(65536/max(N, 1), 64)) + k_2, j_2]
             }
           }
         }
         for p_2 in [0, min((K + max((K + 63)/64, max(65536/max(N, 1), 64)) - 1)/max((K + 63)/64, max(65536/max(N, 1), 64)), 64)) {
           for c_2_2 in [0, N) {
             y[c_2_2] += y_parts[p_2, c_2_2]
             z[c_2_2] max= z_parts[p_2, c_2_2]
           }
         })"},
      {"for j in [0, N) { y[j] = 0.0 }  for k in [0, K) { for j_2 in [0, N) { y[j_2] += x[k, j_2] * y[0] } }",
       ""},
      {"for j in [0, N) { y[j] = 0.0 }  for k in [0, K) { for j_2 in [1, N) { y[j_2] += x[k, j_2] } }",
       ""},
      {"for j in [0, 16) { c[j] = 0.0 }  for n_2 in [0, 8) { for j_2 in [0, 16) { for k in [0, 12544) { c[j_2] += b[n_2, j_2, k] } } }",
       ""},
      // Too short; with results for all threads.
      {"acc a: f32 = sum  for k in [0, 100) { a += s[k] }  r = a", ""},
      {"for a_2 in [0, A) { for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += w[a_2, k, j] }  h[a_2, j] = a } }",
       ""},
      // Loops that write beside the sum, read it at each step, or carry something else.
      {"acc a: f32 = sum  for k in [0, K) { q[k] = v[k] + v[k]  a += v[k] }  r = a", ""},
      {"acc a: f32 = sum  for k in [0, K) { a += v[k]  q[k] = a }  r = a", ""},
      {"acc a: f32 = sum  for k in [1, K) { q[k] = q[k - 1] + v[k]  a += v[k] }  r = a", ""},
      // Steps whose number depends on the result's index.
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, j) { a += x[k, j] }  y[j] = a }", ""},
  };
  ExpectPass(pass, kFrame, kCases);
}

TEST(ParallelSums, OrderIsKeptWhereItMatters) {
  const auto pass = [](Program& program) {
    return SumInParallel(program, {1 << 16, /*reorders_rounding=*/false});
  };
  constexpr PassCase kCases[] = {
      {"acc a: f32 = sum  for k in [0, K) { a += v[k] }  r = a", ""},
      {"acc a: i32 = sum  for k in [0, K) { a += i[k] }  n = a", R"(
                                                                             assume : 549755813887*min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)
                                                                             acc a: i32 = sum
                                                                             temp a_parts: i32[min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)]
                                                                             for p_2 in [0, min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)) {
                                                                               acc a_2: i32 = sum
                                                                               for k_2_2 in [0, min(-64*p_2*((max((K + 63)/64, 65536) + 63)/64) + K, 64*((max((K + 63)/64, 65536) + 63)/64))) {
                                                                                 a_2 += i[64*p_2*((max((K + 63)/64, 65536) + 63)/64) + k_2_2]
                                                                               }
                                                                               a_parts[p_2] = a_2
                                                                             }
                                                                             for p_3 in [0, min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)) {
                                                                               a += a_parts[p_3]
                                                                             }
                                                                             n = a)"},
      {"acc a: f32 = max  for k in [0, K) { a max= v[k] }  r = a", R"(
                                                                               assume : 549755813887*min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)
                                                                               acc a: f32 = max
                                                                               temp a_parts: f32[min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)]
                                                                               for p_2 in [0, min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)) {
                                                                                 acc a_2: f32 = max
                                                                                 for k_2_2 in [0, min(-64*p_2*((max((K + 63)/64, 65536) + 63)/64) + K, 64*((max((K + 63)/64, 65536) + 63)/64))) {
                                                                                   a_2 max= v[64*p_2*((max((K + 63)/64, 65536) + 63)/64) + k_2_2]
                                                                                 }
                                                                                 a_parts[p_2] = a_2
                                                                               }
                                                                               for p_3 in [0, min((K + 64*((max((K + 63)/64, 65536) + 63)/64) - 1)/(64*((max((K + 63)/64, 65536) + 63)/64)), 64)) {
                                                                                 a max= a_parts[p_3]
                                                                               }
                                                                               r = a)"},
  };
  ExpectPass(pass, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
