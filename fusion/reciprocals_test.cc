// Quotients before and after; where a result decides a discrete step, such as a rounding, the
// quotient stays.
#include "fusion/reciprocals.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], v: f32, d: f64[N], h: bf16[N], g: bf16, ids: i64[N], b: bool[N]) -> "
    "(y: f32[N], z: f32[N], k: i64[N], e: f64[N], l: bf16[N]) {\n",
    "\n  drop y[0] = 0.0  drop z[0] = 0.0  drop k[0] = 0  drop e[0] = f64(0.0)  "
    "drop l[0] = bf16(0.0)\n}\n"};

TEST(Reciprocals, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for n in [0, N) { y[n] = x[n] / v }", "for n in [0, N) { y[n] = x[n] * recip(v) }"},
      {"for n in [0, N) { e[n] = d[n] / f64(v) }",
       "for n in [0, N) { e[n] = d[n] * recip(f64(v)) }"},
      {"for n in [0, N) { y[n] = x[n] / v / (v + 1.0) }",
       "for n in [0, N) { y[n] = x[n] * recip(v) * recip(v + 1.0) }"},
      {"for n in [0, N) { y[n] = exp(x[n] / v) + z[n] }",
       "for n in [0, N) { y[n] = exp(x[n] * recip(v)) + z[n] }"},
      // A divisor that the innermost loop changes, a dividend that it does not, no loop,
      // 16-bit floats.
      {"for n in [0, N) { y[n] = v / x[n] }", ""},
      {"for n in [0, N) { y[n] = v / (v + 1.0) }", ""},
      {"for n in [0, N) { for m in [0, N) { y[n] = x[m] / x[n] } }",
       "for n in [0, N) { for m in [0, N) { y[n] = x[m] * recip(x[n]) } }"},
      {"for n in [0, N) { for m in [0, N) { y[n] = x[n] / x[m] } }", ""},
      {"drop y[0] = x[0] / v", ""},
      {"for n in [0, N) { l[n] = h[n] / g }", ""},
  };
  ExpectPass(UseReciprocals, kFrame, kCases);
}

// Ops that turn a change of the last bit into a jump.
TEST(Reciprocals, ADiscreteStepKeepsTheQuotient) {
  constexpr PassCase kCases[] = {
      {"for n in [0, N) { y[n] = floor(x[n] / v) }", ""},
      {"for n in [0, N) { y[n] = ceil(x[n] / v) }", ""},
      {"for n in [0, N) { y[n] = round(x[n] / v) }", ""},
      {"for n in [0, N) { y[n] = sign(x[n] / v) }", ""},
      {"for n in [0, N) { k[n] = i64(x[n] / v) }", ""},
      {"for n in [0, N) { k[n] = i64(bool(x[n] / v)) }", ""},
      {"for n in [0, N) { k[n] = i64(bits(x[n] / v)) }", ""},
      {"for n in [0, N) { y[n] = where(x[n] / v < 1.0, 2.0, 3.0) }", ""},
      {"for n in [0, N) { y[n] = where(1.0 == x[n] / v, 2.0, 3.0) }", ""},
      {"for n in [0, N) { acc a: f32 = argmax  a argmax= (x[n] / v, index(n))  k[n] = a }", ""},
      {"for n in [0, N) { acc a: f32 = argmin  a argmin= (x[n], index(n) + i64(x[n] / v))  k[n] = a }",
       ""},
      // A composed row as its body does: not a transcendental, whatever its body holds.
      {"for n in [0, N) { y[n] = floordiv(x[n] / v, z[n]) }", ""},
      {"for n in [0, N) { y[n] = mod(z[n], x[n] / v) }", ""},
      {"for n in [0, N) { y[n] = mulz(z[n], x[n] / v) }", ""},
      {"for n in [0, N) { y[n] = gelu(x[n] / v) }",
       "for n in [0, N) { y[n] = gelu(x[n] * recip(v)) }"},
      {"for n in [0, N) { y[n] = silu(x[n] / v) }",
       "for n in [0, N) { y[n] = silu(x[n] * recip(v)) }"},
      {"for n in [0, N) { y[n] = pow(x[n] / v, z[n]) }",
       "for n in [0, N) { y[n] = pow(x[n] * recip(v), z[n]) }"},
      // Continuous ops, and a value that is chosen, are no steps.
      {"for n in [0, N) { y[n] = max(relu(x[n] / v), abs(z[n])) }",
       "for n in [0, N) { y[n] = max(relu(x[n] * recip(v)), abs(z[n])) }"},
      {"for n in [0, N) { y[n] = where(b[n], x[n] / v, z[n]) }",
       "for n in [0, N) { y[n] = where(b[n], x[n] * recip(v), z[n]) }"},
      {"for n in [0, N) { e[n] = f64(x[n] / v) }",
       "for n in [0, N) { e[n] = f64(x[n] * recip(v)) }"},
      {"for n in [0, N) { l[n] = bf16(x[n] / v) }",
       "for n in [0, N) { l[n] = bf16(x[n] * recip(v)) }"},
      {"for n in [0, N) { y[n] = x[n] / v + floor(x[n]) }",
       "for n in [0, N) { y[n] = x[n] * recip(v) + floor(x[n]) }"},
  };
  ExpectPass(UseReciprocals, kFrame, kCases);
}

