// Nests before and after fusion, and a table of dependences that forbid it.
#include "fusion/merge_loops.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, M], w: f32[M, M], ids: i64[N]) -> "
    "(y: f32[N, M], z: f32[N, M], c: f32[M, N], v: f32[N], u: f32[M], q: i64, r: f32) {\n",
    "\n  drop y[0, 0] = 0.0  drop z[0, 0] = 0.0  drop c[0, 0] = 0.0"
    "\n  drop v[0] = 0.0  drop u[0] = 0.0  q = 0  r = 0.0\n}\n"};

TEST(MergeLoops, SharesLoops) {
  constexpr PassCase kCases[] = {
      // Values passed on, a tensor read twice, the same loops over other tensors.
      {"for i in [0, N) { v[i] = x[i, 0] }  for a in [0, N) { drop y[a, 0] = v[a] }",
       "for i in [0, N) { v[i] = x[i, 0]  drop y[i, 0] = v[i] }"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for a in [0, N) { for b in [0, M) { z[a, b] = x[a, b] } }",
       "for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j]  z[i, j] = x[i, j] } }"},
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) { drop y[a, 0] = 2.0 }",
       "for i in [0, N) { v[i] = 1.0  drop y[i, 0] = 2.0 }"},
      // Over other tensors only as a whole.
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) { for b in [0, M) { y[a, b] = 2.0 } }", ""},
      // A chain.
      {"for i in [0, N) { v[i] = x[i, 0] }  for a in [0, N) { v[a] = v[a] + 1.0 }  for b in [0, N) { drop z[b, 0] = v[b] }",
       "for i in [0, N) { v[i] = x[i, 0]  v[i] = v[i] + 1.0  drop z[i, 0] = v[i] }"},
      // A tensor written twice; read before it is written.
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) { v[a] = x[a, 0] }",
       "for i in [0, N) { v[i] = 1.0  v[i] = x[i, 0] }"},
      {"for i in [0, N) { drop y[i, 0] = v[i | 0.0 if 1 < 0] }  for a in [0, N) { v[a] = 1.0 }",
       "for i in [0, N) { drop y[i, 0] = v[i | 0.0 if 1 < 0]  v[i] = 1.0 }"},
      // Part of the way: the common loops outermost, the rest follows in their body.
      {"for i in [0, N) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] }  v[i] = s }  "
       "for a in [0, N) { for b in [0, M) { y[a, b] = x[a, b] / v[a] } }",
       "for i in [0, N) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] }  v[i] = s  for b in [0, M) { y[i, b] = x[i, b] / v[i] } }"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for a in [0, N) { for b in [0, M) { z[a, b] = y[a, b + 1 | 0.0] } }",
       "for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] }  for b in [0, M) { z[i, b] = y[i, b + 1 | 0.0] } }"},
      // Inwards: pairs of accumulators over one row.
      {"for i in [0, N) { acc m: f32 = max  for j in [0, M) { m max= x[i, j] }  acc b: f32 = argmax  "
       "for k in [0, M) { b argmax= (x[i, k], index(k)) }  v[i] = m + x[i, b[]] }",
       "for i in [0, N) { acc m: f32 = max  acc b: f32 = argmax  for j in [0, M) { m max= x[i, j]  b argmax= (x[i, j], index(j)) }  "
       "v[i] = m + x[i, b[]] }"},
      // The same step; merged loops keep no attribute that the whole may not have.
      {"for i in [0, N) step 2 { v[i] = 1.0 }  for a in [0, N) step 2 { drop y[a, 0] = v[a] }",
       "for i in [0, N) step 2 { v[i] = 1.0  drop y[i, 0] = v[i] }"},
      {"for i in [0, N) parallel { v[i] = 1.0 }  for a in [0, N) { drop y[a, 0] = v[a] }",
       "for i in [0, N) { v[i] = 1.0  drop y[i, 0] = v[i] }"},
  };
  ExpectPass(MergeLoops, kFrame, kCases);
}

