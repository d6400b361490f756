// Contractions before and after they compute their results transposed, or gathered.
#include "jit/schedule/turn_results.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[B, C, N], w: f32[O, C, R], b: f32[O]; $s: i64 = 1) -> (y: f32[B, O, N], one: f32[1]) {\n",
    "\n  drop one[0] = 0.0\n}\n"};

// Texts that macros make are laid out by hand.
// clang-format off
#define SUM(window, value) \
  "acc s: f32 = sum for c in [0, C) { for r in [0, " window ") { s += " value " } }"
// A convolution; `o`, `n`: ends of the loops over kernels and columns.
#define CONVOLUTION(o, n, window, value, ends) \
  "for i in [0, B) { for o in [0, " o ") { for j in [0, " n ") { " SUM(window, value) " " ends " } } }"
#define TURNED(assumed, o, n, value, ends) TURNED_("assume : " assumed, o, n, value, ends)
#define TURNED_(assume, o, n, value, ends)                                                       \
  assume " for i in [0, B) { temp turned: f32[" n ", " o "] for j in [0, " n ") {"  \
  " for o in [0, " o ") { " SUM("3", value) " turned[j, o] = s } }"                              \
  " for o_2 in [0, " o ") { for j_2 in [0, " n ") { " ends " } } }"

absl::StatusOr<bool> ForAvx2(Program& program) { return TurnResults(program, jit::Isa::kAvx2); }

TEST(TurnResults, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {CONVOLUTION("O", "N", "3", "w[o, c, r] * x[i, c, j + r - 1 | 0.0]", "y[i, o, j] = s"),
       TURNED("549755813887*N*O", "O", "N", "w[o, c, r] * x[i, c, j + r - 1 | 0.0]", "y[i, o_2, j_2] = turned[j_2, o_2]")},
      // Statements that use the sum stay along the row.
      {CONVOLUTION("O", "N", "3", "w[o, c, r] * x[i, c, 2*j + r | 0.0]", "y[i, o, j] = max(s * s, b[o])"),
       TURNED("549755813887*N*O", "O", "N", "w[o, c, r] * x[i, c, r + 2*j | 0.0]",
              "y[i, o_2, j_2] = max(turned[j_2, o_2] * turned[j_2, o_2], b[o_2])")},
      // So does the mask under which a sum is used.
      {CONVOLUTION("O", "N", "3", "w[o, c, r] * x[i, c, 2*j + r | 0.0]", "y[i, o, j] = s[ | 0.0 if j < o]"),
       TURNED("549755813887*N*O", "O", "N", "w[o, c, r] * x[i, c, r + 2*j | 0.0]",
              "y[i, o_2, j_2] = turned[j_2, o_2 | 0.0 if j_2 < o_2]")},
      // Kernels that fill vectors, and columns that leave more of them empty.
      {CONVOLUTION("24", "12", "3", "w[o, c, r] * x[i, c, j + r | 0.0]", "drop y[i, o, j] = s"),
       TURNED_("", "24", "12", "w[o, c, r] * x[i, c, j + r | 0.0]", "drop y[i, o_2, j_2] = turned[j_2, o_2]")},
      // Without windows, columns that leave a quarter of their vectors' lanes idle; not a twelfth.
      {CONVOLUTION("O", "18", "3", "w[o, c, r] * x[i, c + r, j | 0.0]", "drop y[i, o, j] = s"),
       TURNED("9895604649966*O", "O", "18", "w[o, c, r] * x[i, c + r, j | 0.0]", "drop y[i, o_2, j_2] = turned[j_2, o_2]")},
      {CONVOLUTION("O", "22", "3", "w[o, c, r] * x[i, c + r, j | 0.0]", "drop y[i, o, j] = s"), ""},
      // Not for one vector of kernels, nor where columns fill as many lanes.
      {CONVOLUTION("8", "N", "3", "w[o, c, r] * x[i, c, j + r | 0.0]", "drop y[i, o, j] = s"), ""},
      {CONVOLUTION("18", "12", "3", "w[o, c, r] * x[i, c, j + r | 0.0]", "drop y[i, o, j] = s"), ""},
      {CONVOLUTION("O", "16", "3", "w[o, c, r] * x[i, c, j + r | 0.0]", "drop y[i, o, j] = s"), ""},
      // Nor for windows of unknown size, of one element, or that do not slide along the row.
      {CONVOLUTION("O", "N", "R", "w[o, c, r] * x[i, c, j + r | 0.0]", "y[i, o, j] = s"), ""},
      {CONVOLUTION("O", "N", "1", "w[o, c, r] * x[i, c, j + r | 0.0]", "y[i, o, j] = s"), ""},
      {CONVOLUTION("O", "N", "3", "w[o, c, r] * x[i, c + r, j | 0.0]", "y[i, o, j] = s"), ""},
      // Nor where results lie side by side along the kernels already.
      {"for i in [0, B) { for j in [0, N) { for o in [0, O) { " SUM("3", "w[o, c, r] * x[i, c, j + r | 0.0]")
       " drop y[i, j, o] = s } } }", ""},
  };
  ExpectPass(ForAvx2, kFrame, kCases);
}

