// Stores that no read meets go, or their loops become shorter; those that a read may meet stay.
#include "fusion/dead_stores.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[N]) -> (y: f32[N]) { for j in [0, N) { temp t: f32[N] ",
                          " } }"};

TEST(DeadStores, ReadsElsewhere) {
  ExpectPass(
      EliminateDeadStores, kFrame,
      {
          {"for k in [0, j + 1) { t[k] = x[k] } for l in [j + 1, N) { t[l] = 2.0 } for m in [0, min(j + 1, N)) { y[j] = t[m] }",
           "for k in [0, j + 1) { t[k] = x[k] } for m in [0, min(j + 1, N)) { y[j] = t[m] }"},
          {"for k in [0, j) { t[k] = x[k] } for l in [j, N) { t[l] = 2.0 } for m in [j + 1, N) { y[j] = t[m] }",
           "for l in [j + 1, N) { t[l] = 2.0 } for m in [j + 1, N) { y[j] = t[m] }"},
          {"for k in [0, j) { t[k] = x[k] y[j] = 1.0 } for l in [j, N) { t[l] = 2.0 } for m in [j, N) { y[j] = t[m] }",
           "for k in [0, j) { y[j] = 1.0 } for l in [j, N) { t[l] = 2.0 } for m in [j, N) { y[j] = t[m] }"},
      });
}

TEST(DeadStores, ReadsInOtherNests) {
  constexpr Frame kSquare = {"program p(x: f32[N, N]) -> (y: f32[N]) { temp t: f32[N, N] ", " }"};
  ExpectPass(
      EliminateDeadStores, kSquare,
      {
          // The triangle above the diagonal is for nobody.
          {"for i in [0, N) { for j in [0, i + 1) { t[i, j] = x[i, j] } for k in [i + 1, N) { t[i, k] = 0.0 } } "
           "for l in [0, N) { for m in [l, N) { y[l] = t[m, l] } }",
           "for i in [0, N) { for j in [0, i + 1) { t[i, j] = x[i, j] } } for l in [0, N) { for m in [l, N) { y[l] = t[m, l] } }"},
          // In the same nest, reads of another row.
          {"for i in [0, N) { for j in [0, i + 1) { t[i, j] = x[i, j] } for k in [i + 1, N) { t[i, k] = 0.0 } "
           "for l in [0, i) { y[i] = t[l, l] } }",
           "for i in [0, N) { for j in [0, i + 1) { t[i, j] = x[i, j] } for l in [0, i) { y[i] = t[l, l] } }"},
          {"for i in [0, N) { for j in [0, i + 1) { t[i, j] = x[i, j] } for k in [i + 1, N) { t[i, k] = 0.0 } "
           "for l in [0, i) { y[i] = t[l, i] } }",
           "for i in [0, N) { for k in [i + 1, N) { t[i, k] = 0.0 } for l in [0, i) { y[i] = t[l, i] } }"},
      });
}

TEST(DeadStores, ShortensLoopsThatOnlyStore) {
  ExpectPass(
      EliminateDeadStores, kFrame,
      {
          {"for k in [0, N) { t[k] = x[k] } for m in [0, min(j + 1, N)) { y[j] = t[m] }",
           "for k in [0, min(j + 1, N)) { t[k] = x[k] } for m in [0, min(j + 1, N)) { y[j] = t[m] }"},
          {"for k in [0, N) { t[k] = x[k] } for m in [j, N) { y[j] = t[m] + t[m] }",
           "for k in [j, N) { t[k] = x[k] } for m in [j, N) { y[j] = t[m] + t[m] }"},
          // Elements that only the removed iterations read need not be stored.
          {"temp u: f32[N] for k in [0, j) { u[k] = x[k] } for n in [j, N) { u[n] = 1.0 } "
           "for l in [0, N) { t[l] = u[l] } for m in [0, j) { y[j] = t[m] }",
           "temp u: f32[N] for k in [0, j) { u[k] = x[k] } for l in [0, j) { t[l] = u[l] } for m in [0, j) { y[j] = t[m] }"},
      });
}

TEST(DeadStores, LoopsThatStay) {
  ExpectPass(
      EliminateDeadStores, kFrame,
      {
          {"for k in [0, N) { t[k] = x[k] } for m in [0, j) { y[j] = t[m] + t[m + 1] }", ""},
          {"for k in [0, N) { t[k] = x[k] } for m in [0, j) { y[j] = t[m] } for l in [j, N) { y[j] = t[l] }",
           ""},
          {"for k in [0, N) { t[k] = x[k] y[k] = 1.0 } for m in [0, j) { y[j] = t[m] }", ""},
          {"for k in [0, N) { drop t[k] if k < 5 = x[k] } for m in [0, j) { y[j] = t[m] }", ""},
          // The range is not proven to lie within.
          {"for k in [0, N) { t[k] = x[k] } for m in [0, j + 7) { y[j] = t[m | 0.0] }", ""},
          // Bounds that mean nothing where the temporary is declared.
          {"for k in [0, N) { t[k] = x[k] } for n in [0, N) { for m in [0, n) { y[j] = t[m] } }",
           ""},
      });
}

TEST(DeadStores, ReadsThatMayMeet) {
  ExpectPass(
      EliminateDeadStores, kFrame,
      {
          {"for k in [0, j + 1) { t[k] = x[k] } for l in [j, N) { t[l] = 2.0 } for m in [0, min(j + 1, N)) { y[j] = t[m] }",
           ""},
          {"for k in [0, j) { t[k] = x[k] } for l in [j, N) { t[l] = 2.0 } for m in [0, j) { y[j] = t[m | 0.0] + t[m + 1 | 0.0] }",
           ""},
          // A sum reads what it adds to.
          {"for k in [0, N) { t[k] = x[k] } for l in [j, N) { t[l] += 2.0 } for m in [0, j) { y[j] = t[m] }",
           ""},
          // Bounds that are others at the read.
          {"for i in [0, N) { for k in [0, i) { t[k] = x[k] } for l in [i, N) { t[l] = 2.0 } } for n in [0, N) { for m in [0, n) { y[j] = t[m] } }",
           ""},
      });
}

}  // namespace
}  // namespace nestor::loop