TEST(MergeLoops, KeepsDependences) {
  constexpr PassCase kCases[] = {
      // Values passed to another iteration, an earlier or a later one.
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) { drop y[a, 0] = v[a + 1 | 0.0] }", ""},
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) { drop y[a, 0] = v[a - 1 | 0.0] }", ""},
      {"for i in [0, N) { drop y[i, 0] = v[i + 1 | 0.0 if 1 < 0] }  for a in [0, N) { v[a] = 1.0 }",
       ""},
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) { drop y[a, 0] = v[ids[a] | 0.0] }", ""},
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) { drop v[ids[a]] = 2.0 }", ""},
      {"r = 0.0  for i in [0, N) { r += x[i, 0] }  for a in [0, N) { v[a] = r }", ""},
      {"for i in [0, N) { for j in [0, N) { drop y[i, j] = 1.0 } }  for a in [0, N) { for b in [0, N) { drop c[b, a] = y[b, a | 0.0] } }",
       "for i in [0, N) { for j in [0, N) { drop y[i, j] = 1.0  drop c[i, j] = y[i, j | 0.0] } }"},
      {"for i in [0, N) { for j in [0, N) { drop y[i, j] = 1.0 } }  for a in [0, N) { for b in [0, N) { drop c[b, a] = y[b, a | 0.0] + y[a, b | 0.0] } }",
       ""},
      // With a sum into rank 0 in between, the order stays.
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) { r += v[a] }",
       "for i in [0, N) { v[i] = 1.0  r += v[i] }"},
      // Loops that begin, end or step otherwise; equal by a check alone.
      {"for i in [0, N) { v[i] = 1.0 }  for a in [1, N) { v[a] = 2.0 }", ""},
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N - 1) { v[a] = 2.0 }", ""},
      {"for i in [0, N) { v[i] = 1.0 }  for a in [0, N) step 2 { v[a] = 2.0 }", ""},
      {"require N == M \"both\"  for i in [0, N) { v[i] = 1.0 }  for a in [0, M) { v[a] = 2.0 }",
       ""},
  };
  ExpectPass(MergeLoops, kFrame, kCases);
}

TEST(MergeLoops, MovesPastWhatLiesBetween) {
  constexpr PassCase kCases[] = {
      // Merge left: the later one moves up past items that it does not depend on.
      {"for i in [0, N) { v[i] = 1.0 }  drop u[0] = v[0 | 0.0]  for a in [0, N) { drop y[a, 0] = v[a] }",
       "for i in [0, N) { v[i] = 1.0  drop y[i, 0] = v[i] }  drop u[0] = v[0 | 0.0]"},
      // Merge right: the earlier one moves down past items that do not depend on it.
      {"for i in [0, N) { v[i] = 1.0 }  r = 2.0  for a in [0, N) { drop y[a, 0] = v[a] + r }",
       "r = 2.0  for i in [0, N) { v[i] = 1.0  drop y[i, 0] = v[i] + r }"},
      // Both: those between are sorted by what they depend on, and keep their order.
      {"for i in [0, N) { v[i] = 1.0 }  drop u[0] = v[0 | 0.0]  r = 2.0  drop u[1] = u[0 | 0.0]  "
       "for a in [0, N) { drop y[a, 0] = v[a] + r }",
       "r = 2.0  for i in [0, N) { v[i] = 1.0  drop y[i, 0] = v[i] + r }  drop u[0] = v[0 | 0.0]  "
       "drop u[1] = u[0 | 0.0]"},
      // Neither: a chain of dependences, of any kind, leads through the items between.
      {"for i in [0, N) { v[i] = 1.0 }  r = v[0]  for a in [0, N) { drop y[a, 0] = v[a] + r }", ""},
      {"for i in [0, N) { v[i] = 1.0 }  r = v[0]  drop u[0] = r  for a in [0, N) { drop y[a, 0] = v[a] + u[0 | 0.0] }",
       ""},
      {"for i in [0, N) { v[i] = 1.0 }  drop v[0] = 2.0  for a in [0, N) { drop y[a, 0] = v[a] }",
       ""},
      {"r = 1.0  for i in [0, N) { v[i] = r }  r = 2.0  for a in [0, N) { drop y[a, 0] = v[a] + r }",
       ""},
      // In a loop's body, too; a declaration moves with its first use.
      {"for i in [0, N) { temp t: f32[M]  for j in [0, M) { t[j] = x[i, j] }  temp s: f32  s = 2.0  "
       "for b in [0, M) { y[i, b] = t[b] * s } }",
       "for i in [0, N) { temp s: f32  s = 2.0  temp t: f32[M]  for j in [0, M) { t[j] = x[i, j]  y[i, j] = t[j] * s } }"},
  };
  ExpectPass(MergeLoops, kFrame, kCases);
}

