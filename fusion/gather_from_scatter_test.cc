// Scatters before and after they become gathers: a table of the equations that can be solved.
#include "fusion/gather_from_scatter.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], m: f32[N, M], w: f32[H, R], u: i64[N], s: shape f32[C, D, L]; $s: i64 in [1, inf], $p: i64,"
    " $d: i64 in [1, inf], $g: i64 in [1, inf])"
    " -> (y: f32[N], z: f32[N, M], o: f32) {\n",
    "\n  for e in [0, N) { y[e] = 1.0 }  o = 1.0\n  for e2 in [0, N) { for e3 in [0, M) { z[e2, e3] = 1.0 } }\n}\n"};

TEST(GatherFromScatter, TextInTextOut) {
  constexpr PassCase kCases[] =
      {
          // A direct place; indices that a place does not name are summed over, in order.
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i] += x[i] }",
           "temp t: f32[N]  for a in [0, N) { acc acc: f32 = sum  acc += x[a]  t[a] = acc }"},
          {"temp t: f32[M]  for a in [0, M) { t[a] = 0.0 }  for i in [0, N) { for j in [0, M) { t[j] += m[i, j] } }",
           "temp t: f32[M]  for a in [0, M) { acc acc: f32 = sum  for i in [0, N) { acc += m[i, a] }  t[a] = acc }"},
          {"temp t: f32  t = 0.0  for i in [0, N) { drop t if u[i] < 1 += x[i] }",
           "temp t: f32  acc acc: f32 = sum  for i in [0, N) { drop acc if u[i] < 1 += x[i] }  t = acc"},
          {"temp t: f32[N, M]  for b in [0, M) { for a in [0, N) { t[a, b] = -inf } }  for i in [0, N) { for j in [0, M) { t[i, j] max= m[i, j] } }",
           "temp t: f32[N, M]  for b in [0, M) { for a in [0, N) { acc acc: f32 = max  acc max= m[a, b]  t[a, b] = acc } }"},
          // An axis of one element has no loop.
          {"temp t: f32[1, N]  for a in [0, N) { t[0, a] = 0.0 }  for i in [0, N) { drop t[0, i + $p] += x[i] }",
           "temp t: f32[1, N]  for a in [0, N) { acc acc: f32 = sum  drop acc if 0 <= a - $p, a - $p < N += x[a - $p]  t[0, a] = acc }"},
          // Shifts, flips, strides.
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i + $p] += x[i] }",
           "temp t: f32[N]  for a in [0, N) { acc acc: f32 = sum  drop acc if 0 <= a - $p, a - $p < N += x[a - $p]  t[a] = acc }"},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[N - 1 - i] += x[i] }",
           "temp t: f32[N]  for a in [0, N) { acc acc: f32 = sum  acc += x[-a + N - 1]  t[a] = acc }"},
          {"temp t: f32[N*$s]  for a in [0, N*$s) { t[a] = 0.0 }  for i in [0, N) { drop t[i*$s] += x[i] }",
           "temp t: f32[$s*N]  for a in [0, $s*N) { acc acc: f32 = sum  drop acc if a%$s == 0 += x[a/$s]  t[a] = acc }"},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [2, N - 1) { drop t[2*i + 1] if i < M += x[i] }",
           "temp t: f32[N]  for a in [0, N) { acc acc: f32 = sum  drop acc if (a + 1)%2 == 0, 2 <= (a + 1)/2 - 1, (a + 1)/2 - 1 < M += x[(a + 1)/2 - 1]  t[a] = acc }"},
          // Windows: the smaller loop stays; downwards, so that the larger index ascends.
          {"temp t: f32[H]  for a in [0, H) { t[a] = 0.0 }  for l in [0, L) { for r in [0, R) { drop t[l + r - $p] += w[l, r] } }",
           "temp t: f32[H]  for a in [0, H) { acc acc: f32 = sum  for l in [0, L) { drop acc if 0 <= a - l + $p, a - l + $p < R += w[l, a - l + $p] }  t[a] = acc }"},
          {"temp t: f32[H]  for a in [0, H) { t[a] = 0.0 }  for l in [0, (H - R)/$s + 1) { for r in [0, R) { drop t[l*$s + r - $p] += w[l, r] } }",
           "temp t: f32[H]  for a in [0, H) { acc acc: f32 = sum  for r in [0, (a + $p)/$s - (a + $p - R)/$s) { drop acc if 0 <= r + (a + $p - R)/$s + 1, r + (a + $p - R)/$s + 1 < (H - R)/$s + 1 += w[r + (a + $p - R)/$s + 1, a - r*$s - ((a + $p - R)/$s)*$s + $p - $s] }  t[a] = acc }"},
          {"temp t: f32[H]  for a in [0, H) { t[a] = 0.0 }  for l in [0, (H - R)/$s + 1) { for r in [0, R) { drop t[l*$s - r] += w[l, r] } }",
           "temp t: f32[H]  for a in [0, H) { acc acc: f32 = sum  for r in [0, -((a - 1)/$s) + (a + R - 1)/$s) { drop acc if r + (a - 1)/$s + 1 < (H - R)/$s + 1 += w[r + (a - 1)/$s + 1, -a + r*$s + (a - 1)/$s*$s + $s] }  t[a] = acc }"},
          {"temp t: f32[H]  for a in [0, H) { t[a] = 0.0 }  for l in [0, (H - R)/$s + 1) { for r in [0, R) { drop t[l*$s + r*$d] += w[l, r] } }",
           "temp t: f32[H]  for a in [0, H) { acc acc: f32 = sum  for r in [0, R) { drop acc if (a + r*$d - $d*R + $d)%$s == 0, 0 <= (a + r*$d - $d*R + $d)/$s, (a + r*$d - $d*R + $d)/$s < (H - R)/$s + 1 += w[(a + r*$d - $d*R + $d)/$s, -r + R - 1] }  t[a] = acc }"},
          {"temp t: f32[H]  for a in [0, H) { t[a] = 0.0 }  for l in [0, (H - R)/$s + 1) { for r in [0, R) { drop t[l*$s - r*$d] += w[l, r] } }",
           "temp t: f32[H]  for a in [0, H) { acc acc: f32 = sum  for r in [0, R) { drop acc if (a + r*$d)%$s == 0, (a + r*$d)/$s < (H - R)/$s + 1 += w[(a + r*$d)/$s, r] }  t[a] = acc }"},
          {"temp t: f32[H]  for a in [0, H) { t[a] = -inf }  for l in [0, (H - R)/$s + 1) { for r in [0, R) { drop t[l*$s + r*$d] max= w[l, r] } }",
           "temp t: f32[H]  for a in [0, H) { acc acc: f32 = max  for r in [0, R) { drop acc if (a - r*$d)%$s == 0, 0 <= (a - r*$d)/$s, (a - r*$d)/$s < (H - R)/$s + 1 max= w[(a - r*$d)/$s, r] }  t[a] = acc }"},
          {"temp t: f32[9]  for a in [0, 9) { t[a] = 0.0 }  for l in [0, 4) { for r in [0, 3) { drop t[2*l + r] += w[l, r] } }",
           "temp t: f32[9]  for a in [0, 9) { acc acc: f32 = sum  for r in [0, a/2 - (a + 1)/2 + 2) { drop acc if 0 <= r + (a + 1)/2 - 1, r + (a + 1)/2 - 1 < 4 += w[r + (a + 1)/2 - 1, a - 2*r - 2*((a + 1)/2) + 2] }  t[a] = acc }"},
          {"temp t: f32[H]  for a in [0, H) { t[a] = 0.0 }  for r in [0, R) { for l in [0, (H - R)/$s + 1) { drop t[l*$s + r] += w[l, r] } }", "temp t: f32[H]  for a in [0, H) { acc acc: f32 = sum  for r in [0, R) { drop acc if (a - r)%$s == 0, 0 <= (a - r)/$s, (a - r)/$s < (H - R)/$s + 1 += w[(a - r)/$s, r] }  t[a] = acc }"},
          // Mixed radix; channels in blocks; repetition; tiles.
          {"temp t: f32[N*M]  for a in [0, N*M) { t[a] = 0.0 }  for i in [0, N) { for j in [0, M) { drop t[i*M + j] += m[i, j] } }",
           "temp t: f32[M*N]  for a in [0, M*N) { acc acc: f32 = sum  acc += m[a/M, a%M]  t[a] = acc }"},
          {"temp t: f32[12]  for a in [0, 12) { t[a] = 0.0 }  for i in [0, 3) { for j in [0, 3) { drop t[4*i + j] += m[i, j] } }",
           "temp t: f32[12]  for a in [0, 12) { acc acc: f32 = sum  drop acc if a%4 < 3 += m[a/4, a%4]  t[a] = acc }"},
          {"temp t: f32[$g*C]  for a in [0, $g*C) { t[a] = 0.0 }  for j in [0, C) { for k in [0, D) { drop t[j + k/(D/$g)*C] += w[j, k] } }",
           "temp t: f32[$g*C]  for a in [0, $g*C) { acc acc: f32 = sum  for k in [a/C*(D/$g), min(D, a/C*(D/$g) + D/$g)) { acc += w[a%C, k] }  t[a] = acc }"},
          {"temp t: f32[N, M]  for a in [0, N) { for b in [0, M) { t[a, b] = 0.0 } }  for i in [0, N) { drop t[i/M, i%M] += x[i] }",
           "temp t: f32[N, M]  for a in [0, N) { for b in [0, M) { acc acc: f32 = sum  drop acc if a*M + b < N += x[a*M + b]  t[a, b] = acc } }"},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i/M] += x[i] }",
           "temp t: f32[N]  for a in [0, N) { acc acc: f32 = sum  for i in [a*M, min(N, a*M + M)) { acc += x[i] }  t[a] = acc }"},
          {"temp t: f32[M]  for a in [0, M) { t[a] = 0.0 }  for i in [0, N) { drop t[(i + 1)%M] += x[i] }",
           "temp t: f32[M]  for a in [0, M) { acc acc: f32 = sum  for i in [0, (-((a - 1)%M) + N - 1)/M + 1) { acc += x[i*M + (a - 1)%M] }  t[a] = acc }"},
          // A load that decides a place is made at known indices.
          {"temp t: f32[N, M]  for a in [0, N) { for b in [0, M) { t[a, b] = 0.0 } }  for i in [0, N) { drop t[i, u[i]] += x[i] }",
           "temp t: f32[N, M]  for a in [0, N) { for b in [0, M) { acc acc: f32 = sum  drop acc if u[a] == b += x[a]  t[a, b] = acc } }"},
          {"temp t: f32[N, M]  for a in [0, N) { for b in [0, M) { t[a, b] = 0.0 } }  for i in [0, M) { drop t[i + 1, u[i]] if u[i] < 5 += x[i] }",
           "temp t: f32[N, M]  for a in [0, N) { for b in [0, M) { acc acc: f32 = sum  drop acc if 0 <= a - 1, a - 1 < M, u[a - 1] == b, u[a - 1] < 5 += x[a - 1]  t[a, b] = acc } }"},
          {"temp t: f32[N, N]  for a in [0, N) { for b in [0, N) { t[a, b] = 0.0 } }  for i in [0, N) { drop t[i, i] += x[i] }",
           "temp t: f32[N, N]  for a in [0, N) { for b in [0, N) { acc acc: f32 = sum  drop acc if a == b += x[a]  t[a, b] = acc } }"},
          // Only the first of two; blocks in between that do not touch the tensor.
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i] += x[i] }  for j in [0, N) { drop t[j + 1] += x[j] }",
           "temp t: f32[N]  for a in [0, N) { acc acc: f32 = sum  acc += x[a]  t[a] = acc }  for j in [0, N) { drop t[j + 1] += x[j] }"},
          {"temp t: f32[N]  temp v: f32  for a in [0, N) { t[a] = 0.0 }  v = 2.0  for i in [0, N) { drop t[i] += v }",
           "temp t: f32[N]  temp v: f32  v = 2.0  for a in [0, N) { acc acc: f32 = sum  acc += v  t[a] = acc }"},
          // There is no reset before it, or one to another value, or of a part only, or it is
          // not alone.
          {"temp t: f32[N]  for a in [0, N) { t[a] = 1.0 }  for i in [0, N) { drop t[i] += x[i] }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = -0.0 }  for i in [0, N) { drop t[i] += x[i] }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i] max= x[i] }",
           ""},
          {"temp t: f32[N]  for a in [1, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i] += x[i] }",
           ""},
          {"temp t: f32[N]  for a in [0, M) { drop t[a] = 0.0 }  for i in [0, N) { drop t[i] += x[i] }",
           ""},
          {"temp t: f32[N, N]  for a in [0, N) { t[a, a] = 0.0 }  for i in [0, N) { drop t[i, i] += x[i] }",
           ""},
          {"temp t: f32[N]  temp v: f32  for a in [0, N) { t[a] = 0.0 }  v = t[0]  for i in [0, N) { drop t[i] += v }",
           ""},
          {"temp t: f32[N]  temp v: f32  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { v = x[i]  drop t[i] += v }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i] += t[0] }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) step 2 { drop t[i] += x[i] }",
           ""},
          // Signs that are not known; bent places; gathered places; products.
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i*$p] += x[i] }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { for r in [0, R) { drop t[i + r*$p] += x[i] } }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[max(i - 1, 0)] += x[i] }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[u[i]] += x[i] }",
           ""},
          {"temp t: f32[N, M]  for a in [0, N) { for b in [0, M) { t[a, b] = 0.0 } }  for i in [0, N) { for j in [0, M) { drop t[u[i], j] += m[i, j] } }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { for j in [0, M) { drop t[i*j] += m[i, j] } }",
           ""},
          // More work: a diagonal with a sum, a row.
          {"temp t: f32[N, N]  for a in [0, N) { for b in [0, N) { t[a, b] = 0.0 } }  for i in [0, N) { for j in [0, M) { drop t[i, i] += m[i, j] } }",
           ""},
          {"temp t: f32[N, M]  for a in [0, N) { for b in [0, M) { t[a, b] = 0.0 } }  for i in [0, N) { for j in [0, M) { drop t[0, j] += m[i, j] } }",
           ""},
          // What adds the identity of the op is not stored, if only a load decides that.
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i*$p] += x[i | 0.0 if i < M] }",
           "temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i*$p] if i < M += x[i | 0.0] }"},
          {"temp t: f32[N]  for a in [0, N) { t[a] = -inf }  for i in [0, N) { drop t[i*$p] if u[i] < 1 max= x[i | -inf if i < M] }",
           "temp t: f32[N]  for a in [0, N) { t[a] = -inf }  for i in [0, N) { drop t[i*$p] if i < M, u[i] < 1 max= x[i | -inf] }"},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i*$p] += x[i | 1.0 if i < M] }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i*$p] += x[i | -0.0 if i < M] }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 0.0 }  for i in [0, N) { drop t[i*$p] += x[i | 0.0 if i < M] * x[i] }",
           ""},
          {"temp t: f32[N]  for a in [0, N) { t[a] = 1.0 }  for i in [0, N) { drop t[i*$p] += x[i | 0.0 if i < M] }",
           ""},
      };
  ExpectPass(GatherFromScatter, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
