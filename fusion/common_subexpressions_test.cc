// Programs before and after the pass, and programs that it must not change: where a tensor changes
// between two equal expressions, they are not equal.
#include "fusion/common_subexpressions.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], ids: i64[N]; $f: f32 = 1.0) -> (y: f32[N], z: f32[N], g: bf16[N], d: i64[N], q: f32) {\n",
    "\n  drop y[0] = 0.0  drop z[0] = 0.0  drop g[0] = bf16(0.0)"
    "\n  drop d[0] = 0  q = 0.0\n}\n"};

TEST(CommonSubexpressions, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // In two statements; a value that was stored is known.
      {"for i in [0, N) { y[i] = exp(x[i])  z[i] = exp(x[i]) + y[i] }",
       "for i in [0, N) { temp s: f32  s = exp(x[i])  y[i] = s  z[i] = s + s }"},
      {"for i in [0, N) { y[i] = exp(x[i]) + 1.0  z[i] = y[i] * 2.0 }",
       "for i in [0, N) { temp s: f32  s = exp(x[i]) + 1.0  y[i] = s  z[i] = s * 2.0 }"},
      // In one statement: the largest, and parts of it only if others use them, too.
      {"for i in [0, N) { y[i] = exp(x[i]) * (exp(x[i]) + 1.0) }",
       "for i in [0, N) { temp s: f32  s = exp(x[i])  y[i] = s * (s + 1.0) }"},
      {"for i in [0, N) { y[i] = exp(x[i] + 1.0)  z[i] = exp(x[i] + 1.0) }",
       "for i in [0, N) { temp s: f32  s = exp(x[i] + 1.0)  y[i] = s  z[i] = s }"},
      {"for i in [0, N) { y[i] = exp(x[i] + 1.0)  z[i] = exp(x[i] + 1.0) * (x[i] + 1.0) }",
       "for i in [0, N) { temp s: f32  s = x[i] + 1.0  temp s_2: f32  s_2 = exp(s)  y[i] = s_2  z[i] = s_2 * s }"},
      // A scalar that holds it already.
      {"for i in [0, N) { temp t: f32  t = exp(x[i])  y[i] = t  z[i] = exp(x[i]) }",
       "for i in [0, N) { temp t: f32  t = exp(x[i])  y[i] = t  z[i] = t }"},
      {"for i in [0, N) { temp t: f32  t = exp(x[i])  y[i] = t * t }", ""},
      // Accumulated, and the positions of pairs.
      {"acc a: f32 = sum  acc m: f32 = max  a += exp(x[0])  m max= exp(x[0])  q = a + m",
       "temp s: f32  s = exp(x[0])  acc a: f32 = sum  a += s  acc m: f32 = max  m max= s  q = a + m"},
      {"acc b: f32 = argmax  for i in [0, N) { b argmax= (x[i] * 2.0, ids[i] + 1)  d[i] = ids[i] + 1 }",
       "acc b: f32 = argmax  for i in [0, N) { temp s: i64  s = ids[i] + 1  b argmax= (x[i] * 2.0, s)  d[i] = s }"},
      // At the top.
      {"drop q = 1.0  q = exp($f) * exp($f)", "drop q = 1.0  temp s: f32  s = exp($f)  q = s * s"},
      {"q = exp($f)  q = exp($f) + q", "temp s: f32  s = exp($f)  q = s  q = s + s"},
      // A value of a narrow type is as narrow in the temporary.
      {"for i in [0, N) { g[i] = bf16(x[i])  y[i] = f32(g[i]) }",
       "for i in [0, N) { temp s: bf16  s = bf16(x[i])  g[i] = s  y[i] = f32(s) }"},
      // Not: reads, constants, indices alone; values that only look alike.
      {"for i in [0, N) { y[i] = x[i]  z[i] = x[i] }", ""},
      {"for i in [0, N) { y[i] = x[i] + 0.0  z[i] = x[i] + -0.0 }", ""},
      {"for i in [0, N) { y[i] = x[i] - 1.0  z[i] = 1.0 - x[i] }", ""},
      {"for i in [0, N) { y[i] = exp(x[i | 0.0])  z[i] = exp(x[i | 1.0]) }", ""},
      {"for i in [0, N) { y[i] = exp(x[i | 0.0 if i < 3])  z[i] = exp(x[i | 0.0 if i < 4]) }", ""},
      {"for i in [0, N) { d[i] = i64(x[i])  y[i] = f32(i32(x[i])) }", ""},
  };
  ExpectPass(EliminateCommonSubexpressions, kFrame, kCases);
}

