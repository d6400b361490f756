// Programs before and after the pass: which products are assumed to fit int64, over which domains.
#include "fusion/assume_products.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[N, C], k: i64[N]; $s: i64) -> (y: f32[N]) {\n",
                          "\n  for o in [0, N) { y[o] = 1.0 }\n}\n"};

TEST(AssumeProducts, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // Affine numbers are proven before a run anyway; nothing is assumed about gathered ones.
      {"for i in [0, N) { for c in [0, C) { y[i] = x[i*$s + c, c | 0.0] } }", ""},
      {"for i in [0, N) { for c in [0, C) { y[i] = x[k[i]*c, c | 0.0 if k[c] < c/$s] } }", ""},
      // The domain has the loops whose indices the number holds, whatever others are around.
      {"for i in [0, N) { for j in [0, 4) { for c in [0, C) { y[i] = x[i*c, c | 0.0] } } }",
       "assume d < N, d_2 < C: d*d_2  "
       "for i in [0, N) { for j in [0, 4) { for c in [0, C) { y[i] = x[i*c, c | 0.0] } } }"},
      // Numbers in conditions, beside gathers, in the indices of gathers, on the left; equal
      // ones once.
      {"for i in [0, N) { for c in [0, C) { drop y[i*c] if c/i < $s && k[c] < i, i == 0 || i*c + 1 < 4  = "
       "x[k[i%c] + i*c, 0 | 0.0] } }",
       "assume d < N, d_2 < C: d*d_2  assume d < N, d_2 < C: d_2/d  assume d < N, d_2 < C: d*d_2 + 1  "
       "assume d < N, d_2 < C: d%d_2  "
       "for i in [0, N) { for c in [0, C) { drop y[i*c] if c/i < $s && k[c] < i, i == 0 || i*c + 1 < 4  = "
       "x[k[i%c] + i*c, 0 | 0.0] } }"},
  };
  ExpectPass(AssumeProducts, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
