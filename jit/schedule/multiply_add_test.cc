// Values before and after each of the three passes.
#include "jit/schedule/multiply_add.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], z: f32[N], d: f64[N], h: f16[N], c: i64[N]; $a: f32) -> "
    "(y: f32[N], e: f64[N], q: f16[N], k: i64[N]) {\n",
    "\n  drop y[0] = 0.0  drop e[0] = f64(0.0)  drop q[0] = f16(0.0)  drop k[0] = 0\n}\n"};

TEST(MultiplyAdd, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { y[i] = x[i] * z[i] + 1.0 }",
       "for i in [0, N) { y[i] = fma(x[i], z[i], 1.0) }"},
      {"for i in [0, N) { y[i] = 1.0 + x[i] * $a }",
       "for i in [0, N) { y[i] = fma(x[i], $a, 1.0) }"},
      {"for i in [0, N) { e[i] = d[i] * d[i] + d[i] }",
       "for i in [0, N) { e[i] = fma(d[i], d[i], d[i]) }"},
      // The second of two products; the first is still rounded.
      {"for i in [0, N) { y[i] = x[i] * 2.0 + z[i] * 3.0 }",
       "for i in [0, N) { y[i] = fma(z[i], 3.0, x[i] * 2.0) }"},
      // Bottom-up, in sums of sums, below other functions and for masked places, too.
      {"for i in [0, N) { y[i] = x[i] * 2.0 + (z[i] * 3.0 + (x[i] * 5.0 + 1.0)) }",
       "for i in [0, N) { y[i] = fma(x[i], 2.0, fma(z[i], 3.0, fma(x[i], 5.0, 1.0))) }"},
      {"for i in [0, N) { y[i] = exp(max(x[i] * 2.0 + 1.0, 0.0)) }",
       "for i in [0, N) { y[i] = exp(max(fma(x[i], 2.0, 1.0), 0.0)) }"},
      {"for i in [0, N) { y[i] = (x[i] * 2.0 + 1.0) * (z[i] * 3.0 + 1.0) + 1.0 }",
       "for i in [0, N) { y[i] = fma(fma(x[i], 2.0, 1.0), fma(z[i], 3.0, 1.0), 1.0) }"},
      {"for i in [0, N) { drop y[i + 1] = x[i - 1 | 0.0] * 2.0 + z[i] }",
       "for i in [0, N) { drop y[i + 1] = fma(x[i - 1 | 0.0], 2.0, z[i]) }"},
      {"acc s: f32 = sum  for i in [0, N) { s += x[i] * z[i] + 1.0 }  y[0] = s",
       "acc s: f32 = sum  for i in [0, N) { s += fma(x[i], z[i], 1.0) }  y[0] = s"},
      // The step of a gated sum in a register tile, and no other.
      {"temp t: f32[2] register  for r in [0, 2) unroll { t[r] = 0.0 } "
       "for i in [0, N) { for r in [0, 2) unroll { t[r] = t[r] + mulz(x[i], z[i]) } }  drop y[0] = t[0]",
       "temp t: f32[2] register  for r in [0, 2) unroll { t[r] = 0.0 } "
       "for i in [0, N) { for r in [0, 2) unroll { t[r] = fma(where(x[i] == 0.0 || z[i] == 0.0, 0.0, x[i]), "
       "where(x[i] == 0.0 || z[i] == 0.0, 0.0, z[i]), t[r]) } }  drop y[0] = t[0]"},
      {"for i in [0, N) { y[i] = x[i] + mulz(x[i], z[i]) }", ""},
      // The product of an accumulation is not a sum's.
      {"acc s: f32 = sum  for i in [0, N) { s += x[i] * z[i] }  y[0] = s", ""},
      {"for i in [0, N) { q[i] = h[i] * h[i] + h[i] }",
       "for i in [0, N) { q[i] = fma(h[i], h[i], h[i]) }"},
      // Not what two loops round alike, so that it can be equal to its maximum; but a sum of it.
      {"acc m: f32 = max  for i in [0, N) { m max= x[i] * z[i] + 1.0 } "
       "for i in [0, N) { y[i] = f32(x[i] * z[i] + 1.0 == m) }",
       ""},
      {"temp s: f32[N]  for i in [0, N) { s[i] = x[i] * z[i] + 1.0 } "
       "for i in [0, N) { y[i] = f32(s[i] == $a) }",
       ""},
      {"acc s: f32 = sum  for i in [0, N) { s += x[i] * z[i] + 1.0 }  drop y[0] = f32(s == $a)",
       "acc s: f32 = sum  for i in [0, N) { s += fma(x[i], z[i], 1.0) }  drop y[0] = f32(s == $a)"},
      {"for i in [0, N) { y[i] = x[i] * where(z[i] == 0.0, x[i], z[i]) + 1.0 }",
       "for i in [0, N) { y[i] = fma(x[i], where(z[i] == 0.0, x[i], z[i]), 1.0) }"},
      // Not for integers.
      {"for i in [0, N) { k[i] = c[i] * c[i] + c[i] }", ""},
      // Not for differences, squares, or products that another operation uses.
      {"for i in [0, N) { y[i] = x[i] * z[i] - 1.0 }", ""},
      {"for i in [0, N) { y[i] = square(x[i]) + 1.0 }", ""},
      {"for i in [0, N) { y[i] = f32(d[i] * d[i]) + 1.0 }", ""},
      {"for i in [0, N) { temp t: f32  t = x[i] * z[i]  y[i] = t + 1.0 }", ""},
      {"for i in [0, N) { y[i] = fma(x[i], z[i], 1.0) }", ""},
  };
  ExpectPass(FuseMultiplyAdd, kFrame, kCases);
}

