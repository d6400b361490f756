// Recurrences before and after their steps moved inside, and their last step into a register.
#include "jit/schedule/steps.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[C], m: f32[N, C], a: f32[C, N], ids: i64[C]) -> "
    "(y: f32[C], v: f32[N, C], w: f32[C, N], q: f32[N, N, C], h: f16[C], i: i64[C]) {\n",
    "\n  drop y[0] = 0.0  drop v[0, 0] = 0.0  drop w[0, 0] = 0.0  drop q[0, 0, 0] = 0.0  drop h[0] = f16(0.0)  "
    "drop i[0] = 0\n}\n"};

TEST(MoveStepsInside, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for t in [1, C) { for n in [0, N) { v[n, t] = v[n, t - 1] + m[n, t] } }",
       "for n in [0, N) { for t in [1, C) { v[n, t] = v[n, t - 1] + m[n, t] } }"},
      // From the last step down.
      {"for t in [0, C) { for n in [0, N) { v[n, C - 1 - t] = v[n, C - t | 0.0] + m[n, C - 1 - t] } }",
       "for n in [0, N) { for t in [0, C) { v[n, -t + C - 1] = v[n, -t + C | 0.0] + m[n, -t + C - 1] } }"},
      // Through all rows.
      {"for t in [1, C) { for k in [0, N) { for n in [0, N) { q[k, n, t] = q[k, n, t - 1] + m[n, t] } } }",
       "for k in [0, N) { for n in [0, N) { for t in [1, C) { q[k, n, t] = q[k, n, t - 1] + m[n, t] } } }"},
      // The rows lie along memory.
      {"for t in [1, C) { for n in [0, N) { w[t, n] = w[t - 1, n] + a[t, n] } }", ""},
      // One row reads what another wrote.
      {"for t in [1, C) { for n in [0, N) { v[n, t] = v[N - 1 - n, t - 1] + m[n, t] } }", ""},
      {"for t in [1, C) { for n in [0, N) { v[n, t] = v[0, t - 1] + m[n, t] } }", ""},
      // There is nothing but the rows, and they do not depend on the step.
      {"for t in [1, C) { y[t] = 0.0  for n in [0, N) { v[n, t] = v[n, t - 1] + m[n, t] } }", ""},
      {"for t in [1, C) { for n in [0, min(N, t)) { v[n, t] = v[n, t - 1] + m[n, t] } }", ""},
      // No step reads another; a sum is no step.
      {"for t in [0, C) { for n in [0, N) { v[n, 0] += m[n, t] } }", ""},
      {"for t in [1, C) { for n in [0, N) { v[n, t] = m[n, t] } }", ""},
  };
  ExpectPass(MoveStepsInside, kFrame, kCases);
}

TEST(KeepLastStep, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for t in [1, C) { y[t] = y[t - 1] + x[t] }",
       R"(
         temp last: f32
         last = y[0 | 0.0 if 1 < C]
         for t in [1, C) {
           temp now: f32
           now = last + x[t]
           y[t] = now
           last = now
         }
      )"},
      // From the last step down; twice in one statement, and in another.
      {"for t in [1, C) { h[C - 1 - t] = h[C - t] * h[C - t]  y[t] = f32(h[C - t]) }",
       R"(
         temp last: f16
         last = h[C - 1 | f16(0.0) if 1 < C]
         for t in [1, C) {
           temp now: f16
           now = last * last
           h[-t + C - 1] = now
           y[t] = f32(last)
           last = now
         }
      )"},
      // The element that is read may not be the one that the step before wrote.
      {"for t in [2, C) { y[t] = y[t - 2] + x[t] }", ""},
      {"for t in [2, C) { y[t] = y[t - 1] + y[t - 2] }", ""},
      {"for t in [0, C) { y[t] = y[t - 1 | 1.0] + x[t] }", ""},
      {"for t in [1, C) { y[t] = y[t - 1 | 1.0 if t < 5] + x[t] }", ""},
      {"for t in [1, C) { drop y[ids[t]] = y[ids[t - 1] | 0.0] + x[t] }", ""},
      {"for t in [1, C) { i[t] = ids[i[t - 1] | 0] }", ""},
      {"for t in [1, C) { y[t] = y[t - 1]  y[t] = x[t] }", ""},
      {"for t in [1, C) step 2 { y[t] = y[t - 1] + x[t] }", ""},
      {"for t in [0, C) { y[t] = y[t] + x[t] }", ""},
  };
  ExpectPass(KeepLastStep, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
