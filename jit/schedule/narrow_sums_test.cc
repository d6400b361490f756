// Sums before and after they become narrow, and those that may leave i32.
#include "jit/schedule/narrow_sums.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N + 30], h: i16[N + 30], w: i64[N]) -> (y: f32[N], z: i64[N], one: f32[1]) {\n",
    "\n  drop y[0] = 0.0 drop z[0] = 0 drop one[0] = 0.0\n}\n"};

TEST(NarrowSums, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { acc n: i64 = sum for r in [0, 3) { n += i64(x[i + r] < 1.0) } y[i] = f32(n) / 3.0 }",
       "for i in [0, N) { acc n: i32 = sum for r in [0, 3) { n += i32(x[i + r] < 1.0) } y[i] = f32(n) / 3.0 }"},
      // Read as it is, and where another sum reads it.
      {"for i in [0, N) { acc n: i64 = sum for r in [0, 3) { n += i64(x[i + r] < 1.0) } z[i] = n + n }",
       "for i in [0, N) { acc n: i32 = sum for r in [0, 3) { n += i32(x[i + r] < 1.0) } z[i] = i64(n) + i64(n) }"},
      {"for i in [0, N) { acc n: i64 = sum acc m: i64 = sum for r in [0, 3) { n += i64(x[i + r] < 1.0) }"
       " for q in [0, 3) { m += i64(x[i + q] < f32(n)) } z[i] = m }",
       "for i in [0, N) { acc n: i32 = sum acc m: i32 = sum for r in [0, 3) { n += i32(x[i + r] < 1.0) }"
       " for q in [0, 3) { m += i32(x[i + q] < f32(n)) } z[i] = i64(m) }"},
      {"for i in [0, N) { acc n: i64 = sum for r in [0, 3) { n += i64(x[i + r] < 1.0) } acc b: f32 = argmax b argmax= (x[i], n) z[i] = b }",
       "for i in [0, N) { acc n: i32 = sum for r in [0, 3) { n += i32(x[i + r] < 1.0) } acc b: f32 = argmax b argmax= (x[i], i64(n)) z[i] = b }"},
      // Not under a mask.
      {"for i in [0, N) { acc n: i64 = sum for r in [0, 3) { n += i64(x[i + r] < 1.0) } z[i] = n[ | 7 if i < 3] }",
       ""},
      // Of elements of i16, up to 65535 steps of -32768; not one more, in all loops together.
      {"for i in [0, N) { acc n: i64 = sum for r in [0, 13107) { for q in [0, 5) { n += i64(h[i]) } } y[i] = f32(n) }",
       "for i in [0, N) { acc n: i32 = sum for r in [0, 13107) { for q in [0, 5) { n += i32(h[i]) } } y[i] = f32(n) }"},
      {"for i in [0, N) { acc n: i64 = sum for r in [0, 65535) { n += i64(h[i]) } for q in [0, 2) { n += i64(h[i]) } y[i] = f32(n) }",
       ""},
      // Not of unknown length or range, or of other steps; nor an index.
      {"for i in [0, N) { acc n: i64 = sum for r in [0, N) { n += i64(x[r] < 1.0) } y[i] = f32(n) }",
       ""},
      {"for i in [0, N) { acc n: i64 = sum for r in [0, 3) { n += w[i] } y[i] = f32(n) }", ""},
      {"for i in [0, N) { acc n: i64 = max for r in [0, 3) { n max= i64(h[i + r]) } y[i] = f32(n) }",
       ""},
      {"for i in [0, N) { acc n: i64 = sum for r in [0, 3) { n += i64(h[i + r]) } y[i] = x[n[] | 0.0] }",
       ""},
  };
  ExpectPass(NarrowSums, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