TEST(MergeLoops, Permutes) {
  constexpr PassCase kCases[] = {
      // To the earlier one's order.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for b in [0, M) { for a in [0, N) { z[a, b] = y[a, b] } }",
       "for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j]  z[i, j] = y[i, j] } }"},
      {"for j in [0, M) { u[j] = 1.0 }  for a in [0, N) { for b in [0, M) { c[b, a] = u[b] } }",
       "for j in [0, M) { u[j] = 1.0  for a in [0, N) { c[j, a] = u[j] } }"},
      // The loop along which memory is contiguous stays innermost.
      {"for j in [0, M) { u[j] = 1.0 }  for a in [0, N) { for b in [0, M) { y[a, b] = u[b] } }",
       ""},
      // A sum of floats keeps the order of its terms; an exact one need not.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for b in [0, M) { for a in [0, N) { r += y[a, b] } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for b in [0, M) { for a in [0, N) { r *= y[a, b] } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for b in [0, M) { for a in [0, N) { r max= y[a, b] } }",
       "for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j]  r max= y[i, j] } }"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for b in [0, M) { for a in [0, N) { q += i64(y[a, b]) } }",
       "for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j]  q += i64(y[i, j]) } }"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for b in [0, M) { for a in [0, N) { r max= y[a, b] + r } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  for b in [0, M) { for a in [0, N) { r = y[a, b] } }",
       ""},
      {"acc b2: f32 = argmax  for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }  "
       "for b in [0, M) { for a in [0, N) { b2 argmax= (y[a, b], index(a)) } }",
       ""},
      // Sums to different elements are free of each other.
      {"for j in [0, M) { for i in [0, N) { c[j, i] = x[i, j] } }  for a in [0, N) { for b in [0, M) { u[b] += c[b, a] } }",
       "for j in [0, M) { for i in [0, N) { c[j, i] = x[i, j]  u[j] += c[j, i] } }"},
      // A loop whose bounds hold an index is not moved out of that one's loop.
      {"for j in [0, M) { u[j] = 1.0 }  for a in [0, N) { for k in [0, a) { for b in [0, M) { c[b, a] = u[b] } } }",
       ""},
      {"for j in [0, M) { u[j] = 1.0 }  for a in [0, N) { for k in [0, N) { for b in [0, M) { c[b, a] = u[b] } } }",
       "for j in [0, M) { u[j] = 1.0  for a in [0, N) { for k in [0, N) { c[j, a] = u[j] } } }"},
      {"for i in [0, N) { for j in [0, i) { drop y[i, j] = 1.0 } }  for a in [0, N) { for b in [0, a) { drop z[a, b] = y[a, b | 0.0] } }",
       "for i in [0, N) { for j in [0, i) { drop y[i, j] = 1.0  drop z[i, j] = y[i, j | 0.0] } }"},
  };
  ExpectPass(MergeLoops, kFrame, kCases);
}

TEST(MergeLoops, Contractions) {
  constexpr PassCase kCases[] = {
      // A nest that works on each element of a product joins it ...
      {"for a in [0, N) { for b in [0, M) { acc s: f32 = sum  for k in [0, M) { s += x[a, k] * w[k, b] }  y[a, b] = s } }  "
       "for i in [0, N) { for j in [0, M) { z[i, j] = y[i, j] + 1.0 } }",
       "for a in [0, N) { for b in [0, M) { acc s: f32 = sum  for k in [0, M) { s += x[a, k] * w[k, b] }  y[a, b] = s  z[a, b] = y[a, b] + 1.0 } }"},
      // ... one that only reads the same operands does not.
      {"for a in [0, N) { for b in [0, M) { acc s: f32 = sum  for k in [0, M) { s += x[a, k] * w[k, b] }  y[a, b] = s } }  "
       "for i in [0, N) { for j in [0, M) { z[i, j] = x[i, j] + 1.0 } }",
       ""},
  };
  ExpectPass(MergeLoops, kFrame, kCases);
}

// A loop that carries nothing may not move outwards past one that does: here the terms of an
// element would be added, and its values stored, in another order; and a maximum does not commute
// with a minimum.
TEST(MergeLoops, KeepsSkewedOrder) {
  constexpr PassCase kCases[] = {
      {"for j in [0, M) { for i in [0, N) { c[j, i] = x[i, j] } }  for a in [0, N) { for b in [0, M) { drop u[a + b] = c[b, a] } }",
       ""},
      {"for j in [0, M) { for i in [0, N) { c[j, i] = x[i, j] } }  for a in [0, N) { for b in [0, M) { drop u[a + b] += c[b, a] } }",
       ""},
      {"for j in [0, M) { for i in [0, N) { c[j, i] = x[i, j] } }  for a in [0, N) { for b in [0, M) { r max= c[b, a]  r min= c[b, a] * 2.0 } }",
       ""},
  };
  ExpectPass(MergeLoops, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
