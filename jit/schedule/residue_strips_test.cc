// The gradient of a convolution of stride 2 before and after the pass.
#include "jit/schedule/residue_strips.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[B, C, H, W], w: f32[C, O, 3, 3], b: f32[O]) -> (y: f32[B, O, 2*H, 2*W]) {\n",
    "\n}\n"};

// The gradient of a convolution of stride 2; `o`: the end of the loop over kernels.
#define SUM                                                                               \
  "acc s: f32 = sum for c in [0, C) { for q in [0, min(-h/2 + H, (h + 1)/2 - h/2 + 1)) {" \
  " for r in [0, min(-i/2 + W, (i + 1)/2 - i/2 + 1)) {"                                   \
  " s += x[n, c, h/2 + q, i/2 + r] * w[c, o, h%2 - 2*q + 1, i%2 - 2*r + 1] } } }"
#define NEST(o, ends)                                                                             \
  "for n in [0, B) { for o in [0, " o ") { for h in [0, 2*H) { for i in [0, 2*W) { " SUM " " ends \
  " } } } }"
#define GATHERED(assumed, o, ends)                                                             \
  "assume : " assumed                                                                          \
  " for n in [0, B) { for h_2 in [0, (2*H + 13)/14) { temp gathered: f32[14, 2*W, " o "]"      \
  " for h in [14*h_2, min(14*h_2 + 14, 2*H)) { for i in [0, 2*W) { for o in [0, " o ") { " SUM \
  " gathered[-14*h_2 + h, i, o] = s } } }"                                                     \
  " for o_2 in [0, " o                                                                         \
  ") { for h_3 in [14*h_2, min(14*h_2 + 14, 2*H)) { for i_2 in [0, 2*W) { " ends " } } } } }"

absl::StatusOr<bool> ForAvx2(Program& program) { return GatherResidues(program, jit::Isa::kAvx2); }

TEST(GatherResidues, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {NEST("O", "y[n, o, h, i] = max(s, b[o])"),
       GATHERED("15393162788836*O*W", "O",
                "y[n, o_2, h_3, i_2] = max(gathered[-14*h_2 + h_3, i_2, o_2], b[o_2])")},
      // Kernels that fill two vectors.
      {NEST("16", "drop y[n, o, h, i] = s"),
       GATHERED("246290604621376*W", "16",
                "drop y[n, o_2, h_3, i_2] = gathered[-14*h_2 + h_3, i_2, o_2]")},
      {NEST("15", "drop y[n, o, h, i] = s"), ""},
      // Not a nest with another sum in each row, nor where each kernel has its own elements of x.
      {"for n in [0, B) { for h in [0, 2*H) { acc t: f32 = sum for i in [0, 2*W) { for o in [0, O) { " SUM
       " t += s } } drop y[n, 0, h, 0] = t } }",
       ""},
      {"for n in [0, B) { for o in [0, O) { for h in [0, 2*H) { for i in [0, 2*W) { acc s: f32 = sum"
       " for r in [0, (i + 1)/2 - i/2 + 1) { s += x[n, o, h/2, i/2 + r | 0.0] * w[0, o, 0, i%2 - 2*r + 1] }"
       " y[n, o, h, i] = s } } } }",
       ""},
      // Nor images whose rows are not divided: one may be long.
      {"for n in [0, B) { for o in [0, O) { for i in [0, 2*W) { acc s: f32 = sum for c in [0, C) {"
       " for r in [0, min(-i/2 + W, (i + 1)/2 - i/2 + 1)) { s += x[n, c, 0, i/2 + r | 0.0] * w[c, o, 0, i%2 - 2*r + 1] } }"
       " drop y[n, o, 0, i] = s } } }",
       ""},
      // Nor results that lie side by side.
      {"for n in [0, B) { for h in [0, 2*H) { for i in [0, 2*W) { for o in [0, O) { " SUM
       " y[n, o, h, i] = s } } } }",
       ""},
  };
  ExpectPass(ForAvx2, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
