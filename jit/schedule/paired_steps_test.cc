// Sums of narrow integers before and after two steps became one; ranges decide which may.
#include "jit/schedule/paired_steps.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(a: i8[M, K], b: u8[K, N], e: i8[M, 6], f: i8[6, N], u: u16[K, N], l: i32[K, N], x: i8[C, N], w: i8[M, C, R]; "
    "$z: i64 = 0 in [0, 255], $any: i64 = 0) -> (y: i32[M, N], one: f32[1]) {\n",
    "\n  drop one[0] = 0.0\n}\n"};
// Texts that macros make are laid out by hand.
// clang-format off
#define PRODUCTS(end, value) \
  "for i in [0, M) { for j in [0, N) { acc s: i32 = sum for k in [0, " end ") { s += " value " } y[i, j] = s } }"
#define WORD(low, high) "or(and(" low ", i32(65535)), shl(" high ", i32(16)))"

TEST(PairedSteps, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // After the last step, elements read beyond the operands are 0.
      {PRODUCTS("K", "i32(a[i, k]) * i32(b[k, j])"),
       PRODUCTS("(K + 1)/2", "dot_halves(" WORD("i32(a[i, 2*k])", "i32(a[i, 2*k + 1 | i8(0)])") ", "
                             WORD("i32(b[2*k, j])", "i32(b[2*k + 1, j | u8(0)])") ", i32(0))")},
      // With an even number of steps, each pair is complete.
      {PRODUCTS("6", "i32(e[i, k]) * i32(f[k, j])"),
       PRODUCTS("3", "dot_halves(" WORD("i32(e[i, 2*k])", "i32(e[i, 2*k + 1])") ", "
                     WORD("i32(f[2*k, j])", "i32(f[2*k + 1, j])") ", i32(0))")},
      // Values that are not 0 beyond their tensor are left out by a choice on the index, as are
      // values that are not at its end.
      {PRODUCTS("K", "(i32(a[i, k]) - i32(index($z))) * (i32(b[k, j]) - i32(index($z)))"),
       PRODUCTS("(K + 1)/2",
                "dot_halves(" WORD("i32(a[i, 2*k]) - i32(index($z))",
                                   "where(index(2*k + 1) < index(K), i32(a[i, 2*k + 1 | i8(0)]) - i32(index($z)), i32(0))") ", "
                WORD("i32(b[2*k, j]) - i32(index($z))", "i32(b[2*k + 1, j | u8(0)]) - i32(index($z))") ", i32(0))")},
      {PRODUCTS("5", "i32(e[i, k]) * i32(f[k, j])"),
       PRODUCTS("3", "dot_halves(" WORD("i32(e[i, 2*k])", "where(index(2*k + 1) < index(5), i32(e[i, 2*k + 1 | i8(0)]), i32(0))") ", "
                     WORD("i32(f[2*k, j])", "i32(f[2*k + 1, j | i8(0)])") ", i32(0))")},
      // The one of several sums over which no window slides.
      {"for i in [0, M) { for j in [0, N - R + 1) { acc s: i32 = sum for c in [0, C) { for r in [0, R) {"
       " s += i32(w[i, c, r]) * i32(x[c, j + r]) } } drop y[i, j] = s } } for i in [0, M) { for j in [0, N) { drop y[i, j] = i32(0) } }",
       "for i in [0, M) { for j in [0, N - R + 1) { acc s: i32 = sum for c in [0, (C + 1)/2) { for r in [0, R) {"
       " s += dot_halves(" WORD("i32(w[i, 2*c, r])", "i32(w[i, 2*c + 1, r | i8(0)])") ", "
       WORD("i32(x[2*c, j + r])", "i32(x[2*c + 1, j + r | i8(0)])") ", i32(0)) } } drop y[i, j] = s } }"
       " for i_2 in [0, M) { for j_2 in [0, N) { drop y[i_2, j_2] = i32(0) } }"},
      // Not values that need more than 16 bits, other sums, sums of one step, or of no
      // product of two.
      {PRODUCTS("K", "i32(a[i, k]) * i32(u[k, j])"), ""},
      {PRODUCTS("K", "i32(a[i, k]) * l[k, j]"), ""},
      {PRODUCTS("K", "(i32(a[i, k]) - i32(index($any))) * i32(b[k, j])"), ""},
      {PRODUCTS("1", "i32(e[i, k]) * i32(f[k, j])"), ""},
      {PRODUCTS("K", "i32(a[i, k]) + i32(b[k, j])"), ""},
      {"for i in [0, M) { for j in [0, N) { acc s: i32 = max for k in [0, K) { s max= i32(a[i, k]) * i32(b[k, j]) } y[i, j] = s } }", ""},
  };
  ExpectPass(PairSteps, kFrame, kCases);
}
// clang-format on

}  // namespace
}  // namespace nestor::loop
