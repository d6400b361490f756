// Copies before and after they leave a loop; where the loop may not run, they do not copy either.
#include "jit/schedule/hoist_copies.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[30], w: f32[20], ids: i64[P]) -> (y: f32[P, 10], z: f32[P]) {\n",
    "\n  drop y[0, 0] = 0.0 drop z[0] = 0.0\n}\n"};
constexpr char kUse[] = "for l in [0, 10) { y[p, l] = t[l] }";

TEST(HoistCopies, TextInTextOut) {
  ExpectPass(
      HoistCopies, kFrame,
      {
          // The inner loop certainly runs, the outer one may not.
          {"for p in [0, P) { for i in [0, 3) { temp t: f32[10] for k in [0, 10) { t[k] = x[3*k] } "
           "for l in [0, 10) { y[p, l] = t[l] } } }",
           "temp t: f32[10] for k in [0, min(562949953421312*min(P, 1), 10)) { t[k] = x[3*k] } "
           "for p in [0, P) { for i in [0, 3) { for l in [0, 10) { y[p, l] = t[l] } } }"},
          // A copy in two parts; the one that depends on the outer loop keeps it there.
          {"for p in [0, P) { for i in [0, 3) { temp t: f32[10] for k in [0, 9) { t[k] = f32(index(p)) } "
           "for k_2 in [9, 10) { t[k_2] = 0.0 } for l in [0, 10) { y[p, l] = t[l] } } }",
           "for p in [0, P) { temp t: f32[10] for k in [0, 9) { t[k] = f32(index(p)) } "
           "for k_2 in [9, 10) { t[k_2] = 0.0 } for i in [0, 3) { for l in [0, 10) { y[p, l] = t[l] } } }"},
          // A copy of a copy.
          {"for p in [0, P) { temp u: f32[10] for k in [0, 10) { u[k] = x[3*k] } temp t: f32[10] "
           "for k_2 in [0, 10) { t[k_2] = u[9 - k_2] } for l in [0, 10) { y[p, l] = t[l] } }",
           "temp u: f32[10] for k in [0, min(562949953421312*min(P, 1), 10)) { u[k] = x[3*k] } temp t: f32[10] "
           "for k_2 in [0, min(562949953421312*min(P, 1), 10)) { t[k_2] = u[9 - k_2] } "
           "for p in [0, P) { for l in [0, 10) { y[p, l] = t[l] } }"},
      });
}

// A copy that moves with a short loop alone gets an axis for it.
TEST(HoistCopies, OutOfTwoLoops) {
  ExpectPass(
      HoistCopies, kFrame,
      {
          {"for p in [0, P) { for i in [0, 3) { temp t: f32[4] for k in [0, 4) { t[k] = x[3*k + i] } "
           "for l in [0, 4) { y[p, l + i] = t[l] } } }",
           "temp t: f32[3, 4] for i_2 in [0, min(562949953421312*min(P, 1), 3)) { for k in [0, 4) { "
           "t[i_2, k] = x[i_2 + 3*k] } } for p in [0, P) { for i in [0, 3) { for l in [0, 4) { "
           "y[p, i + l] = t[i, l] } } }"},
          // The loop that reads the copy fetches it ahead.
          {"for p in [0, P) { for i in [0, 3) { temp t: f32[4] for k in [0, 4) { t[k] = x[3*k + i] } "
           "for l in [0, 3) prefetch(2) t[l + 1] { y[p, l + i] = t[l] } } }",
           "temp t: f32[3, 4] for i_2 in [0, min(562949953421312*min(P, 1), 3)) { for k in [0, 4) { "
           "t[i_2, k] = x[i_2 + 3*k] } } for p in [0, P) { for i in [0, 3) { "
           "for l in [0, 3) prefetch(2) t[i, l + 1] { y[p, i + l] = t[i, l] } } }"},
          // A copy in two parts, of which the first alone moves with the short loop.
          {"for p in [0, P) { for i in [0, 3) { temp t: f32[4] for k in [0, 3) { t[k] = x[3*k + i] } "
           "for k_2 in [3, 4) { t[k_2] = 0.0 } for l in [0, 4) { y[p, l + i] = t[l] } } }",
           "temp t: f32[3, 4] for i_2 in [0, min(562949953421312*min(P, 1), 3)) { for k in [0, 3) { "
           "t[i_2, k] = x[i_2 + 3*k] } } for i_3 in [0, min(562949953421312*min(P, 1), 3)) { "
           "for k_2 in [3, 4) { t[i_3, k_2] = 0.0 } } for p in [0, P) { for i in [0, 3) { for l in [0, 4) { "
           "y[p, i + l] = t[i, l] } } }"},
          // The loop is long; the copy's length moves with it; the outer loop runs once at most; the
          // copy moves with both.
          {"for p in [0, P) { for i in [0, 17) { temp t: f32[4] for k in [0, 4) { t[k] = x[3*k + i] } "
           "for l in [0, 4) { drop y[p, l] = t[l] } } }",
           ""},
          {"for p in [0, P) { for i in [0, 3) { temp t: f32[i + 1] for k in [0, i + 1) { t[k] = x[3*k + i] } "
           "for l in [0, i + 1) { y[p, l] = t[l] } } }",
           ""},
          {"for p in [0, min(P, 1)) { for i in [0, 3) { temp t: f32[4] for k in [0, 4) { t[k] = x[3*k + i] } "
           "for l in [0, 4) { y[p, l + i] = t[l] } } }",
           ""},
          {"for p in [0, P) { for i in [0, 3) { temp t: f32[4] for k in [0, 4) { t[k] = f32(index(p + i)) } "
           "for l in [0, 4) { y[p, l + i] = t[l] } } }",
           ""},
      });
}

TEST(HoistCopies, LeavesTheOthers) {
  for (const char* fill : {
           "for k in [0, 10) { t[k] = f32(index(p)) }",  // differs in each iteration
           "for k in [0, 10) { t[k] = x[3*p] }",
           "for k in [0, P) { drop t[k + p] = 0.0 }",
           "for k in [0, 10) { t[k] = z[k] } z[p] = 0.0",  // the tensor that it reads changes
           "temp u: f32[10] for k in [0, 10) { drop u[k] = x[3*p] t[k] = u[k] }",
           "for k in [0, 10) { t[k] = w[p - p + 2*ids[k]] }",  // may be out of range
           "for k in [0, 10) { t[k] = w[2*k + 2] }",
           "t[0] = 1.0 for k in [1, 10) { t[k] = x[k] }",  // no copy
           "for k in [0, 10) { t[k] = 1.0 } z[p] = t[0] for k_2 in [0, 10) { t[k_2] = 2.0 }",
       }) {
    const std::string items =
        absl::StrCat("for p in [0, P) { temp t: f32[10] ", fill, " ", kUse, " }");
    ExpectPass(HoistCopies, kFrame, {{items.c_str(), ""}});
  }
}

}  // namespace
}  // namespace nestor::loop
