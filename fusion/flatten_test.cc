// Programs before and after the pass; blocks of one item, and programs with register tensors, stay.
#include "fusion/flatten.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[N, C]) -> (y: f32[N], r: f32) {\n",
                          "\n  for o in [0, N) { y[o] = 1.0 }  block { r = 1.0 }\n}\n"};

TEST(Flatten, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // Each block is one loop or one statement already; the contents of a loop stay.
      {"", ""},
      {"block { r = 2.0 }", ""},
      {"temp t: f32  block { t = 2.0 }  for i in [0, N) { y[i] = t }", ""},
      {"for i in [0, N) { temp t: f32  acc s: f32 = sum  t = 1.0  for c in [0, C) { s += x[i, c] }  y[i] = s + t }",
       ""},
      // Loops and statements in the order of the text.
      {"block { r = 2.0  r = 3.0 }", "block { r = 2.0 }  block { r = 3.0 }"},
      {"block { r = 2.0  for i in [0, N) step 2 { y[i] = r }  r = 3.0 }",
       "block { r = 2.0 }  for i in [0, N) step 2 { y[i] = r }  block { r = 3.0 }"},
      {"for i in [0, N) { y[i] = 2.0 }  block { for j in [0, N) parallel { y[j] = x[j, 0] }  r = 2.0 }  "
       "for k in [0, N) { y[k] += r }",
       "for i in [0, N) { y[i] = 2.0 }  for j in [0, N) parallel { y[j] = x[j, 0] }  block { r = 2.0 }  "
       "for k in [0, N) { y[k] += r }"},
      // Declarations of blocks come after those of the program.
      {"block { temp t: f32  t = 2.0  r = t }", "temp t: f32  block { t = 2.0 }  block { r = t }"},
      {"temp a: f32  block { a = 1.0  temp b: f32[C]  for c in [0, C) { b[c] = a }  acc s: f32 = sum  "
       "for d in [0, C) { s += b[d] }  r = s }",
       "temp a: f32  temp b: f32[C]  acc s: f32 = sum  block { a = 1.0 }  for c in [0, C) { b[c] = a }  "
       "for d in [0, C) { s += b[d] }  block { r = s }"},
      {"block { acc b: f32 = argmax  for c in [0, C) { b argmax= (x[0, c], index(c)) }  r = x[0, b[]] }",
       "acc b: f32 = argmax  for c in [0, C) { b argmax= (x[0, c], index(c)) }  block { r = x[0, b[]] }"},
      // Nothing to hold.
      {"block {}", " "},
      {"block { temp t: f32[N] }", "temp t: f32[N]"},
      {"block {}  block { r = 2.0  for i in [0, N) { for c in [0, C) {} } }",
       "block { r = 2.0 }  for i in [0, N) { for c in [0, C) {} }"},
  };
  ExpectPass(FlattenBlocks, kFrame, kCases);
}

// A register tensor must stay in a scope: a program cannot declare it.
TEST(Flatten, RegisterTensors) {
  ExpectPass(FlattenBlocks, kFrame,
             {{"block { temp t: f32[4] register  t[0] = 2.0  r = t[0] }", ""}});
}

}  // namespace
}  // namespace nestor::loop
