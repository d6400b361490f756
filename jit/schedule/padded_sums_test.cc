// Sums that end at the borders of an operand, before and after they run on beyond these.
#include "jit/schedule/padded_sums.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[B, M - R + 1], w: f32[N, R], v: f32[N], c: i32[M - R + 1], k: i32[N, R])"
    " -> (y: f32[B, N, 2*M], z: i32[N, M], one: f32[1]) {\n",
    "\n  drop one[0] = 0.0 drop y[0, 0, 0] = 0.0 drop z[0, 0] = i32(0)\n}\n"};

absl::StatusOr<bool> PadForLargeTiles(Program& program) {
  return PadSums(program, jit::Isa::kAvx512);
}

// Texts that macros make are laid out by hand.
// clang-format off
// `s`, `r`, `i`, `j`: how the names of a copy's tensor and indices end.
#define SUM(s, r, type, sums, step) "acc s" s ": " type " = sum for r" r " in [" sums ") { " step " }"
#define OVER(i, j, body) "for i" i " in [0, N) { for j" j " in [0, M) { " body " } }"
#define INSIDE(j) "max(-j" j " + R - 1, 0), min(R, -j" j " + M)"
#define W "w[i, -r + R - 1]"
#define X(b, outside) "x[" b ", j + r - R + 1" outside "]"
// A nest in which each sum ends at the borders of x, the nest that runs on, and its second run.
#define ENDS_AT(product, ends) OVER("", "", SUM("", "", "f32", INSIDE(""), "s += " product) ends)
#define NEEDED " needed if -j + R - 1 <= r, r < -j + M"
#define RUNS_ON(product, ends) OVER("", "", SUM("", "", "f32", "0, R", "s += " product NEEDED) ends)
#define ONCE_MORE(kept)                                                                                \
  OVER("_4", "_3", SUM("_2", "_3", "f32", INSIDE("_3"), "drop s_2 if not_finite[] == 1 += "            \
                       "w[i_4, -r_3 + R - 1] * x[b, j_3 + r_3 - R + 1]")                               \
       " drop " kept " if not_finite[] == 1 = s_2")
// The code that decides whether sums that are kept in `kept` are computed once more.
#define DOUBTS(kept, w)                                                                                              \
  " acc not_a_number: i64 = max " OVER("_2", "_2", "not_a_number max= i64(" kept " != " kept ")")                      \
  " acc not_finite: i64 = max for i_3 in [0, N) { for r_2 in [0, R) {"                                               \
  " drop not_finite if not_a_number[] == 1 max= i64(" w " * 0.0 != 0.0) } } "

