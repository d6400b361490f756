// Sums of equal terms become products, unless the terms differ or the type would round otherwise.
#include "fusion/equal_terms.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], g: f64, n: i32, w: bf16) -> (y: f32[N], z: f32[N]) { temp t: f32[N] acc s: f32 = sum acc d: f64 = sum "
    "acc m: f32 = max acc c: i32 = sum acc b: bf16 = sum for j in [0, N) { y[j] = 0.0 ",
    " z[j] = s + f32(d) + m + f32(c) + f32(b) } }"};

TEST(EqualTerms, BecomeProducts) {
  ExpectPass(
      MultiplyEqualTerms, kFrame,
      {
          {"for k in [j + 1, N) { t[k] = x[k] s += x[j] }",
           "for k in [j + 1, N) { t[k] = x[k] } "
           "for z_2 in [0, min(max(-j + N - 1, 0), 1)) { s += x[j] * f32(index(-j + N - 1)) }"},
          {"for k in [0, j) { d += g * f64(2.0) }",
           "for z_2 in [0, min(max(j, 0), 1)) { d += g * f64(2.0) * f64(index(j)) }"},
          {"for k in [0, j) { m max= x[j] }", "for z_2 in [0, min(max(j, 0), 1)) { m max= x[j] }"},
          {"for k in [2, 9) { s += x[j] m max= x[3] }", "s += x[j] * 7.0 m max= x[3]"},
          {"for k in [0, j) { for l in [0, 4) { s += x[3] } }",
           "for z_2 in [0, min(max(j, 0), 1)) { s += x[3] * 4.0 * f32(index(j)) }"},
          {"for k in [0, j) { y[j] += x[3] }",
           "for z_2 in [0, min(max(j, 0), 1)) { y[j] += x[3] * f32(index(j)) }"},
      });
}

TEST(EqualTerms, StayWhereTermsDiffer) {
  ExpectPass(MultiplyEqualTerms, kFrame,
             {
                 {"for k in [0, j) { s += x[k] }", ""},
                 {"for k in [0, j) { s += f32(index(k)) }", ""},
                 {"for k in [0, j) { y[k] += x[3] }", ""},
                 {"for k in [0, j) { t[0] = s s += x[3] }", ""},
                 {"for k in [0, j) { t[0] = x[k] s += t[0] }", ""},
                 {"for k in [0, j) { s += x[3] s += x[k] }", ""},
                 {"for k in [0, j) { acc r: f32 = sum r += x[3] t[k] = r }", ""},
                 {"for k in [0, j) step 2 { s += x[3] }", ""},
                 {"for k in [0, j) { drop y[j] if j < 4 += x[3] }", ""},
             });
}

// An i32 may not hold the number of terms, a bf16 does not.
TEST(EqualTerms, StayOfNarrowTypes) {
  ExpectPass(MultiplyEqualTerms, kFrame,
             {
                 {"for k in [0, j) { c += n }", ""},
                 {"for k in [0, j) { b += w }", ""},
             });
}

}  // namespace
}  // namespace nestor::loop
