// Batch loops before and after they become one, with the matrix between them; and those that stay.
#include "jit/schedule/merge_batches.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[B, M, N], w: f32[M, N], s: f32[B]) -> (y: f32[B, M, N], z: f32[B, M, N]) {\n",
    "\n  drop y[0, 0, 0] = 0.0 drop z[0, 0, 0] = 0.0\n}\n"};

TEST(MergeBatches, MatricesThatPass) {
  ExpectPass(
      MergeBatches, kFrame,
      {
          {"temp t: f32[B, M, N] for b in [0, B) { for i in [0, M) { for j in [0, N) { t[b, i, j] = x[b, i, j] * s[b] } } } "
           "for c in [0, B) { for k in [0, N) { for l in [0, M) { y[c, l, k] = t[c, l, k] } } }",
           "for b in [0, B) { temp t: f32[M, N] for i in [0, M) { for j in [0, N) { t[i, j] = x[b, i, j] * s[b] } } "
           "for k in [0, N) { for l in [0, M) { y[b, l, k] = t[l, k] } } }"},
          // One after the other.
          {"temp t: f32[B, M, N] temp u: f32[B, M, N] "
           "for b in [0, B) { for i in [0, M) { for j in [0, N) { t[b, i, j] = x[b, i, j] u[b, i, j] = 2.0 } } } "
           "for c in [0, B) { for k in [0, N) { for l in [0, M) { y[c, l, k] = t[c, l, k] } } } "
           "for d in [0, B) { for m in [0, N) { for n in [0, M) { z[d, n, m] = u[d, n, m] } } }",
           "for b in [0, B) { temp t: f32[M, N] temp u: f32[M, N] for i in [0, M) { for j in [0, N) { t[i, j] = x[b, i, j] u[i, j] = 2.0 } } "
           "for k in [0, N) { for l in [0, M) { y[b, l, k] = t[l, k] } } for m in [0, N) { for n in [0, M) { z[b, n, m] = u[n, m] } } }"},
          // After two readers of a matrix merge, it is handed on to one loop only.
          {"temp t: f32[B, M, N] temp u: f32[B, M, N] "
           "for b in [0, B) { for i in [0, M) { for j in [0, N) { t[b, i, j] = x[b, i, j] } } } "
           "for c in [0, B) { for k in [0, N) { for l in [0, M) { u[c, l, k] = t[c, l, k] } } } "
           "for d in [0, B) { for m in [0, N) { for n in [0, M) { y[d, n, m] = u[d, n, m] + t[d, n, m] } } }",
           "for b in [0, B) { temp t: f32[M, N] for i in [0, M) { for j in [0, N) { t[i, j] = x[b, i, j] } } temp u: f32[M, N] "
           "for k in [0, N) { for l in [0, M) { u[l, k] = t[l, k] } } for m in [0, N) { for n in [0, M) { y[b, n, m] = u[n, m] + t[n, m] } } }"},
      });
}

TEST(MergeBatches, LeavesTheOthers) {
  ExpectPass(
      MergeBatches, kFrame,
      {
          // A matrix that all batches read; no matrix that is handed on; one that other
          // loops read, too.
          {"temp t: f32[B, M, N] for b in [0, B) { for i in [0, M) { for j in [0, N) { t[b, i, j] = x[b, i, j] * w[i, j] } } } "
           "for c in [0, B) { for k in [0, N) { for l in [0, M) { y[c, l, k] = t[c, l, k] } } }",
           ""},
          {"for b in [0, B) { for i in [0, M) { for j in [0, N) { z[b, i, j] = x[b, i, j] } } } "
           "for c in [0, B) { for k in [0, N) { for l in [0, M) { y[c, l, k] = x[c, l, k] } } }",
           ""},
          {"temp t: f32[B, M, N] for b in [0, B) { for i in [0, M) { for j in [0, N) { t[b, i, j] = x[b, i, j] } } } "
           "for c in [0, B) { for k in [0, N) { for l in [0, M) { y[c, l, k] = t[c, l, k] } } } "
           "for d in [0, M) { for e in [0, N) { drop z[0, d, e] = t[0, d, e | 0.0] } }",
           ""},
          // Elements that another batch has written.
          {"temp t: f32[B, M, N] for b in [0, B) { for i in [0, M) { for j in [0, N) { t[b, i, j] = x[b, i, j] } } } "
           "for c in [0, B) { for k in [0, N) { for l in [0, M) { y[c, l, k] = t[B - 1 - c, l, k] } } }",
           ""},
          {"temp t: f32[B, M, N] temp u: f32[B] for b in [0, B) { u[b] = s[b] for i in [0, M) { for j in [0, N) { t[b, i, j] = x[b, i, j] } } } "
           "for c in [0, B) { for k in [0, N) { for l in [0, M) { y[c, l, k] = t[c, l, k] * u[B - 1 - c] } } }",
           ""},
          // Other bounds.
          {"temp t: f32[B, M, N] for b in [0, B) { for i in [0, M) { for j in [0, N) { t[b, i, j] = x[b, i, j] } } } "
           "for c in [1, B) { for k in [0, N) { for l in [0, M) { y[c, l, k] = t[c, l, k] } } }",
           ""},
      });
}

}  // namespace
}  // namespace nestor::loop
