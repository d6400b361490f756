// Programs before and after the pass, and what must stay: what the loop changes, what may have no
// value where the loop does not run.
#include "fusion/hoist.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], x2: f32[N, M], v: f32, c: f32[3], ids: i64[N], i: i64; $eps: f32 = 1.0, $k: i64 = 1) -> "
    "(y: f32[N], w: f32[N, M], q: f32) {\n",
    "\n  drop y[0] = 0.0  drop w[0, 0] = 0.0  q = 0.0\n}\n"};

TEST(Hoist, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // The largest expression that holds no index of the loop.
      {"for n in [0, N) { y[n] = x[n] * rsqrt(v + $eps) }",
       "temp h: f32  h = rsqrt(v + $eps)  for n in [0, N) { y[n] = x[n] * h }"},
      {"for n in [0, N) { y[n] = x[n] * exp(v) + log(v) }",
       "temp h: f32  h = exp(v)  temp h_2: f32  h_2 = log(v)  for n in [0, N) { y[n] = x[n] * h + h_2 }"},
      // Copies become one, in one statement or several; also the whole value, and a place's value.
      {"for n in [0, N) { y[n] = exp(v) + x[n] + exp(v)  drop w[n, 0] = x[n] * exp(v) }",
       "temp h: f32  h = exp(v)  for n in [0, N) { y[n] = h + x[n] + h  drop w[n, 0] = x[n] * h }"},
      {"for n in [0, N) { y[n] = exp(v) }",
       "temp h: f32  h = exp(v)  for n in [0, N) { y[n] = h }"},
      {"acc a: f32 = argmax  for n in [0, N) { a argmax= (x[n], i64(v) + index(n)) }",
       "acc a: f32 = argmax  temp h: i64  h = i64(v)  for n in [0, N) { a argmax= (x[n], h + index(n)) }"},
      // Out of as many loops as possible, each part on its own.
      {"for n in [0, N) { for m in [0, M) { w[n, m] = exp(v) * exp(x[n]) * x2[n, m] } }",
       "temp h: f32  h = exp(v)  for n in [0, N) { temp h_2: f32  h_2 = h * exp(x[n])  for m in [0, M) { w[n, m] = h_2 * x2[n, m] } }"},
      {"for m in [0, M) { for n in [0, N) { w[n, m] = exp(x[n]) } }", ""},
      {"for n in [0, N) { for m in [0, M) { w[n, m] = exp(f32(index(m))) } }", ""},
      // Masked and accumulated; a dropped store keeps its conditions.
      {"for n in [0, N) { drop y[n] if n < 3 += exp(v) * x[n] }",
       "temp h: f32  h = exp(v)  for n in [0, N) { drop y[n] if n < 3 += h * x[n] }"},
      // Between items.
      {"q = 1.0  for n in [0, N) { y[n] = x[n] * exp(v) }",
       "q = 1.0  temp h: f32  h = exp(v)  for n in [0, N) { y[n] = x[n] * h }"},
      // Reads, constants and indices alone are not worth a temporary.
      {"for n in [0, N) { y[n] = v }", ""},
      {"for n in [0, N) { y[n] = x[n] * v + 2.0 * $eps }",
       "temp h: f32  h = 2.0 * $eps  for n in [0, N) { y[n] = x[n] * v + h }"},
      // No loop, nothing to leave.
      {"q = exp(v)", ""},
  };
  ExpectPass(HoistInvariants, kFrame, kCases);
}

TEST(Hoist, WhatTheLoopChangesStays) {
  constexpr PassCase kCases[] = {
      {"for n in [0, N) { y[n] = x[n] * exp(q)  q = y[n] }", ""},
      {"for n in [0, N) { q += exp(q) }", ""},
      {"for n in [0, N) { y[n] = exp(c[0])  for m in [0, M) { q = 1.0 } }",
       "temp h: f32  h = exp(c[0])  for n in [0, N) { y[n] = h  for m in [0, M) { q = 1.0 } }"},
      {"for n in [0, N) { temp t: f32  t = x[n]  y[n] = exp(t) }", ""},
      {"for n in [0, N) { acc t: f32 = sum  y[n] = exp(t) }", ""},
      {"for n in [0, N) { temp t: f32  t = x[n]  for m in [0, M) { w[n, m] = exp(t) } }",
       "for n in [0, N) { temp t: f32  t = x[n]  temp h: f32  h = exp(t)  for m in [0, M) { w[n, m] = h } }"},
      // Changed by an index.
      {"temp d: i64  d = 1  for n in [0, N) { y[n] = exp(c[d[] | 0.0])  d = 2 }", ""},
      {"temp d: i64  d = 1  for n in [0, N) { y[n] = exp(c[0 | 0.0 if d[] < 2])  d = 2 }", ""},
      {"temp d: i64  d = 1  for n in [0, N) { y[n] = exp(f32(index(d[])))  d = 2 }", ""},
  };
  ExpectPass(HoistInvariants, kFrame, kCases);
}