TEST(CommonSubexpressions, ChangesInBetween) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { z[i] = exp(y[i])  y[i] = 1.0  q = exp(y[i]) }", ""},
      {"for i in [0, N) { z[i] = exp(y[i])  y[i] += 1.0  q = exp(y[i]) }", ""},
      {"for i in [0, N) { z[i] = exp(y[i])  drop y[0] if i < 3 = 1.0  q = exp(y[i]) }", ""},
      {"for i in [0, N) { z[i] = exp(y[i])  for j in [0, 3) { q += y[i] }  y[i] = exp(y[i]) }",
       "for i in [0, N) { temp s: f32  s = exp(y[i])  z[i] = s  for j in [0, 3) { q += y[i] }  y[i] = s }"},
      {"for i in [0, N) { z[i] = exp(y[i])  for j in [0, 3) { y[j] += 1.0 }  q = exp(y[i]) }", ""},
      // Changed values that an index reads, in a place or a condition.
      {"for i in [0, N) { z[i] = exp(x[d[i]])  d[i] = 1  q = exp(x[d[i]]) }", ""},
      {"for i in [0, N) { z[i] = exp(x[i | 0.0 if d[i] < 2])  d[i] = 1  q = exp(x[i | 0.0 if d[i] < 2]) }",
       ""},
      {"for i in [0, N) { z[i] = exp(f32(index(d[i])))  d[i] = 1  q = exp(f32(index(d[i]))) }", ""},
      // A stored value that is overwritten, at its place or perhaps there.
      {"for i in [0, N) { y[i] = exp(x[i])  y[0] = 1.0  q = y[i] * 2.0 }", ""},
      {"for i in [0, N) { y[i] = exp(x[i])  y[i] += 1.0  q = y[i] * 2.0 }", ""},
      {"for i in [0, N) { y[i] = exp(x[i])  q = y[i + 1 | 0.0] * 2.0 }", ""},
      // The loop before holds another iteration's value.
      {"temp t: f32  t = 1.0  for i in [0, N) { y[i] = exp(t)  t = exp(x[i]) }", ""},
      {"for i in [0, N) { y[i] = exp(x[i]) }  for j in [0, N) { z[j] = exp(x[j]) }", ""},
      {"for i in [0, N) { y[i] = exp(x[i])  for j in [0, 3) { z[j] = exp(x[i]) } }", ""},
  };
  ExpectPass(EliminateCommonSubexpressions, kFrame, kCases);
}

// The value of a dropped store is not evaluated: its loads may be out of range.
TEST(CommonSubexpressions, DroppedStoresTakeNoPart) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { drop y[i] if 0 < i = exp(x[i - 1])  drop z[i] if 0 < i = exp(x[i - 1]) }",
       ""},
      {"for i in [0, N) { drop y[i] if 0 < i = exp(x[i])  z[i] = exp(x[i]) }", ""},
      {"for i in [0, N) { z[i] = exp(x[i])  drop y[i] if 0 < i = exp(x[i]) }", ""},
      {"for i in [0, N) { drop y[i] if 0 < i = exp(x[i])  z[i] = y[i] * 2.0 }", ""},
  };
  ExpectPass(EliminateCommonSubexpressions, kFrame, kCases);
}

// A value that is stored at a place that the store itself moves is not what is read there next.
TEST(CommonSubexpressions, StoresThatMoveTheirPlace) {
  ExpectPass(EliminateCommonSubexpressions, kFrame,
             {{"d[d[0]] = ids[0] + 1  q = f32(d[d[0]])", ""}});
}

}  // namespace
}  // namespace nestor::loop
