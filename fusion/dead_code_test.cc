// Programs before and after the pass; an empty text says that everything is needed.
#include "fusion/dead_code.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[N, C], ids: i64[N]) -> (y: f32[N], r: f32) {\n",
                          "\n  r = 1.0\n}\n"};

TEST(DeadCode, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // Everything is needed.
      {"for i in [0, N) { y[i] = x[i, 0] }", ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { y[i] = t[i] }", ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0]  y[i] = t[i] }", ""},
      {"for i in [0, N) { acc s: f32 = sum  for c in [0, C) { s += x[i, c] }  y[i] = s }", ""},
      {"for i in [0, N) { acc b: f32 = argmax  for c in [0, C) { b argmax= (x[i, c], index(c)) }  "
       "y[i] = x[i, b[]] }",
       ""},
      {"temp d: i64[N]  for i in [0, N) { d[i] = ids[i] }  for i in [0, N) { drop y[d[i]] += 1.0 }",
       ""},
      {"temp d: i64[N]  for i in [0, N) { d[i] = ids[i] }  for i in [0, N) { drop y[i] if d[i] < 3 = 1.0 }",
       ""},
      {"temp d: i64[N]  for i in [0, N) { d[i] = ids[i] }  for i in [0, N) { y[i] = x[i, 0 | 0.0 if d[i] < 3] }",
       ""},
      // An output is live although nothing reads it; it may be read, too.
      {"for i in [0, N) { y[i] = 0.0 }  for i in [0, N) { y[i] += x[i, 0] }", ""},
      // Unused declarations, empty loops, empty blocks.
      {"temp t: f32[N]  acc a: f32 = sum  for i in [0, N) { y[i] = x[i, 0] }",
       "for i in [0, N) { y[i] = x[i, 0] }"},
      {"for i in [0, N) { temp t: f32[N]  y[i] = x[i, 0] }", "for i in [0, N) { y[i] = x[i, 0] }"},
      {"for i in [0, N) { for j in [i, N) {}  for k in [0, i) { y[k] = 1.0 } }",
       "for i in [0, N) { for k in [0, i) { y[k] = 1.0 } }"},
      {"for i in [0, N) { for j in [i, N) { temp t: f32 } }  y[0] = 1.0", "y[0] = 1.0"},
      // A chain that leads to no output is removed at once.
      {"temp t: f32[N]  temp u: f32[N]  for j in [0, N) { t[j] = x[j, 0] }  for k in [0, N) { u[k] = t[k] }  "
       "for i in [0, N) { y[i] = 1.0 }",
       "for i in [0, N) { y[i] = 1.0 }"},
      // One that only feeds itself, too.
      {"acc s: f32 = sum  temp t: f32  for i in [0, N) { s += x[i, 0]  t = s + t  y[i] = 1.0 }",
       "for i in [0, N) { y[i] = 1.0 }"},
      // Stores after the last read.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { y[i] = t[i] }  "
       "for i in [0, N) { t[i] = 0.0 }",
       "temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { y[i] = t[i] }"},
      {"for i in [0, N) { temp t: f32  t = 2.0  y[i] = t  t = 3.0 }",
       "for i in [0, N) { temp t: f32  t = 2.0  y[i] = t }"},
      // But the next iteration's reads come after.
      {"temp t: f32  t = 0.0  for i in [0, N) { y[i] = t  t = x[i, 0] }", ""},
      {"temp t: f32  temp u: f32  t = 0.0  u = 0.0  for i in [0, N) { y[i] = t  t = u  u = x[i, 0] }",
       ""},
      {"temp t: f32  for i in [0, N) { for j in [0, C) { y[i] = t }  t = x[i, 0] }", ""},
      // Overwritten whole: rank 0 only, and only for certain.
      {"temp t: f32  t = 0.0  t = 1.0  y[0] = t", "temp t: f32  t = 1.0  y[0] = t"},
      {"temp t: f32  t = 0.0  t = t + 1.0  y[0] = t", ""},
      {"temp t: f32  t = 0.0  drop t if N < 3 = 1.0  y[0] = t", ""},
      {"temp t: f32  t = 0.0  for i in [0, N) { t = x[i, 0] }  y[0] = t", ""},
      {"temp t: f32[1]  t[0] = 0.0  t[0] = 1.0  y[0] = t[0]", ""},
      {"r = 0.0  y[0] = 1.0", "y[0] = 1.0"},
  };
  ExpectPass(EliminateDeadCode, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