// Before the loop, also where it runs no iteration.
TEST(Hoist, OnlyWhatHasAValue) {
  constexpr PassCase kCases[] = {
      // Loads that are certainly in range, or masked.
      {"for n in [0, N) { y[n] = exp(c[2]) }",
       "temp h: f32  h = exp(c[2])  for n in [0, N) { y[n] = h }"},
      {"for n in [0, N) { y[n] = exp(x[0]) }", ""},
      {"for n in [0, N) { y[n] = exp(x[N - 1]) }", ""},
      {"for n in [0, N) { y[n] = exp(x[0 | 0.5]) }",
       "temp h: f32  h = exp(x[0 | 0.5])  for n in [0, N) { y[n] = h }"},
      {"for n in [0, N) { y[n] = exp(x[i[] | 0.5]) }",
       "temp h: f32  h = exp(x[i[] | 0.5])  for n in [0, N) { y[n] = h }"},
      {"for n in [0, N) { y[n] = exp(c[$k]) }", ""},
      {"for n in [0, N) { for m in [0, M) { w[n, m] = exp(x[n]) } }",
       "for n in [0, N) { temp h: f32  h = exp(x[n])  for m in [0, M) { w[n, m] = h } }"},
      {"for n in [0, N) { for m in [0, M) { w[n, m] = exp(x[n - 1]) } }", ""},
      // A store's conditions are those of the loop.
      {"for n in [0, N) { drop y[n] if 0 < $k, $k < 3 = exp(c[$k]) }", ""},
      // Index values without a division by a number that may be zero.
      {"for n in [0, N) { y[n] = f32(index(N)) * x[n] }",
       "temp h: f32  h = f32(index(N))  for n in [0, N) { y[n] = h * x[n] }"},
      {"for n in [0, N) { y[n] = f32(index(7/$k)) * x[n] }", ""},
      {"for n in [0, N) { y[n] = f32(index(N/4)) * x[n] }",
       "temp h: f32  h = f32(index(N/4))  for n in [0, N) { y[n] = h * x[n] }"},
  };
  ExpectPass(HoistInvariants, kFrame, kCases);
}

// A loop that runs no iteration reads nothing, so the tensors in it need not have been written.
TEST(Hoist, WhatMayBeUnwrittenStays) {
  constexpr PassCase kCases[] = {
      {"temp t: f32  for m in [0, N) { t = x[m] }  for n in [0, N) { y[n] = exp(t) }", ""},
      {"temp t: f32[3]  for m in [0, N) { drop t[m] = x[m] }  for n in [0, N) { drop y[n] if 2 < n = exp(t[2]) * x[n] }",
       ""},
  };
  ExpectPass(HoistInvariants, kFrame, kCases);
}

// Beside f32, a comparison of indices would leave half of the lanes; comparisons in 32 bits do not,
// nor do those of the outermost loop.
TEST(Hoist, FromWide) {
  constexpr PassCase kCases[] = {
      {"for n in [0, N) { for m in [0, M) { w[n, m] = where(index(n) == 0, exp(v), x2[n, m]) } }",
       "for n in [0, N) { temp h: bool  h = index(n) == 0  for m in [0, M) { w[n, m] = where(h, exp(v), x2[n, m]) } }"},
      {"for n in [0, N) { for m in [0, M) { w[n, m] = where(x[n] == 0.0, v, x2[n, m]) } }", ""},
      {"for n in [0, N) { for m in [0, M) { w[n, m] = where(index(m) == 0, v, x2[n, m]) } }", ""},
      {"for n in [0, N) { y[n] = where(index($k) == 0, v, x[n]) }", ""},
      {"for n in [0, N) { for m in [0, M) { w[n, m] = x2[n, m] - f32(index($k)) } }",
       "for n in [0, N) { temp h: f32  h = f32(index($k))  for m in [0, M) { w[n, m] = x2[n, m] - h } }"},
      {"for n in [0, N) { for m in [0, M) { w[n, m] = x2[n, m] - f32(index(m)) } }", ""},
      // Not out of the inner loop of a perfect nest, unless it is the innermost.
      {"for n in [0, N) { for m in [0, M) { for k in [0, M) { w[n, m] += x2[n, k] - f32(index($k)) } } }",
       "for n in [0, N) { for m in [0, M) { temp h: f32  h = f32(index($k))  for k in [0, M) { w[n, m] += x2[n, k] - h } } }"},
      {"for n in [0, N) { for m in [0, M) { w[n, m] = f32(f64(v) + f64(x2[n, m])) } }", ""},
  };
  ExpectPass(HoistFromWide, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