// Windows that slide along the rows of an image, too: strips of rows share the transposed results.
constexpr Frame kWindows = {
    "program p(x: f32[B, C, H, W], w: f32[O, C, 3], v: f32[O, H, C, 3], u: f32[B, C, 20, W])"
    " -> (y: f32[B, O, H, W], one: f32[1]) {\n",
    "\n  drop one[0] = 0.0\n}\n"};

#define SUM_OVER_IMAGE(value) \
  "acc s: f32 = sum for c in [0, C) { for q in [0, 3) { for r in [0, 3) { s += " value " } } }"
#define OVER_IMAGE(h, value, ends) \
  "for n in [0, B) { for o in [0, O) { for k in [0, " h ") { for l in [0, W) { " SUM_OVER_IMAGE(value) " " ends " } } } }"
#define IN_STRIPS(assumed, strips, rows, begin, end, value, ends)                                                \
  "assume : " assumed " for n in [0, B) { for k_2 in [0, " strips ") { temp turned: f32[" rows ", W, O]"          \
  " for k in [" begin ", " end ") { for l in [0, W) { for o in [0, O) { " SUM_OVER_IMAGE(value)                  \
  " turned[k - " begin ", l, o] = s } } }"                                                                      \
  " for o_2 in [0, O) { for k_3 in [" begin ", " end ") { for l_2 in [0, W) { "                                  \
  ends("turned[k_3 - " begin ", l_2, o_2]") " } } } } }"

#define ROW_BY_ROW(h, value)                                                                                      \
  "assume : 549755813887*O*W for n in [0, B) { for k in [0, " h ") { temp turned: f32[W, O] for l in [0, W) {"     \
  " for o in [0, O) { " SUM_OVER_IMAGE(value) " turned[l, o] = s } }"                                              \
  " for o_2 in [0, O) { for l_2 in [0, W) { drop y[n, o_2, k, l_2] = turned[l_2, o_2] } } } }"

TEST(TurnResults, StripsOfAnImage) {
#define DROPPED(value) "drop y[n, o_2, k_3, l_2] = " value
#define RAISED(value) "y[n, o_2, k_3, l_2] = max(" value ", 0.0)"
#define ROWS "min((H + 2*max((H + 15)/16, 1) - 1)/(2*max((H + 15)/16, 1)), 8)"
  constexpr PassCase kCases[] = {
      // As many rows for each of two threads.
      {OVER_IMAGE("20", "w[o, c, q] * u[n, c, k + q - 1, l + r - 1 | 0.0]", "drop y[n, o, k, l] = s"),
       IN_STRIPS("2748779069435*O*W", "4", "5", "5*k_2", "min(5*k_2 + 5, 20)",
                 "w[o, c, q] * u[n, c, k + q - 1, l + r - 1 | 0.0]", DROPPED)},
      {OVER_IMAGE("H", "w[o, c, q] * x[n, c, 2*k + q, l + r - 1 | 0.0]", "y[n, o, k, l] = max(s, 0.0)"),
       IN_STRIPS("549755813887*O*W*" ROWS, "2*max((H + 15)/16, 1)", ROWS, "k_2*" ROWS, "min(H, k_2*" ROWS " + " ROWS ")",
                 "w[o, c, q] * x[n, c, q + 2*k, l + r - 1 | 0.0]", RAISED)},
      // Row by row, where kernels differ from row to row, or no window slides over rows;
      // a single row.
      {OVER_IMAGE("H", "v[o, k, c, q] * x[n, c, k + q, l + r | 0.0]", "drop y[n, o, k, l] = s"),
       ROW_BY_ROW("H", "v[o, k, c, q] * x[n, c, k + q, l + r | 0.0]")},
      {OVER_IMAGE("H", "w[o, c, q] * x[n, c, k, l + r | 0.0]", "drop y[n, o, k, l] = s"),
       ROW_BY_ROW("H", "w[o, c, q] * x[n, c, k, l + r | 0.0]")},
      {OVER_IMAGE("1", "w[o, c, q] * x[n, c, k + q, l + r | 0.0]", "drop y[n, o, k, l] = s"),
       ROW_BY_ROW("1", "w[o, c, q] * x[n, c, k + q, l + r | 0.0]")},
  };
  ExpectPass(ForAvx2, kWindows, kCases);
}

