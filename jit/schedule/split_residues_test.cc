// Loops over i/2 and i%2 before and after they became a loop for each remainder.
#include "jit/schedule/split_residues.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[M], w: f32[N, 4]) -> (y: f32[N, M], one: f32[1]) {\n",
                          "\n  one[0] = 0.0\n}\n"};
// Texts that macros make are laid out by hand.
// clang-format off
#define NEST(t, columns, sums, value, at)                                                    \
  "for i" t " in [0, N) { for j" t " in [" columns ") { acc s" t ": f32 = sum for r" t " in [" \
  sums ") { s" t " += " value " } y[i" t ", " at "] = s" t " } }"

absl::StatusOr<bool> ExactResidues(Program& program) { return SplitResidues(program); }
absl::StatusOr<bool> AllResidues(Program& program) {
  return SplitResidues(program, {/*reorders_rounding=*/true});
}

TEST(SplitResidues, TextInTextOut) {
  ExpectPass(ExactResidues, kFrame, {
      {NEST("", "0, M", "0, (j + 1)/2 - j/2 + 1", "w[i, j%2 - 2*r + 1] * x[j/2 + r | 0.0]", "j"),
       "for i_2 in [0, N) { for j_2 in [0, (M + 1)/2) { acc s_2: f32 = sum "
       "s_2 += w[i_2, 1] * x[j_2] y[i_2, 2*j_2] = s_2 } }"
       NEST("_3", "0, M/2", "0, 2", "w[i_3, -2*r_3 + 2] * x[j_3 + r_3]", "2*j_3 + 1") ""},
      // Strips that begin at a multiple.
      {"for p in [0, N) { " NEST("", "4*p, min(M, 4*p + 4)", "0, (j + 1)/2 - j/2 + 1", "w[i, j%2 - 2*r + 1] * x[j/2 + r | 0.0]", "j") " }",
       "for p_2 in [0, N) { for i_2 in [0, N) { for j_2 in [2*p_2, min(2*p_2 + 2, (M + 1)/2)) { acc s_2: f32 = sum"
       " s_2 += w[i_2, 1] * x[j_2] y[i_2, 2*j_2] = s_2 } } } for p_3 in [0, N) { "
       NEST("_3", "2*p_3, min(2*p_3 + 2, M/2)", "0, 2", "w[i_3, -2*r_3 + 2] * x[j_3 + r_3]", "2*j_3 + 1") "}"},
      {"for p in [0, N) { " NEST("", "3*p, min(M, 3*p + 4)", "0, (j + 1)/2 - j/2 + 1", "w[i, j%2 - 2*r + 1] * x[j/2 + r | 0.0]", "j") " }",
       ""},
      // A sum that has steps at some remainders only.
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum "
       "for r in [0, 4) { drop s if j%2 == 0 += w[i, r] * x[j/2] } y[i, j] = s } }", 
       "for i_2 in [0, N) { for j_2 in [0, (M + 1)/2) { acc s_2: f32 = sum "
       "for r_2 in [0, 4) { s_2 += w[i_2, r_2] * x[j_2] } y[i_2, 2*j_2] = s_2 } } "
       "for i_3 in [0, N) { for j_3 in [0, M/2) { acc s_3: f32 = sum y[i_3, 2*j_3 + 1] = s_3 } }"},
      // Not where another sum beside it has all its steps.
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum acc t: f32 = sum "
       "for r in [0, 4) { drop s if j%2 == 0 += w[i, r] * x[j/2] } "
       "for r_2 in [0, 4) { t += w[i, r_2] * x[j] } y[i, j] = s + t } }", ""},
      // Not where the order of a sum beyond the nest would change.
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum "
       "for r in [0, 4) { drop s if j%2 == 0 += w[i, r] * x[j/2] } y[i, j] = s one[0] += s } }", ""},
      // Not where no bound is divided, or one is by a symbol, nor for other sums than of products.
      {NEST("", "0, M", "0, 2", "w[i, r] * x[j/2]", "j"), ""},
      {NEST("", "0, M", "0, j/max(N, 1)", "w[i, r | 0.0] * x[j]", "j"), ""},
      {NEST("", "0, M", "0, j/2", "w[i, r | 0.0]", "j"), ""},
      {NEST("", "0, M", "0, j/9", "w[i, r | 0.0] * x[j]", "j"), ""},
  });
  ExpectPass(AllResidues, kFrame, {
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum "
       "for r in [0, 4) { drop s if j%2 == 0 += w[i, r] * x[j/2] } y[i, j] = s one[0] += s } }", 
       "for i_2 in [0, N) { for j_2 in [0, (M + 1)/2) { acc s_2: f32 = sum "
       "for r_2 in [0, 4) { s_2 += w[i_2, r_2] * x[j_2] } y[i_2, 2*j_2] = s_2 one[0] += s_2 } } "
       "for i_3 in [0, N) { for j_3 in [0, M/2) { acc s_3: f32 = sum y[i_3, 2*j_3 + 1] = s_3 one[0] += s_3 } }"},
      // Not if the sum is read, either.
      {"for i in [0, N) { for j in [0, M) { acc s: f32 = sum "
       "for r in [0, 4) { drop s if j%2 == 0 += w[i, r] * x[j/2] } one[0] += s y[i, j] = one[0] } }", ""},
  });
}
// clang-format on

}  // namespace
}  // namespace nestor::loop
