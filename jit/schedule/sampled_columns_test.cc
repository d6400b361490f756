// Strided reads before and after their columns are copied side by side.
#include "jit/schedule/sampled_columns.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[C, 2*H, 2*W], w: f32[O, C]) -> (y: f32[O, H, W]) {\n temp t: f32[O, H, W]\n",
    "\n  drop y[0, 0, 0] = 0.0\n}\n"};

#define NEST(read, stored)                                                  \
  "for o in [0, O) { for i in [0, H) { for j in [0, W) { acc s: f32 = sum " \
  "for c in [0, C) { s += w[o, c] * " read " } " stored " = s } } }"

TEST(SampledColumns, TextInTextOut) {
  ExpectPass(
      CopySampledColumns, kFrame,
      {
          {NEST("x[c, 2*i + 1, 2*j]", "t[o, i, j]"),
           R"(assume : 549755813887*C*H*W
           temp sample: f32[C, H, W]
           for c_2 in [0, C) { for i_2 in [0, H) { for j_2 in [0, W) { sample[c_2, i_2, j_2] = x[c_2, 2*i_2 + 1, 2*j_2] } } }
           for o in [0, O) { for i in [0, H) { for j in [0, W) {
             acc s: f32 = sum
             for c in [0, C) { s += w[o, c] * sample[c, i, j] }
             t[o, i, j] = s
           } } })"},
          // Columns that lie side by side; a result that keeps its shape; leaving the tensor.
          {NEST("x[c, 2*i, j]", "t[o, i, j]"), ""},
          {NEST("x[c, 2*i, 2*j]", "y[o, i, j]"), ""},
          {NEST("x[c, 2*i, 2*j + 2 | 0.0]", "t[o, i, j]"), ""},
      });
}

// Points that are each a row of their own.
TEST(SampledColumns, RowsThatLieAlongTheSum) {
  constexpr Frame kRows = {
      "program p(x: f32[2*H, 2*W, C], w: f32[O, C], v: f32[O, C, 3]) -> (y: f32[H, W, O]) {\n temp t: f32[H, W, O]\n",
      "\n  drop y[0, 0, 0] = 0.0\n}\n"};
  ExpectPass(
      CopySampledColumns, kRows,
      {
          {NEST("x[2*i, 2*j + 1, c]", "t[i, j, o]"),
           R"(assume : 549755813887*C*H*W
           temp sample: f32[H, W, C]
           for i_2 in [0, H) { for j_2 in [0, W) { for c_2 in [0, C) { sample[i_2, j_2, c_2] = x[2*i_2, 2*j_2 + 1, c_2] } } }
           for o in [0, O) { for i in [0, H) { for j in [0, W) {
             acc s: f32 = sum
             for c in [0, C) { s += w[o, c] * sample[i, j, c] }
             t[i, j, o] = s
           } } })"},
          // All rows; a result that keeps its shape; windows, a copy of which would hold elements
          // several times.
          {NEST("x[2*i, j, c]", "t[i, j, o]"), ""},
          {NEST("x[2*i, 2*j, c]", "y[i, j, o]"), ""},
          {"for o in [0, O) { for i in [0, H) { for j in [0, W) { acc s: f32 = sum "
           "for r in [0, 3) { for c in [0, C) { s += v[o, c, r] * x[2*i, 2*j + r, c] } } t[i, j, o] = s } } }",
           ""},
      });
}

}  // namespace
}  // namespace nestor::loop