TEST(AddOntoDotProducts, TextInTextOut) {
  constexpr Frame kWords = {"program p(a: i32[N], b: i32[N]) -> (y: i32[N]) {\n",
                            "\n  drop y[0] = i32(0)\n}\n"};
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { y[i] = a[i] + dot_halves(a[i], b[i], i32(0)) }",
       "for i in [0, N) { y[i] = dot_halves(a[i], b[i], a[i]) }"},
      {"for i in [0, N) { y[i] = dot_halves(a[i], b[i], i32(0)) + b[i] }",
       "for i in [0, N) { y[i] = dot_halves(a[i], b[i], b[i]) }"},
      // Not where something is added already, or nothing is.
      {"for i in [0, N) { y[i] = a[i] + dot_halves(a[i], b[i], i32(1)) }", ""},
      {"for i in [0, N) { y[i] = a[i] - dot_halves(a[i], b[i], i32(0)) }", ""},
  };
  ExpectPass(AddOntoDotProducts, kWords, kCases);
}

TEST(WidenProducts, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"acc s: f32 = sum  for i in [0, N) { s += f32(h[i] * h[i + 1 | 0.0]) }  y[0] = s",
       "acc s: f32 = sum  for i in [0, N) { s += f32(h[i]) * f32(h[i + 1 | 0.0]) }  y[0] = s"},
      {"acc s: f64 = sum  for i in [0, N) { s += f64(x[i] * z[i]) }  e[0] = s",
       "acc s: f64 = sum  for i in [0, N) { s += f64(x[i]) * f64(z[i]) }  e[0] = s"},
      // Beside others, on either side, below other functions.
      {"for i in [0, N) { y[i] = exp(x[i] - f32(h[i] * h[i])) }",
       "for i in [0, N) { y[i] = exp(x[i] - f32(h[i]) * f32(h[i])) }"},
      {"for i in [0, N) { y[i] = f32(h[i] * h[i]) + 1.0 }",
       "for i in [0, N) { y[i] = f32(h[i]) * f32(h[i]) + 1.0 }"},
      // Through negations and choices.
      {"acc s: f32 = sum  for i in [0, N) { s += f32(where(h[i] < h[0], -(h[i] * h[i]), h[i])) }  y[0] = s",
       "acc s: f32 = sum  for i in [0, N) { s += where(h[i] < h[0], -(f32(h[i]) * f32(h[i])), f32(h[i])) }  y[0] = s"},
      {"acc s: f32 = sum  for i in [0, N) { s += f32(-h[i]) }  y[0] = s", ""},
      // Values that are not added, or are no products.
      {"for i in [0, N) { y[i] = f32(h[i] * h[i]) }", ""},
      {"for i in [0, N) { y[i] = f32(h[i] * h[i]) * x[i] }", ""},
      {"acc s: f32 = max  for i in [0, N) { s max= f32(h[i] * h[i]) }  y[0] = s", ""},
      {"acc s: f32 = sum  for i in [0, N) { s += f32(h[i] + h[i]) }  y[0] = s", ""},
      // f32 does not hold a product of f64, nor f16 one of f16.
      {"for i in [0, N) { y[i] = f32(d[i] * d[i]) + 1.0 }", ""},
      {"for i in [0, N) { q[i] = h[i] * h[i] + h[i] }", ""},
  };
  ExpectPass(WidenProducts, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
