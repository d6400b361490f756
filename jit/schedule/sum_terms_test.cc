// Loops that compute several sums before and after each sum has loops of its own.
#include "jit/schedule/sum_terms.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(a: f32[M, K], b: f32[K, N], d: f32[K, N], m: f32[M], x: f32[M, N, K], ids: i64[K]) -> (c: f32[M, N]) {\n",
    "\n  drop c[0, 0] = 0.0\n}\n"};

// Runs the sums of `body` for all i and j; a store to `c` comes after it.
std::string Nest(absl::string_view body) {
  return absl::StrCat("for i in [0, M) { for j in [0, N) { acc s: f32 = sum acc r: f32 = sum ",
                      body, " c[i, j] = s * r } }");
}

void ExpectSeparated(const std::string& body, const std::string& after) {
  const std::string before = Nest(body), expected = after.empty() ? "" : Nest(after);
  ExpectPass(SeparateSums, kFrame, {{before.c_str(), expected.c_str()}});
}

TEST(SumTerms, TextInTextOut) {
  // Scalars are inlined into the term; sums get loops of their own.
  ExpectSeparated("for k in [0, K) { temp h: f32 h = a[i, k] - b[k, j] s += h * h }",
                  "for k_2 in [0, K) { s += (a[i, k_2] - b[k_2, j]) * (a[i, k_2] - b[k_2, j]) }");
  ExpectSeparated(
      "for k in [0, K) { s += a[i, k] * b[k, j] r += a[i, k] * d[k, j] }",
      "for k_2 in [0, K) { s += a[i, k_2] * b[k_2, j] } for k_3 in [0, K) { r += a[i, k_3] * d[k_3, j] }");
  ExpectSeparated(
      "for k in [0, K) { for l in [0, 3) { temp h: f32 h = b[k, j] temp g: f32 g = h * 2.0 s += a[i, k] * g r += h } }",
      "for k_2 in [0, K) { for l_2 in [0, 3) { s += a[i, k_2] * (b[k_2, j] * 2.0) } } "
      "for k_3 in [0, K) { for l_3 in [0, 3) { r += b[k_3, j] } }");
}

// A tensor moves with the loop that declares it, and with those around.
TEST(SumTerms, OfWhatARowMakes) {
  const auto nest = [](absl::string_view sums) {
    return absl::StrCat("for i in [0, M) { temp t: f32[K] for l in [0, K) { t[l] = a[i, l] * 2.0 } "
                        "for j in [0, N) { acc s: f32 = sum acc r: f32 = sum ",
                        sums, " c[i, j] = s * r } }");
  };
  const std::string before = nest("for k in [0, K) { s += t[k] * b[k, j] r += t[k] * d[k, j] }"),
                    after = nest("for k_2 in [0, K) { s += t[k_2] * b[k_2, j] } "
                                 "for k_3 in [0, K) { r += t[k_3] * d[k_3, j] }");
  ExpectPass(SeparateSums, kFrame, {{before.c_str(), after.c_str()}});
  ExpectSeparated(
      "temp t: f32[K] for l in [0, K) { t[l] = b[l, j] } for k in [0, K) { s += a[i, k] * t[k] r += t[k] }",
      "");
}

TEST(SumTerms, LeavesTheOthers) {
  for (const char* body : {
           // Nothing that rows and columns share; one sum as it should be.
           "for k in [0, K) { temp h: f32 h = a[i, k] - m[i] s += h * h }",
           "for k in [0, K) { s += x[i, j, k] r += x[i, j, k] * a[i, k] }",
           "for k in [0, K) { s += a[i, k] * b[k, j] }",
           // A loop that does more than sum; a sum that reads another; a scalar set twice.
           "for k in [0, K) { s += a[i, k] * b[k, j] c[i, j] = 1.0 }",
           "for k in [0, K) { s += a[i, k] * b[k, j] r += s }",
           "for k in [0, K) { temp h: f32 h = a[i, k] s += h * b[k, j] h = 1.0 r += h }",
           "for k in [0, K) { s += a[i, k] * b[ids[k], j | 0.0] r += a[i, k] * d[k, j] }",
           // A scalar that nothing sets.
           "for k in [0, 0) { temp h: f32 s += a[i, k] * h * b[k, j] }",
       }) {
    ExpectSeparated(body, "");
  }
  // Written out, h would be in the term 32 times.
  ExpectSeparated(
      "for k in [0, K) { temp h: f32 h = a[i, k] * b[k, j] temp g: f32 g = h*h*h*h temp e: f32 e = g*g*g*g*g*g*g*g s += e }",
      "");
}

}  // namespace
}  // namespace nestor::loop