// Rows of an image, of a temporary and of an argument, that give every second element
// of the result.
constexpr Frame kImage = {
    "program p(x: f32[C, H, W], w: f32[O, C], v: f32[O, H, C]) -> (y: f32[O, 2*H, 2*W]) {\n"
    "  temp t: f32[C, H, W]\n  for c in [0, C) { for i in [0, H) { for j in [0, W) { t[c, i, j] = x[c, i, j] } } }\n",
    "\n}\n"};

#define IMAGE(value, ends) \
  "for o in [0, O) { for k in [0, H) { for l in [0, W) { " SUM_OF(value) " " ends " } } }"
#define SUM_OF(value) "acc s: f32 = sum for m in [0, C) { s += " value " }"

TEST(TurnResults, SumsThatLieApartAreGathered) {
  constexpr PassCase kCases[] = {
      {IMAGE("w[o, m] * t[m, k, l]", "y[o, 2*k, 2*l] = s"),
       "assume : 549755813887*H*O*W temp gathered: f32[O, H, W] for o in [0, O) { for k in [0, H) { for l in [0, W) { "
       SUM_OF("w[o, m] * t[m, k, l]") " gathered[o, k, l] = s } } }"
       " for o_2 in [0, O) { for k_2 in [0, H) { for l_2 in [0, W) { y[o_2, 2*k_2, 2*l_2] = gathered[o_2, k_2, l_2] } } }"},
      // Not for an argument, whose rows stay apart; nor for parts of rows, where the other factor
      // moves with them, or for results that lie side by side.
      {IMAGE("w[o, m] * x[m, k, l]", "y[o, 2*k, 2*l] = s"), ""},
      {"for o in [0, O) { for k in [0, H) { for l in [0, W/2) { " SUM_OF("w[o, m] * t[m, k, l]")
       " y[o, 2*k, 2*l] = s } } }", ""},
      {IMAGE("v[o, k, m] * t[m, k, l]", "y[o, 2*k, 2*l] = s"), ""},
      {IMAGE("w[o, m] * t[m, k, l]", "y[o, 2*k, l] = s"), ""},
  };
  ExpectPass(ForAvx2, kImage, kCases);
}

// A temporary whose columns lie apart is read along the sum, if kernels need not be packed in
// each call instead.
constexpr Frame kPoints = {
    "program p(x: f32[N, C], w: f32[O, C], v: f32[C, O]) -> (y: f32[O, N], one: f32[1]) {\n"
    "  temp t: f32[N, C]\n  for i in [0, N) { for c in [0, C) { t[i, c] = x[i, c] } }\n",
    "\n  drop one[0] = 0.0\n}\n"};
#define POINTS(kernel, points)                                                                                         \
  "for o in [0, O) { for j in [0, N) { acc s: f32 = sum for c in [0, C) { s += " kernel " * " points " } y[o, j] = "   \
  "max(s, 0.0) } }"
#define POINTS_TURNED(kernel)                                                                                          \
  "assume : 549755813887*N*O temp turned: f32[N, O] for j in [0, N) { for o in [0, O) { "                      \
  "acc s: f32 = sum for c in [0, C) { s += " kernel " * t[j, c] } turned[j, o] = s } } "                               \
  "for o_2 in [0, O) { for j_2 in [0, N) { y[o_2, j_2] = max(turned[j_2, o_2], 0.0) } }"

TEST(TurnResults, ColumnsThatLieApart) {
  constexpr PassCase kCases[] = {
      {POINTS("v[c, o]", "t[j, c]"), POINTS_TURNED("v[c, o]")},
      {POINTS("w[o, c]", "t[j, c]"), ""},
      // Not for an argument, which may be packed as well.
      {POINTS("v[c, o]", "x[j, c]"), ""},
  };
  ExpectPass(ForAvx2, kPoints, kCases);
}

TEST(TurnResults, KernelsThatArePackedOnce) {
  const auto bound = [](Program& program) { return TurnResults(program, jit::Isa::kAvx2, {false, true, false}); };
  ExpectPass(bound, kPoints, {{POINTS("w[o, c]", "t[j, c]"), POINTS_TURNED("w[o, c]")}});
}
// clang-format on

}  // namespace
}  // namespace nestor::loop