TEST(PadSums, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for b in [0, B) { " ENDS_AT(W " * " X("b", ""), " y[b, i, j] = s") " }",
       "for b in [0, B) { " RUNS_ON(W " * " X("b", " | 0.0"), " y[b, i, j] = s")
       DOUBTS("y[b, i_2, j_2]", "w[i_3, -r_2 + R - 1]") ONCE_MORE("y[b, i_4, j_3]") " }"},
      // A strip of images beside other things shares the second run.
      {"for q in [0, B) { drop one[0] = 1.0 for b in [2*q, min(B, 2*q + 2)) { " ENDS_AT(W " * " X("b", ""), " y[b, i, j] = s")
       " } }",
       "for q in [0, B) { drop one[0] = 1.0 for b in [2*q, min(B, 2*q + 2)) { "
       RUNS_ON(W " * " X("b", " | 0.0"), " y[b, i, j] = s") " } acc not_a_number: i64 = max"
       " for b_2 in [2*q, min(B, 2*q + 2)) { "
       OVER("_2", "_2", "not_a_number max= i64(y[b_2, i_2, j_2] != y[b_2, i_2, j_2])") " }"
       " acc not_finite: i64 = max for i_3 in [0, N) { for r_2 in [0, R) {"
       " drop not_finite if not_a_number[] == 1 max= i64(w[i_3, -r_2 + R - 1] * 0.0 != 0.0) } }"
       " for b_3 in [2*q, min(B, 2*q + 2)) { "
       OVER("_4", "_3", SUM("_2", "_3", "f32", INSIDE("_3"), "drop s_2 if not_finite[] == 1 += "
                            "w[i_4, -r_3 + R - 1] * x[b_3, j_3 + r_3 - R + 1]")
                        " drop y[b_3, i_4, j_3] if not_finite[] == 1 = s_2") " } }"},
      // Statements that use the sums run afterwards.
      {"for b in [0, B) { " ENDS_AT(W " * " X("b", ""), " y[b, i, 2*j] = max(s, v[i])") " }",
       "assume : 549755813887*M*N for b in [0, B) { temp padded: f32[N, M] "
       RUNS_ON(W " * " X("b", " | 0.0"), " padded[i, j] = s")
       DOUBTS("padded[i_2, j_2]", "w[i_3, -r_2 + R - 1]") ONCE_MORE("padded[i_4, j_3]")
       OVER("_5", "_4", "y[b, i_5, 2*j_4] = max(padded[i_5, j_4], v[i_5])") " }"},
      {"for b in [0, B) { " ENDS_AT(W " * " X("b", ""), " temp h: f32 h = v[i] * 2.0 y[b, i, j] = where(h > 0.0, s, h)") " }",
       "assume : 549755813887*M*N for b in [0, B) { temp padded: f32[N, M] "
       RUNS_ON(W " * " X("b", " | 0.0"), " padded[i, j] = s")
       DOUBTS("padded[i_2, j_2]", "w[i_3, -r_2 + R - 1]") ONCE_MORE("padded[i_4, j_3]")
       OVER("_5", "_4", "temp h_2: f32 h_2 = v[i_5] * 2.0 y[b, i_5, j_4] = where(h_2 > 0.0, padded[i_5, j_4], h_2)") " }"},
      // Also those before the sums, if the sums read nothing that they set.
      {"for b in [0, B) { " OVER("", "", "temp h: f32 h = v[i] " SUM("", "", "f32", INSIDE(""), "s += " W " * " X("b", ""))
                                         " y[b, i, 2*j] = max(s, h)") " }",
       "assume : 549755813887*M*N for b in [0, B) { temp padded: f32[N, M] "
       RUNS_ON(W " * " X("b", " | 0.0"), " padded[i, j] = s")
       DOUBTS("padded[i_2, j_2]", "w[i_3, -r_2 + R - 1]") ONCE_MORE("padded[i_4, j_3]")
       OVER("_5", "_4", "temp h_2: f32 h_2 = v[i_5] y[b, i_5, 2*j_4] = max(padded[i_5, j_4], h_2)") " }"},
      // A comparison would hide NaN from the search; max does not.
      {"for b in [0, B) { " ENDS_AT(W " * " X("b", ""), " y[b, i, j] = where(s > 0.0, v[i], 0.0)") " }",
       "assume : 549755813887*M*N for b in [0, B) { temp padded: f32[N, M] "
       RUNS_ON(W " * " X("b", " | 0.0"), " padded[i, j] = s")
       DOUBTS("padded[i_2, j_2]", "w[i_3, -r_2 + R - 1]") ONCE_MORE("padded[i_4, j_3]")
       OVER("_5", "_4", "y[b, i_5, j_4] = where(padded[i_5, j_4] > 0.0, v[i_5], 0.0)") " }"},
      {"for b in [0, B) { " ENDS_AT(W " * " X("b", ""), " y[b, i, j] = max(s, 0.0)") " }",
       "for b in [0, B) { " RUNS_ON(W " * " X("b", " | 0.0"), " y[b, i, j] = max(s, 0.0)")
       DOUBTS("y[b, i_2, j_2]", "w[i_3, -r_2 + R - 1]")
       OVER("_4", "_3", SUM("_2", "_3", "f32", INSIDE("_3"), "drop s_2 if not_finite[] == 1 += "
                            "w[i_4, -r_3 + R - 1] * x[b, j_3 + r_3 - R + 1]")
                        " drop y[b, i_4, j_3] if not_finite[] == 1 = max(s_2, 0.0)") " }"},
      // Integers, and gated products, are 0 whatever the other factor is.
      {OVER("", "", SUM("", "", "i32", INSIDE(""), "s += k[i, -r + R - 1] * c[j + r - R + 1]") " z[i, j] = s"),
       OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, -r + R - 1] * c[j + r - R + 1 | 0]" NEEDED) " z[i, j] = s")},
      {ENDS_AT("mulz(" W ", " X("0", "") ")", " y[0, i, j] = s"),
       RUNS_ON("mulz(" W ", " X("0", " | 0.0") ")", " y[0, i, j] = s")},
      // A sum of products is 0 where each of them is.
      {ENDS_AT("mulz(" W ", " X("0", "") ") - w[i, r] * " X("1", ""), " y[0, i, j] = s"),
       RUNS_ON("mulz(" W ", " X("0", " | 0.0") ") - w[i, r] * " X("1", " | 0.0"), " y[0, i, j] = s")
       DOUBTS("y[0, i_2, j_2]", "w[i_3, r_2]")
       OVER("_4", "_3", SUM("_2", "_3", "f32", INSIDE("_3"), "drop s_2 if not_finite[] == 1 += "
                            "mulz(w[i_4, -r_3 + R - 1], x[0, j_3 + r_3 - R + 1]) - w[i_4, r_3] * x[1, j_3 + r_3 - R + 1]")
                        " drop y[0, i_4, j_3] if not_finite[] == 1 = s_2")},
      {ENDS_AT(W " * " X("0", "") " + v[i]", " y[0, i, j] = s"), ""},
      // Not where some of the added steps would lie inside of each operand; nor for values that are
      // no products, nor if others would be read outside of their tensors.
      {OVER("", "", SUM("", "", "f32", "0, min(R, -j + M - R)", "s += w[i, r] * x[0, j + r]") " y[0, i, j] = s"), ""},
      {ENDS_AT(W " + " X("0", ""), " y[0, i, j] = s"), ""},
      {ENDS_AT("w[i, r] * " X("0", " | 1.0"), " y[0, i, j] = s"), ""},
      {ENDS_AT("v[i + r] * w[i, r] * " X("0", ""), " y[0, i, j] = s"), ""},
      // Nor where the sums read what a statement sets.
      {OVER("", "", "temp h: f32 h = v[i] " SUM("", "", "f32", INSIDE(""), "s += h * " W " * " X("0", "")) " y[0, i, j] = s"), ""},
  };
  ExpectPass(PadForLargeTiles, kFrame, kCases);
}

TEST(PadSums, SmallTilesComputeAllSteps) {
  constexpr PassCase kCases[] = {
      {OVER("", "", SUM("", "", "i32", INSIDE(""), "s += k[i, -r + R - 1] * c[j + r - R + 1]") " z[i, j] = s"),
       OVER("", "", SUM("", "", "i32", "0, R", "s += k[i, -r + R - 1] * c[j + r - R + 1 | 0]") " z[i, j] = s")},
  };
  ExpectPass([](Program& program) { return PadSums(program, jit::Isa::kAvx2); }, kFrame, kCases);
}
// clang-format on

}  // namespace
}  // namespace nestor::loop
