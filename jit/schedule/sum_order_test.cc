// The order of a contraction's sums before and after the pass.
#include "jit/schedule/sum_order.h"

#include <string>

#include "absl/strings/substitute.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

absl::StatusOr<bool> OrderForLargeTiles(Program& program) {
  return SumWindowsFirst(program, jit::Isa::kAvx512);
}
absl::StatusOr<bool> OrderForSmallTiles(Program& program) {
  return SumWindowsFirst(program, jit::Isa::kAvx2);
}

constexpr Frame kFrame = {"program p(x: f32[C, N], w: f32[O, C, R], d: f32[H, N], e: f32[O, Q, R])"
                          " -> (y: f32[O, N - R + 1], z: f32[H, O, N], one: f32[1]) {\n",
                          "\n  drop one[0] = 0.0 drop y[0, 0] = 0.0 drop z[0, 0, 0] = 0.0\n}\n"};

// A nest with two sums.
#define MOVES(sums)                                                              \
  "for h in [0, H) { for o in [0, O) { for i in [0, N) { acc s: f32 = sum " sums \
  " s += e[o, q, r | 0.0] * d[h + q - 1, i + r | 0.0] } } z[h, o, i] = s } } }"

TEST(SumOrder, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, R) { s += w[o, c, r] * x[c, i + r] } } y[o, i] = s } }",
       "for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for r in [0, R) { for c in [0, C) { s += w[o, c, r] * x[c, i + r] } } y[o, i] = s } }"},
      // A sum of few steps moves inside of one whose bounds move with a batch.
      {MOVES("for r in [0, 3) { for q in [max(-h + 1, 0), min(Q, -h + H + 1)) {"),
       MOVES("for q in [max(-h + 1, 0), min(Q, -h + H + 1)) { for r in [0, 3) {")},
      {MOVES("for r in [0, 3) { for q in [0, Q) {"), ""},
      // Not without a window, or a contraction.
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, 3) { s += w[o, c, r | 0.0] * x[c, i + r | 0.0] } } y[o, i] = s } }",
       ""},
      {"for o in [0, O) { for i in [0, N - R + 1) { acc s: f32 = sum"
       " for c in [0, C) { for r in [0, R) { s += x[c, i + r] } } y[o, i] = s } }",
       ""},
  };
  ExpectPass(OrderForLargeTiles, kFrame, kCases);
  ExpectPass(OrderForSmallTiles, kFrame, kCases);
  constexpr PassCase kManySteps[] = {
      {MOVES("for r in [0, 13) { for q in [max(-h + 1, 0), min(Q, -h + H + 1)) {"), ""}};
  ExpectPass(OrderForLargeTiles, kFrame, kManySteps);
}

// The loop over channels is inside of rows of the window of which some are left out, so that it
// steps over one row, which is written out.
TEST(SumOrder, InSmallTilesBoundsThatMoveComeFirst) {
  const auto nest = [](const char* sums) {
    return absl::Substitute(
        "for h in [0, H) { for o in [0, O) { for i in [0, N) { acc s: f32 = sum $0 for r in [0, 3) {"
        " s += e[o, q + c, r | 0.0] * d[h + q + c - 1, i + r | 0.0] } } } z[h, o, i] = s } } }",
        sums);
  };
  const std::string text =
      nest("for c in [0, C) { for q in [max(-h + 1, 0), min(Q, -h + H + 1)) {");
  const std::string turned =
      nest("for q in [max(-h + 1, 0), min(Q, -h + H + 1)) { for c in [0, C) {");
  const PassCase small[] = {{text.c_str(), turned.c_str()}};
  ExpectPass(OrderForSmallTiles, kFrame, small);
  const PassCase large[] = {{text.c_str(), ""}};
  ExpectPass(OrderForLargeTiles, kFrame, large);
}

}  // namespace
}  // namespace nestor::loop
