// Strips of three columns and two rows, so that a row of the table is short.
#include "jit/schedule/memory_order.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[K, N], g: f32[K], z: f32[A, B, N], t: f32[A, B, B], s: f32[K, 17], ids: i64[N]) -> "
    "(y: f32[N], v: f32[B, N], w: f32[A, N], q: f32[B, B], u: f32[17], h: f32[K], p: i64[N]) {\n",
    "\n  drop y[0] = 0.0  drop v[0, 0] = 0.0  drop w[0, 0] = 0.0  drop q[0, 0] = 0.0  drop u[0] = 0.0  "
    "drop h[0] = 0.0  drop p[0] = 0\n}\n"};

TEST(MemoryOrder, TextInTextOut) {
  MemoryOrderOptions options;
  options.columns = 3;
  options.rows = 2;
  const auto pass = [&](Program& program) { return WalkInMemoryOrder(program, options); };
  constexpr PassCase kCases[] = {
      // The accumulators of a strip are a row of memory, which starts at the identity.
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j] }  y[j] = a }",
       R"(
         for j_2 in [0, (N + 2)/3) {
           temp a: f32[3]
           for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = 0.0 }
           for k in [0, K) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += x[k, 3*j_2 + c_3] } }
           for c_4 in [0, min(-3*j_2 + N, 3)) { y[3*j_2 + c_4] = a[c_4] }
         })"},
      {"for j in [0, 17) { acc a: f32 = min  for k in [0, K) { a min= s[k, j] }  u[j] = a }",
       R"(
         for j_2 in [0, 6) {
           temp a: f32[3]
           for c_2 in [0, min(-3*j_2 + 17, 3)) { a[c_2] = inf }
           for k in [0, K) { for c_3 in [0, min(-3*j_2 + 17, 3)) { a[c_3] min= s[k, 3*j_2 + c_3] } }
           for c_4 in [0, min(-3*j_2 + 17, 3)) { u[3*j_2 + c_4] = a[c_4] }
         })"},
      {"for j in [1, N) parallel { acc a: f32 = prod  for k in [0, K) { a *= x[k, j] }  y[j] = a }",
       R"(
         for j_2 in [0, (max(N - 1, 0) + 2)/3) parallel {
           temp a: f32[3]
           for c_2 in [0, min(-3*j_2 + max(N - 1, 0), 3)) { a[c_2] = 1.0 }
           for k in [0, K) {
             for c_3 in [0, min(-3*j_2 + max(N - 1, 0), 3)) { a[c_3] *= x[k, 3*j_2 + c_3 + 1] }
           }
           for c_4 in [0, min(-3*j_2 + max(N - 1, 0), 3)) { y[3*j_2 + c_4 + 1] = a[c_4] }
         })"},
      {"for j in [0, N) { for k in [0, K) { y[j] += x[k, j] } }",
       R"(
         for j_2 in [0, (N + 2)/3) {
           for k in [0, K) { for c_2 in [0, min(-3*j_2 + N, 3)) { y[3*j_2 + c_2] += x[k, 3*j_2 + c_2] } }
         })"},
      {"for j in [0, N) { acc a: f64 = sum  for k in [0, K) { a += f64(x[k, j]) }  y[j] = f32(a) }",
       R"(
         for j_2 in [0, (N + 2)/3) {
           temp a: f64[3]
           for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = f64(0.0) }
           for k in [0, K) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += f64(x[k, 3*j_2 + c_3]) } }
           for c_4 in [0, min(-3*j_2 + N, 3)) { y[3*j_2 + c_4] = f32(a[c_4]) }
         })"},
      // Operands that all columns share stay where they are: a vector times a matrix.
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j] * g[k] }  y[j] = a }",
       R"(
         for j_2 in [0, (N + 2)/3) {
           temp a: f32[3]
           for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = 0.0 }
           for k in [0, K) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += x[k, 3*j_2 + c_3] * g[k] } }
           for c_4 in [0, min(-3*j_2 + N, 3)) { y[3*j_2 + c_4] = a[c_4] }
         })"},
      // Every other scalar becomes a row as well; each run of statements gets loops of its own.
      {"for j in [0, N) { acc a: f32 = sum  acc m: f32 = max  temp e: f32  for k in [0, K) { a += x[k, j] }  "
       "e = a * 2.0  for k in [0, K) { m max= x[k, j] - e }  y[j] = m + e }",
       R"(
         for j_2 in [0, (N + 2)/3) {
           temp a: f32[3]
           temp m: f32[3]
           temp e: f32[3]
           for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = 0.0  m[c_2] = -inf }
           for k in [0, K) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += x[k, 3*j_2 + c_3] } }
           for c_4 in [0, min(-3*j_2 + N, 3)) { e[c_4] = a[c_4] * 2.0 }
           for k_2 in [0, K) { for c_5 in [0, min(-3*j_2 + N, 3)) { m[c_5] max= x[k_2, 3*j_2 + c_5] - e[c_5] } }
           for c_6 in [0, min(-3*j_2 + N, 3)) { y[3*j_2 + c_6] = m[c_6] + e[c_6] }
         })"},
      // Several loops of a reduction stay around.
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, A) { for l in [0, B) { a += z[k, l, j] } }  y[j] = a }",
       R"(
         for j_2 in [0, (N + 2)/3) {
           temp a: f32[3]
           for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = 0.0 }
           for k in [0, A) {
             for l in [0, B) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += z[k, l, 3*j_2 + c_3] } }
           }
           for c_4 in [0, min(-3*j_2 + N, 3)) { y[3*j_2 + c_4] = a[c_4] }
         })"},
      // Where the reduction jumps over rows, strips of them move inside as well..
      {"for i in [0, B) { for j in [0, N) { acc a: f32 = sum  for k in [0, A) { a += z[k, i, j] }  "
       "v[i, j] = a } }",
       R"(
         for i_2 in [0, (B + 1)/2) {
           for j_2 in [0, (N + 2)/3) {
             temp a: f32[2, 3]
             for c_3 in [0, min(-2*i_2 + B, 2)) { for c_4 in [0, min(-3*j_2 + N, 3)) { a[c_3, c_4] = 0.0 } }
             for k in [0, A) {
               for c_5 in [0, min(-2*i_2 + B, 2)) {
                 for c_6 in [0, min(-3*j_2 + N, 3)) { a[c_5, c_6] += z[k, 2*i_2 + c_5, 3*j_2 + c_6] }
               }
             }
             for c_7 in [0, min(-2*i_2 + B, 2)) {
               for c_8 in [0, min(-3*j_2 + N, 3)) { v[2*i_2 + c_7, 3*j_2 + c_8] = a[c_7, c_8] }
             }
           }
         })"},
      // ..not where it jumps within one, stays, or depends on the row.
      {"for i in [0, A) { for j in [0, N) { acc a: f32 = sum  for k in [0, B) { a += z[i, k, j] }  "
       "w[i, j] = a } }",
       R"(
         for i in [0, A) {
           for j_2 in [0, (N + 2)/3) {
             temp a: f32[3]
             for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = 0.0 }
             for k in [0, B) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += z[i, k, 3*j_2 + c_3] } }
             for c_4 in [0, min(-3*j_2 + N, 3)) { w[i, 3*j_2 + c_4] = a[c_4] }
           }
         })"},
      {"for i in [0, B) { for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j] }  v[i, j] = a } }",
       R"(
         for i in [0, B) {
           for j_2 in [0, (N + 2)/3) {
             temp a: f32[3]
             for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = 0.0 }
             for k in [0, K) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += x[k, 3*j_2 + c_3] } }
             for c_4 in [0, min(-3*j_2 + N, 3)) { v[i, 3*j_2 + c_4] = a[c_4] }
           }
         })"},
      {"for i in [0, B) { for j in [0, i + 1) { acc a: f32 = sum  for k in [0, A) { a += t[k, i, j] }  "
       "q[i, j] = a } }",
       R"(
         for i in [0, B) {
           for j_2 in [0, i/3 + 1) {
             temp a: f32[3]
             for c_2 in [0, min(i - 3*j_2 + 1, 3)) { a[c_2] = 0.0 }
             for k in [0, A) { for c_3 in [0, min(i - 3*j_2 + 1, 3)) { a[c_3] += t[k, i, 3*j_2 + c_3] } }
             for c_4 in [0, min(i - 3*j_2 + 1, 3)) { q[i, 3*j_2 + c_4] = a[c_4] }
           }
         })"},
      {"for i in [0, B) { for j in [0, B) { acc a: f32 = sum  for k in [0, i) { a += t[k, i, j | 0.0] }  "
       "q[i, j] = a } }",
       R"(
         for i in [0, B) {
           for j_2 in [0, (B + 2)/3) {
             temp a: f32[3]
             for c_2 in [0, min(-3*j_2 + B, 3)) { a[c_2] = 0.0 }
             for k in [0, i) { for c_3 in [0, min(-3*j_2 + B, 3)) { a[c_3] += t[k, i, 3*j_2 + c_3 | 0.0] } }
             for c_4 in [0, min(-3*j_2 + B, 3)) { q[i, 3*j_2 + c_4] = a[c_4] }
           }
         })"},
      // Masks that all columns share are kept.
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k - 1, j | 0.0] }  y[j] = a }",
       R"(
         for j_2 in [0, (N + 2)/3) {
           temp a: f32[3]
           for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = 0.0 }
           for k in [0, K) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += x[k - 1, 3*j_2 + c_3 | 0.0] } }
           for c_4 in [0, min(-3*j_2 + N, 3)) { y[3*j_2 + c_4] = a[c_4] }
         })"},
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j | 0.0 if k < 5] }  y[j] = a }",
       R"(
         for j_2 in [0, (N + 2)/3) {
           temp a: f32[3]
           for c_2 in [0, min(-3*j_2 + N, 3)) { a[c_2] = 0.0 }
           for k in [0, K) { for c_3 in [0, min(-3*j_2 + N, 3)) { a[c_3] += x[k, 3*j_2 + c_3 | 0.0 if k < 5] } }
           for c_4 in [0, min(-3*j_2 + N, 3)) { y[3*j_2 + c_4] = a[c_4] }
         })"},
      // Not where columns have masks, places or bounds of their own.
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j + 1 | 0.0] }  y[j] = a }",
       ""},
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j | 0.0 if j < 5] }  y[j] = a }",
       ""},
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, ids[j] | 0.0] }  y[j] = a }",
       ""},
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, j) { a += x[k, j | 0.0] }  y[j] = a }",
       ""},
      // Nor where there are few columns.
      {"for j in [1, 17) { acc a: f32 = sum  for k in [0, K) { a += s[k, j] }  u[j] = a }", ""},
      // Nor where they depend on each other.
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j] }  y[0] = a }", ""},
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j] + y[0] }  y[j] = a }",
       ""},
      // Nor where something does not walk along rows, or no loop goes across them.
      {"for k in [0, K) { acc a: f32 = sum  for j in [0, N) { a += x[k, j] }  h[k] = a }", ""},
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, 2*j | 0.0] }  y[j] = a }",
       ""},
      {"for j in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[k, j] }  for l in [0, K) { a += g[l] }  "
       "y[j] = a }",
       ""},
      {"for j in [0, N) { y[j] = x[0, j | 0.0] }", ""},
      // Nor scalars that cannot become a row of memory: places of an arg reduction, tiles.
      {"for j in [0, N) { acc a: f32 = argmax  for k in [0, K) { a argmax= (x[k, j], index(k)) }  "
       "p[j] = index(a[]) }",
       ""},
      {"for j in [0, N) { temp r: f32[4] register  for l in [0, 4) { r[l] = 0.0 }  acc a: f32 = sum  "
       "for k in [0, K) { a += x[k, j] }  y[j] = a + r[0] }",
       ""},
      // Nor loops that are scheduled already, or make larger steps.
      {"for j in [0, N) vector { acc a: f32 = sum  for k in [0, K) { a += x[k, j] }  y[j] = a }",
       ""},
      {"for j in [0, N) step 2 { acc a: f32 = sum  for k in [0, K) { a += x[k, j] }  y[j] = a }",
       ""},
  };
  ExpectPass(pass, kFrame, kCases);
}

// Whole strips of the default widths.
TEST(MemoryOrder, Defaults) {
  const auto pass = [](Program& program) { return WalkInMemoryOrder(program); };
  constexpr PassCase kCases[] = {
      {"for j in [0, N) { for k in [0, K) { y[j] += x[k, j] } }",
       "for j_2 in [0, (N + 2031)/2032) { for k in [0, K) { for c_2 in [0, min(-2032*j_2 + N, 2032)) { "
       "y[2032*j_2 + c_2] += x[k, 2032*j_2 + c_2] } } }"},
  };
  ExpectPass(pass, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
