// Sums over padding before and after it is left out, with the second run that inf and NaN ask for.
#include "jit/schedule/trimmed_sums.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[H, C, M], w: f32[N, R, C], v: f32[N], c: i32[H, C, M], k: i32[N, R, C])"
    " -> (y: f32[N, H, M], z: i32[N, H, M]) {\n",
    "\n  drop y[0, 0, 0] = 0.0 drop z[0, 0, 0] = i32(0)\n}\n"};

// Texts that macros make are laid out by hand.
// clang-format off
// `i`, `j`: how the names of a copy's indices end.
#define OVER(i, j, body) "for i" i " in [0, N) { for h" j " in [0, H) { for j" j " in [0, M) { " body " } } }"
#define SUM(s, r, type, rows, step)                                                                  \
  "acc s" s ": " type " = sum for r" r " in [" rows ") { for l" r " in [0, C) { " step " } } "
#define INSIDE "max(-h + 1, 0), min(R, -h + H + 1)"
#define STEP "s += w[i, r, l] * x[h + r - 1, l, j | 0.0]"
#define CHECK                                                                                     \
  "acc not_finite: i64 = max for i_2 in [0, N) { for r_2 in [0, R) { for l_2 in [0, C) {"        \
  " not_finite max= i64(w[i_2, r_2, l_2] * 0.0 != 0.0) } } } "
#define ONCE_MORE(end)                                                                                      \
  OVER("_3", "_2", SUM("_2", "_3", "f32", "0, R",                                                           \
                       "drop s_2 if not_finite[] == 1 += w[i_3, r_3, l_3] * x[h_2 + r_3 - 1, l_3, j_2"             \
                       " | 0.0 if h_2 + r_3 - 1 >= 0, h_2 + r_3 - 1 < H]")                                        \
       "drop y[i_3, h_2, j_2] if not_finite[] == 1 = " end)

absl::StatusOr<bool> WithBoundWeights(Program& program) {
  return TrimSums(program, jit::Isa::kAvx512, {false, true, false, false, false});
}

TEST(TrimSums, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {OVER("", "", SUM("", "", "f32", "0, R", STEP) "y[i, h, j] = s"),
       CHECK OVER("", "", SUM("", "", "f32", INSIDE, STEP) "y[i, h, j] = s") " " ONCE_MORE("s_2")},
      // Statements that use the sums run again as well.
      {OVER("", "", SUM("", "", "f32", "0, R", STEP) "y[i, h, j] = max(s, v[i])"),
       CHECK OVER("", "", SUM("", "", "f32", INSIDE, STEP) "y[i, h, j] = max(s, v[i])") " " ONCE_MORE("max(s_2, v[i_3])")},
      // Integers, and gated products, are 0 whatever the other factor is.
      {OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, r, l] * c[h + r - 1, l, j | i32(0)]") "z[i, h, j] = s"),
       OVER("", "", SUM("", "", "i32", INSIDE, "s += k[i, r, l] * c[h + r - 1, l, j | i32(0)]") "z[i, h, j] = s")},
      {OVER("", "", SUM("", "", "f32", "0, R", "s += mulz(w[i, r, l], x[h + r - 1, l, j | 0.0])") "y[i, h, j] = s"),
       OVER("", "", SUM("", "", "f32", INSIDE, "s += mulz(w[i, r, l], x[h + r - 1, l, j | 0.0])") "y[i, h, j] = s")},
      // At one end.
      {OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, r, l] * c[h + r, l, j | i32(0)]") "z[i, h, j] = s"),
       OVER("", "", SUM("", "", "i32", "0, min(R, -h + H)", "s += k[i, r, l] * c[h + r, l, j | i32(0)]") "z[i, h, j] = s")},
      // For a column, the step says where it is needed.
      {OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, r, l] * c[h, l, j + r - 1 | i32(0)]") "z[i, h, j] = s"),
       OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, r, l] * c[h, l, j + r - 1 | i32(0)]"
                        " needed if 0 <= j + r - 1, j + r - 1 < M") "z[i, h, j] = s")},
      {OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, r, l] * c[h + r, l, j + r - 1 | i32(0)]") "z[i, h, j] = s"),
       OVER("", "", SUM("", "", "i32", "0, min(R, -h + H)", "s += k[i, r, l] * c[h + r, l, j + r - 1 | i32(0)]"
                        " needed if 0 <= j + r - 1, j + r - 1 < M") "z[i, h, j] = s")},
      // Not where elements outside are not 0; nor for other values; nor for statements that may not
      // run twice, or if weights are summed in steps that move with a batch loop.
      {OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, r, l] * c[h + r - 1, l, j | i32(1)]") "z[i, h, j] = s"), ""},
      {OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, r, l] + c[h + r - 1, l, j | i32(0)]") "z[i, h, j] = s"), ""},
      {OVER("", "", SUM("", "", "f32", "0, R", STEP) "y[i, h, j] += s"), ""},
      {OVER("", "", "acc s: f32 = sum for r in [0, R) { for l in [0, min(C, h + 1)) { " STEP " } } y[i, h, j] = s"), ""},
      {OVER("", "", SUM("", "", "f32", "0, R", STEP) "y[i, h, j] = s + y[i, h, j]"), ""},
  };
  ExpectPass(WithBoundWeights, kFrame, kCases);
}

// Unless they are bound, weights would be looked through in each call.
TEST(TrimSums, OfOtherWeightsNothingIsKnown) {
  ExpectPass([](Program& program) { return TrimSums(program, jit::Isa::kAvx512); }, kFrame,
                     {{OVER("", "", SUM("", "", "f32", "0, R", STEP) "y[i, h, j] = s"), ""}});
}

// Small tiles write their windows out, with zeros; what needs no search is left out all the same.
TEST(TrimSums, SmallTilesKeepWindowsWhole) {
  const auto with_small_tiles = [](Program& program) {
    return TrimSums(program, jit::Isa::kAvx2, {false, true, false, false, false});
  };
  ExpectPass(with_small_tiles, kFrame,
             {{OVER("", "", SUM("", "", "f32", "0, R", STEP) "y[i, h, j] = s"), ""},
              {OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, r, l] * c[h + r - 1, l, j | i32(0)]") "z[i, h, j] = s"),
               OVER("", "", SUM("", "", "i32", INSIDE, "s += k[i, r, l] * c[h + r - 1, l, j | i32(0)]") "z[i, h, j] = s")}});
}
// clang-format on

}  // namespace
}  // namespace nestor::loop
