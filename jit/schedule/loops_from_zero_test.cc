// Loops that count from the begin of their part, and those that stay.
#include "jit/schedule/loops_from_zero.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[K], w: f32[M], z: f32[N]) -> (y: f32[N]) {\n",
                          "\n  drop y[0] = 0.0\n}\n"};

TEST(LoopsFromZero, PartsThatMove) {
  ExpectPass(
      CountFromZero, kFrame,
      {
          {"for q in [0, N) { acc s: f32 = sum for k in [q*M, q*M + M) { s += x[k | 0.0] * w[k - q*M] } y[q] = s }",
           "for q in [0, N) { acc s: f32 = sum for k in [0, M) { s += x[k + M*q | 0.0] * w[k] } y[q] = s }"},
          // A part that is cut off at the end.
          {"for q in [0, N) { acc s: f32 = sum for k in [q*M, min(K, q*M + M)) { s += x[k] } y[q] = s }",
           "for q in [0, N) { acc s: f32 = sum for k in [0, min(K - M*q, M)) { s += x[k + M*q] } y[q] = s }"},
          // A loop in another one: both count from 0.
          {"for q in [0, N) { acc s: f32 = sum for k in [q*M, q*M + M) { for l in [k, k + 3) { s += x[l | 0.0] } } y[q] = s }",
           "for q in [0, N) { acc s: f32 = sum for k in [0, M) { for l in [0, 3) { s += x[k + M*q + l | 0.0] } } y[q] = s }"},
      });
}

TEST(LoopsFromZero, LeavesTheOthers) {
  ExpectPass(
      CountFromZero, kFrame,
      {
          // Triangles, and windows that a border clips: nothing is gained.
          {"for q in [0, N) { acc s: f32 = sum for k in [q, K) { s += x[k] } y[q] = s }", ""},
          {"for q in [0, N) { acc s: f32 = sum for k in [max(0, q - 1), min(K, q + 2)) { s += x[k] } y[q] = s }",
           ""},
          // A part whose length moves, too.
          {"for q in [0, N) { acc s: f32 = sum for k in [q*M, q*K + M) { s += x[k | 0.0] } y[q] = s }",
           ""},
      });
}

}  // namespace
}  // namespace nestor::loop