// Through whatever lies between: rows, tensors, reductions, other loops.
TEST(Reciprocals, AStepIsFoundWhereverTheValueGoes) {
  constexpr PassCase kCases[] = {
      {"for n in [0, N) { y[n] = floor(exp(-(x[n] / v)) + 1.0) }", ""},
      {"for n in [0, N) { y[n] = floor(where(b[n], x[n] / v, 1.0)) }", ""},
      {"for n in [0, N) { y[n] = floor(f32(f64(x[n] / v))) }", ""},
      {"for n in [0, N) { y[n] = floor(x[n] / v / (v + 1.0)) }", ""},
      {"temp t: f32[N]  for n in [0, N) { t[n] = x[n] / v }  for n in [0, N) { y[n] = floor(t[n]) }",
       ""},
      {"temp t: f32[N]  temp u: f32[N]  for n in [0, N) { t[n] = x[n] / v }  for n in [0, N) { u[n] = t[n] + 1.0 }  "
       "for n in [0, N) { k[n] = i64(u[n] * 2.0) }",
       ""},
      {"acc s: f32 = sum  for n in [0, N) { s += x[n] / v }  for n in [0, N) { y[n] = round(s) }",
       ""},
      {"acc s: f32 = max  for n in [0, N) { s max= x[n] / v }  for n in [0, N) { y[n] = where(x[n] == s, 1.0, 0.0) }",
       ""},
      // Around a loop: a value that is written after the read, in the iteration before.
      {"temp t: f32  t = 0.0  for n in [0, N) { y[n] = floor(t)  t = x[n] / v }", ""},
      // An output that is read again; one that is not.
      {"for n in [0, N) { y[n] = x[n] / v }  for n in [0, N) { z[n] = floor(y[n]) }", ""},
      {"for n in [0, N) { y[n] = x[n] / v }  for n in [0, N) { z[n] = y[n] }",
       "for n in [0, N) { y[n] = x[n] * recip(v) }  for n in [0, N) { z[n] = y[n] }"},
      // An index loaded from a tensor of quotients cast to integers; the element that it names is
      // no step.
      {"temp j: i64[N]  for n in [0, N) { j[n] = i64(x[n] / v) }  for n in [0, N) { y[n] = x[j[n] | 0.0] / v }",
       "temp j: i64[N]  for n in [0, N) { j[n] = i64(x[n] / v) }  for n in [0, N) { y[n] = x[j[n] | 0.0] * recip(v) }"},
      // The divisor decides as well, and so does a quotient inside it; others in the
      // program do not.
      {"for n in [0, N) { y[n] = floor(x[n] / (v / 3.0))  z[n] = x[n] / v }",
       "for n in [0, N) { y[n] = floor(x[n] / (v / 3.0))  z[n] = x[n] * recip(v) }"},
  };
  ExpectPass(UseReciprocals, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
