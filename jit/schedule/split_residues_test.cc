#include "jit/schedule/split_residues.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

constexpr fusion::Frame kFrame = {
    "program p(x: f32[M], w: f32[N, 4]) -> (y: f32[N, M], one: f32[1]) {\n",
    "\n  block { drop one[0] = 0.0 }\n}\n"};
#define NEST(t, columns, sums, value, at)                                                    \
  "for i" t " in [0, N) { for j" t " in [" columns ") { acc s" t ": f32 = sum for r" t " in [" \
  sums ") { s" t " += " value " } y[i" t ", " at "] = s" t " } }"

TEST(SplitResidues, TextInTextOut) {
  fusion::ExpectPass(SplitResidues, kFrame, {
      {NEST("", "0, M", "0, (j + 1)/2 - j/2 + 1", "w[i, j%2 - 2*r + 1] * x[j/2 + r | 0.0]", "j"),
       "block {" NEST("_2", "0, (M + 1)/2", "0, 1", "w[i_2, -2*r_2 + 1] * x[j_2 + r_2 | 0.0]", "2*j_2")
       NEST("_3", "0, M/2", "0, 2", "w[i_3, -2*r_3 + 2] * x[j_3 + r_3 | 0.0]", "2*j_3 + 1") "}"},
      // Not where no bound is divided, or by a symbol, or what is no sum of products.
      {NEST("", "0, M", "0, 2", "w[i, r] * x[j/2]", "j"), ""},
      {NEST("", "0, M", "0, j/max(N, 1)", "w[i, r | 0.0] * x[j]", "j"), ""},
      {NEST("", "0, M", "0, j/2", "w[i, r | 0.0]", "j"), ""},
      {NEST("", "0, M", "0, j/9", "w[i, r | 0.0] * x[j]", "j"), ""},
  });
}

}  // namespace
}  // namespace nestor::jit
