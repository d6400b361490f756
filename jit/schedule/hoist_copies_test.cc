#include "jit/schedule/hoist_copies.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

constexpr fusion::Frame kFrame = {
    "program p(x: f32[N, K], w: f32[K]) -> (y: f32[N, K], one: f32[1]) {\n",
    "\n  block { drop one[0] = 0.0 }\n}\n"};
#define NEST(outside, inside) \
  "block { " outside "for n in [0, N) { " inside " for j in [0, K) { y[n, j] = x[n, j] * t[j] } } }"

TEST(HoistCopies, TextInTextOut) {
  fusion::ExpectPass(HoistCopies, kFrame, {
      {NEST("", "temp t: f32[K] for k in [0, K) { t[k] = w[-k + K - 1] }"),
       NEST("temp t: f32[K] for k in [0, K) { t[k] = w[-k + K - 1] } ", "")},
      // Filled by two loops, from within another.
      {"block { for n in [0, N) { for m in [0, 1) { temp t: f32[K] for k in [0, K) { t[k] = 0.0 }"
       " for i in [0, 1) { t[i] = w[i] } for j in [0, K) { y[n, j] = x[n, j] * t[j] } } } }",
       "block { temp t: f32[K] for k in [0, K) { t[k] = 0.0 } for i in [0, 1) { t[i] = w[i] }"
       " for n in [0, N) { for m in [0, 1) { for j in [0, K) { y[n, j] = x[n, j] * t[j] } } } }"},
      // Not what is another in each iteration.
      {NEST("", "temp t: f32[K] for k in [0, K) { t[k] = x[n, k] }"), ""},
      {NEST("", "temp t: f32[K] for k in [0, n) { t[k] = w[k] }"), ""},
      {NEST("", "temp t: f32[K + n] for k in [0, K) { t[k] = w[k] }"), ""},
      // Not what something else changes.
      {NEST("", "temp t: f32[K] for k in [0, K) { t[k] = w[k] } t[0] = x[n, 0]"), ""},
      {NEST("", "temp t: f32[K] for k in [0, K) { t[k] = w[k] y[n, k] = 0.0 }"), ""},
      {NEST("", "temp t: f32[K] for k in [0, K) { t[k] = y[0, k] }"), ""},
      // Nor what is filled from what the nest declares.
      {"block { for n in [0, N) { temp u: f32[K] for i in [0, K) { u[i] = x[n, i] } temp t: f32[K]"
       " for k in [0, K) { t[k] = u[k] } for j in [0, K) { y[n, j] = x[n, j] * t[j] } } }",
       ""},
  });
}

}  // namespace
}  // namespace nestor::jit
