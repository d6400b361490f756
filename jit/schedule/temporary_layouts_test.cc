// Temporaries between contractions before and after their axes moved; without bound weights, none
// do.
#include "jit/schedule/temporary_layouts.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[C, H, W], w: f32[K, C], v: f32[O, K], e: f32[8, C], z: f32[O, 8]) -> (y: f32[O, H, W]) {\n",
    "\n  drop y[0, 0, 0] = 0.0\n}\n"};

// Texts that macros make are laid out by hand.
// clang-format off
#define OVER(k, n, body) "for " k " in [0, " n ") { for i in [0, H) { for j in [0, W) { " body " } } } "
#define SUM(k, n, step) "acc s: f32 = sum for " k " in [0, " n ") { s += " step " } "
#define FIRST(t) OVER("k", "K", SUM("c", "C", "w[k, c] * x[c, i, j]") t " = max(s, 0.0)")
#define SECOND(t) OVER("o", "O", SUM("l", "K", "v[o, l] * " t) "y[o, i, j] = s")

absl::StatusOr<bool> WithBound(Program& program) {
  return LayOutTemporaries(program, jit::Isa::kAvx2, {false, true, true, true, true});
}

TEST(TemporaryLayouts, WhatIsSummedGoesLast) {
  constexpr PassCase kCases[] = {
      {"temp t: f32[K, H, W] " FIRST("t[k, i, j]") SECOND("t[l, i, j]"),
       "temp t: f32[H, W, K] " FIRST("t[i, j, k]") SECOND("t[i, j, l]")},
      // Through windows of contractions, and for temporaries that are read at the end.
      {"temp t: f32[K, H, W] " FIRST("t[k, i, j]")
       OVER("o", "O", SUM("l", "K", "v[o, l] * t[l, 2*i, j + 1 | 0.0]") "y[o, i, j] = s")
       OVER("k_2", "K", "acc s: f32 = sum for c_2 in [0, C) { s += w[k_2, c_2] * x[c_2, i, j] } y[k_2, i, j] = s + t[k_2, i, j]"),
       "temp t: f32[H, W, K] " FIRST("t[i, j, k]")
       OVER("o", "O", SUM("l", "K", "v[o, l] * t[2*i, j + 1, l | 0.0]") "y[o, i, j] = s")
       OVER("k_2", "K", "acc s: f32 = sum for c_2 in [0, C) { s += w[k_2, c_2] * x[c_2, i, j] } y[k_2, i, j] = s + t[i, j, k_2]")},
      // Other statements pass the wish on.
      {"temp t: f32[K, H, W] temp u: f32[K, H, W] temp a: f32[K, W] " FIRST("t[k, i, j]") SECOND("t[l, i, j]")
       OVER("q", "K", "u[q, i, j] = exp(t[q, i, j])") OVER("q", "K", "a[q, j] = u[q, i, j]"),
       "temp t: f32[H, W, K] temp u: f32[H, W, K] temp a: f32[W, K] " FIRST("t[i, j, k]") SECOND("t[i, j, l]")
       OVER("q", "K", "u[i, j, q] = exp(t[i, j, q])") OVER("q", "K", "a[j, q] = u[i, j, q]")},
      // Not temporaries that other windows slide over, that have few kernels, or that only
      // one product touches.
      {"temp t: f32[K, H, W] " FIRST("t[k, i, j]") SECOND("t[l, i, j]")
       OVER("q", "K", "y[0, i, j] = t[q, i, j] for r in [0, 2) { y[0, i, j] = t[q, i + r, j | 0.0] }"), ""},
      {"temp t: f32[8, H, W] " OVER("k", "8", SUM("c", "C", "e[k, c] * x[c, i, j]") "t[k, i, j] = s")
       OVER("o", "O", SUM("l", "8", "z[o, l] * t[l, i, j]") "y[o, i, j] = s"), ""},
      {"temp t: f32[K, H, W] " FIRST("t[k, i, j]") OVER("q", "K", "y[q, i, j] = t[q, i, j]"), ""},
      {"temp t: f32[K, H, W] " OVER("q", "K", "t[q, i, j] = x[q, i, j]") SECOND("t[l, i, j]"), ""},
      // Products that want different axes; and one of temporaries alone, which wants none.
      {"temp t: f32[K, H, W] " FIRST("t[k, i, j]") SECOND("t[l, i, j]")
       OVER("o", "O", SUM("l", "H", "v[o, l] * t[i, l, j]") "y[o, i, j] = s"), ""},
      {"temp t: f32[K, H, W] temp u: f32[O, K] " FIRST("t[k, i, j]") SECOND("t[l, i, j]")
       OVER("o", "O", SUM("l", "K", "u[o, l] * t[l, i, j]") "y[o, i, j] = s"), ""},
  };
  ExpectPass(WithBound, kFrame, kCases);
}

// Weights that are not bound would be packed in each call.
TEST(TemporaryLayouts, OfUnboundWeightsNothingIsWanted) {
  ExpectPass([](Program& program) { return LayOutTemporaries(program, jit::Isa::kAvx2, {}); }, kFrame,
                     {{"temp t: f32[K, H, W] " FIRST("t[k, i, j]") SECOND("t[l, i, j]"), ""}});
}
// clang-format on

}  // namespace
}  // namespace nestor::loop
