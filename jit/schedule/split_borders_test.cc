#include "jit/schedule/split_borders.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

constexpr fusion::Frame kFrame = {
    "program p(x: f32[M - R + 1], w: f32[N, R], z: f32[M]) -> (y: f32[N, M], one: f32[1]) {\n",
    "\n  block { drop one[0] = 0.0 }\n}\n"};
// `t`: how the names of a piece's tensor and indices end.
#define NEST(t, columns, sums, value)                                                        \
  "for i" t " in [0, N) { for j" t " in [" columns ") { acc s" t ": f32 = sum for r" t " in [" \
  sums ") { s" t " += " value " } y[i" t ", j" t "] = s" t " } }"

TEST(SplitBorders, TextInTextOut) {
  fusion::ExpectPass(SplitBorders, kFrame, {
      {NEST("", "0, M", "max(-j + R - 1, 0), min(R, -j + M)", "w[i, -r + R - 1] * x[j + r - R + 1]"),
       "block {" NEST("", "max(R - 1, 0), min(M, M - R + 1)", "0, R", "w[i, -r + R - 1] * x[j + r - R + 1]")
       NEST("_2", "0, max(R - 1, 0)", "max(-j_2 + R - 1, 0), min(R, -j_2 + M)", "w[i_2, -r_2 + R - 1] * x[j_2 + r_2 - R + 1]")
       NEST("_3", "max(min(M, M - R + 1), max(R - 1, 0)), M", "max(-j_3 + R - 1, 0), min(R, -j_3 + M)",
            "w[i_3, -r_3 + R - 1] * x[j_3 + r_3 - R + 1]") "}"},
      // One border; bounds that move forwards.
      {NEST("", "0, M", "0, min(R, -j + M)", "w[i, r] * z[j + r]"),
       "block {" NEST("", "0, min(M, M - R + 1)", "0, R", "w[i, r] * z[j + r]")
       NEST("_2", "min(M, M - R + 1), M", "0, min(R, -j_2 + M)", "w[i_2, r_2] * z[j_2 + r_2]") "}"},
      {NEST("", "0, M", "max(j - 3, 0), min(R, j + 1)", "w[i, r] * z[j - r | 0.0]"),
       "block {" NEST("", "max(R - 1, 0), min(M, 4)", "0, R", "w[i, r] * z[j - r | 0.0]")
       NEST("_2", "0, max(R - 1, 0)", "max(j_2 - 3, 0), min(R, j_2 + 1)", "w[i_2, r_2] * z[j_2 - r_2 | 0.0]")
       NEST("_3", "max(min(M, 4), max(R - 1, 0)), M", "max(j_3 - 3, 0), min(R, j_3 + 1)", "w[i_3, r_3] * z[j_3 - r_3 | 0.0]") "}"},
      // Not what moves by more than one, or always; nor what is no contraction inside.
      {NEST("", "0, M", "max(-2*j + R - 1, 0), R", "w[i, r] * z[j]"), ""},
      {NEST("", "0, M", "0, j", "w[i, r | 0.0] * z[j]"), ""},
      {NEST("", "0, M", "0, min(R, -j + M)", "z[j + r]"), ""},
  });
}

}  // namespace
}  // namespace nestor::jit
