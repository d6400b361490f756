// Temporaries that are read in another type, and those that stay.
#include "fusion/narrow_temporaries.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(n: i64[N], x: f32[N], d: f64[N]) -> (y: f32[N], z: f32[N]) {\n",
    "\n  drop y[0] = 0.0 drop z[0] = 0.0\n}\n"};

TEST(NarrowTemporaries, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"temp t: i64[N] for i in [0, N) { t[i] = n[i] } for j in [0, N) { y[j] = f32(t[j]) * x[j] }",
       "temp t: f32[N] for i in [0, N) { t[i] = f32(n[i]) } for j in [0, N) { y[j] = t[j] * x[j] }"},
      // All stores, and all reads, wherever they are.
      {"temp t: f64[N] for i in [0, N) { t[i] = d[i] drop t[i] = f64(0.5) }"
       " for j in [0, N) { y[j] = f32(t[j]) z[j] = f32(t[N - 1 - j]) + f32(t[j]) }",
       "temp t: f32[N] for i in [0, N) { t[i] = f32(d[i]) drop t[i] = f32(f64(0.5)) }"
       " for j in [0, N) { y[j] = t[j] z[j] = t[N - 1 - j] + t[j] }"},
      // A second cast stays.
      {"temp t: i64[N] for i in [0, N) { t[i] = n[i] } for j in [0, N) { y[j] = f32(i32(f32(t[j]))) }",
       "temp t: f32[N] for i in [0, N) { t[i] = f32(n[i]) } for j in [0, N) { y[j] = f32(i32(t[j])) }"},
      // A scalar in a loop.
      {"for i in [0, N) { temp t: i64 t = n[i] y[i] = f32(t) }",
       "for i in [0, N) { temp t: f32 t = f32(n[i]) y[i] = t }"},
      // Not where it is read otherwise: as it is, in another type, with a fill, or as a subscript.
      {"temp t: f64[N] for i in [0, N) { t[i] = d[i] } for j in [0, N) { y[j] = f32(t[j]) z[j] = f32(t[j] * t[j]) }",
       ""},
      {"temp t: i64[N] for i in [0, N) { t[i] = n[i] } for j in [0, N) { y[j] = f32(t[j]) * f32(i32(t[j])) }",
       ""},
      {"temp t: i64[N] for i in [0, N) { t[i] = n[i] } for j in [0, N) { y[j] = f32(t[j - 1 | 7]) }",
       ""},
      {"temp t: i64[N] for i in [0, N) { t[i] = n[i] } for j in [0, N) { y[j] = f32(t[j]) z[j] = x[t[j] | 0.0] }",
       ""},
      // Nor to a type that is not narrower, nor sums.
      {"temp t: f32[N] for i in [0, N) { t[i] = x[i] } for j in [0, N) { y[j] = f32(i32(t[j])) }",
       ""},
      {"for i in [0, N) { acc t: i64 = sum for j in [0, N) { t += n[j] } y[i] = f32(t) }", ""},
      {"temp t: i64[N] for i in [0, N) { t[i] = n[i] }", ""},
  };
  ExpectPass(NarrowTemporaries, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
