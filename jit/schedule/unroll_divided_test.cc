// Loops with a divided index before and after they are unrolled, and those that stay.
#include "jit/schedule/unroll_divided.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, 9], s: f32[N]; $k: i64 = 1) -> (y: f32[N], z: f32[N]) {\n",
    "\n  drop y[0] = 0.0 drop z[0] = 0.0\n}\n"};

TEST(UnrollDivided, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { y[i] = x[i/2, i%2] }",
       "for i_2 in [0, N/2) { y[2*i_2] = x[i_2, 0] y[2*i_2 + 1] = x[i_2, 1] } for i in [N/2*2, N) { y[i] = x[i/2, i%2] }"},
      {"for i in [0, 3*(N/3)) { y[i] = s[i/3] }",
       "for i_2 in [0, N/3) { y[3*i_2] = s[i_2] y[3*i_2 + 1] = s[i_2] y[3*i_2 + 2] = s[i_2] }"},
      // The end may be negative.
      {"for i in [0, N - 1) { y[i] = s[i/2] }",
       "for i_2 in [0, (N - 1)/2) { y[2*i_2] = s[i_2] y[2*i_2 + 1] = s[i_2] }"
       " for i in [max(2*((N - 1)/2), 0), N - 1) { y[i] = s[i/2] }"},
      // Each step has scalars of its own. The loop inside alone, from a multiple on.
      {"for j in [0, N/2) { for i in [4, N) { temp t: f32 t = s[j/2] * x[i/2, 0] y[i] = t + t z[i] = t } }",
       "for j in [0, N/2) { for i_2 in [2, N/2) {"
       " temp t_2: f32 t_2 = s[j/2] * x[i_2, 0] y[2*i_2] = t_2 + t_2 z[2*i_2] = t_2"
       " temp t_3: f32 t_3 = s[j/2] * x[i_2, 0] y[2*i_2 + 1] = t_3 + t_3 z[2*i_2 + 1] = t_3 }"
       " for i in [max(2*(N/2), 4), N) { temp t: f32 t = s[j/2] * x[i/2, 0] y[i] = t + t z[i] = t } }"},
      // Not by other numbers, by two of them, or of sums of indices.
      {"for i in [0, N) { y[i] = s[i/9] }", ""},
      {"for i in [0, N) { drop y[i] = s[i/$k | 0.0] }", ""},
      {"for i in [0, N) { y[i] = s[i/2] + s[i/3] }", ""},
      {"for i in [0, N - 1) { y[i] = s[(i + 1)/2] }", ""},
      {"for i in [1, N) { y[i] = s[i/2] }", ""},
      // Nor where a scalar is used in another way, or an element is stored and read.
      {"temp t: f32 for i in [0, N) { t = s[i/2] y[i] = t }", ""},
      {"temp t: f32[N] for i in [0, N) { t[i] = s[i/2] y[i] = t[i] }", ""},
      {"for i in [0, N) { temp t: f32[2] t[0] = s[i/2] y[i] = t[0] }", ""},
      {"for i in [0, N) { temp t: f32 t = s[i/2] y[i] = t[ | 0.0 if i%2 == 0] }", ""},
      {"for i in [0, N) { temp t: i64 t = i64(s[i/2]) y[i] = s[t[] | 0.0] }", ""},
      {"for i in [0, N) { temp t: f32 t = s[i/2] y[i] = t t = s[i] z[i] = t }", ""},
      // Nor with sums, loops or much work inside.
      {"for i in [0, N) { acc a: f32 = sum for j in [0, N) { a += s[i/2] * s[j] } y[i] = a }", ""},
      {"for i in [0, N) { acc a: f32 = sum a += s[i/2] y[i] = a }", ""},
      {"for i in [0, N) { y[i] = exp(exp(s[i/2])) }", ""},
  };
  ExpectPass(UnrollDivided, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
