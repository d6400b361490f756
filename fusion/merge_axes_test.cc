// Programs before and after two axes became one: arguments, rows and points of temporaries.
#include "fusion/merge_axes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/text_testing.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

Program Parse(absl::string_view signature, absl::string_view items) {
  return Parsed(absl::StrCat("program p(", signature, " {\n", items, "\n}\n"));
}

struct Case {
  const char* signature;
  const char* items;
  const char* merged_signature;  // null: nothing is merged
  const char* merged;
};

bool MergeRows(Program& program) {
  const absl::StatusOr<bool> merges = MergeRowsOfTemporaries(program);
  EXPECT_TRUE(merges.ok()) << merges.status();
  return *merges;
}

void Expect(const Case& c, bool (*merge)(Program&) = MergeAxes) {
  SCOPED_TRACE(c.items);
  Program program = Parse(c.signature, c.items);
  const bool merges = c.merged != nullptr;
  const std::string want = ToText(merges ? Parse(c.merged_signature, c.merged) : program);
  EXPECT_EQ(merge(program), merges);
  EXPECT_EQ(ToText(program), want);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_FALSE(merge(program)) << "a second time";
}

TEST(MergeAxes, TextInTextOut) {
  const Case kCases[] = {
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = exp(x[i, j]) } }",
       "x: f32[N*C]) -> (y: f32[N*C])", "for i in [0, N*C) { y[i] = exp(x[i]) }"},
      // Two merges in turn; the two axes that a broadcast leaves; axes of the rows and columns of
      // a product.
      {"x: f32[N, C, 3]) -> (y: f32[N, C, 3])",
       "for i in [0, N) { for j in [0, C) { for k in [0, 3) { y[i, j, k] = x[i, j, k | 0.0] } } }",
       "x: f32[N*C*3]) -> (y: f32[N*C*3])", "for i in [0, N*C*3) { y[i] = x[i | 0.0] }"},
      {"x: f32[N], w: f32[C, D]) -> (y: f32[N, C, D])",
       "for i in [0, N) { for j in [0, C) { for k in [0, D) { y[i, j, k] = w[j, k] * x[i] } } }",
       "x: f32[N], w: f32[C*D]) -> (y: f32[N, C*D])",
       "for i in [0, N) { for j in [0, C*D) { y[i, j] = w[j] * x[i] } }"},
      {"x: f32[N, C, H, W], w: f32[K, C]) -> (y: f32[N, K, H, W])",
       "for n in [0, N) { for k in [0, K) { for h in [0, H) { for q in [0, W) { acc a: f32 = sum"
       "  for c in [0, C) { a += x[n, c, h, q] * w[k, c] }  y[n, k, h, q] = a } } } }",
       "x: f32[N, C, H*W], w: f32[K, C]) -> (y: f32[N, K, H*W])",
       "for n in [0, N) { for k in [0, K) { for h in [0, H*W) { acc a: f32 = sum"
       "  for c in [0, C) { a += x[n, c, h] * w[k, c] }  y[n, k, h] = a } } }"},
      // Sums, and temporaries, of the program and of a scope.
      {"x: f32[N, H, W]) -> (y: f32[N])",
       "for n in [0, N) { acc a: f32 = sum  for h in [0, H) { for q in [0, W) { a += x[n, h, q] } }  y[n] = a }",
       "x: f32[N, H*W]) -> (y: f32[N])",
       "for n in [0, N) { acc a: f32 = sum  for h in [0, H*W) { a += x[n, h] }  y[n] = a }"},
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "temp t: f32[N, C]  for i in [0, N) { for j in [0, C) { t[i, j] = x[i, j] } }"
       "  for i in [0, N) { for j in [0, C) { y[i, j] = t[i, j] } }",
       "x: f32[N*C]) -> (y: f32[N*C])",
       "temp t: f32[N*C]  for i in [0, N*C) { t[i] = x[i] }  for i in [0, N*C) { y[i] = t[i] }"},
      {"x: f32[N, C, D]) -> (y: f32[N])",
       "for i in [0, N) { temp h: f32[C, D]  for j in [0, C) { for k in [0, D) { h[j, k] = x[i, j, k] } }"
       "  for j in [0, C) { for k in [0, D) { y[i] += h[j, k] } } }",
       "x: f32[N, C*D]) -> (y: f32[N])",
       "for i in [0, N) { temp h: f32[C*D]  for j in [0, C*D) { h[j] = x[i, j] }  for j in [0, C*D) { y[i] += h[j] } }"},
      // Not where another nest walks one of the tensors otherwise, though this one would allow it.
      {"x: f32[N, C]) -> (y: f32[N, C], z: f32[C, N])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = x[i, j] } }"
       "  for i in [0, C) { for j in [0, N) { z[i, j] = x[j, i] } }",
       nullptr, nullptr},
      // An index alone, in another order, shifted, as a value, in a condition, in a bound.
      {"x: f32[N, C], s: f32[C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = x[i, j] * s[j] } }", nullptr, nullptr},
      {"x: f32[C, N]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = x[j, i] } }", nullptr, nullptr},
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for j in [0, C) { for i in [0, N) { y[i, j] = x[i, j] } }", nullptr, nullptr},
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = x[i, j - 1 | 0.0] } }", nullptr, nullptr},
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = f32(index(j)) } }", nullptr, nullptr},
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = x[i, j | 0.0 if j < 3] } }", nullptr,
       nullptr},
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { for k in [0, i) { y[i, j] += x[i, j] } } }", nullptr,
       nullptr},
      {"x: f32[N, C], ids: i64[N, C], s: f32[C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = s[ids[i, j] | 0.0] } }", nullptr, nullptr},
      {"x: f32[N, N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = x[i, i, j] } }", nullptr, nullptr},
      // Not all of an axis, another axis of the same length, with a step, or with
      // something between.
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [1, C) { y[i, j] = x[i, j] } }", nullptr, nullptr},
      {"x: f32[N, C, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = x[i, 0, j] } }", nullptr, nullptr},
      {"x: f32[N, C + 1]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) { y[i, j] = x[i, j] } }", nullptr, nullptr},
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { for j in [0, C) step 2 { y[i, j] = x[i, j] } }", nullptr, nullptr},
      {"x: f32[N, C]) -> (y: f32[N, C])",
       "for i in [0, N) { temp t: f32  t = 1.0  for j in [0, C) { y[i, j] = x[i, j] * t } }",
       nullptr, nullptr},
      // Where two nests pair three axes in different ways, both pairs could be merged, but not
      // at once.
      {"x: f32[N, N, N]) -> (y: f32[N, N], z: f32[N, N])",
       "for i in [0, N) { for j in [0, N) { y[i, j] = x[i, j, 0] } }"
       "  for i in [0, N) { for j in [0, N) { z[i, j] = x[0, i, j] } }",
       nullptr, nullptr},
  };
  for (const Case& c : kCases) Expect(c);
}

TEST(MergeAxes, RowsOfTemporaries) {
  constexpr char kSignature[] = "x: f32[C, H, W], w: f32[C, C]) -> (y: f32[C, H, W], z: f32[C, W])";
  const std::string kFirst =
      "temp t: f32[C, H, W] temp u: f32[C, H, W] "
      "for d in [0, C) { for h in [0, H) { for q in [0, W) { t[d, h, q] = x[d, h, q] } } } ";
  const std::string kProduct =
      "for c in [0, C) { for i in [0, H) { for j in [0, W) { acc s: f32 = sum "
      "for k in [0, C) { s += w[c, k]*t[k, i, j] } u[c, i, j] = s } } } ";
  const std::string kMergedFirst =
      "temp t: f32[C, H*W] temp u: f32[C, H*W] "
      "for d in [0, C) { for h in [0, H) { for q in [0, W) { t[d, W*h + q] = x[d, h, q] } } } ";
  const std::string kMergedProduct = "for c in [0, C) { for i in [0, H*W) { acc s: f32 = sum "
                                     "for k in [0, C) { s += w[c, k]*t[k, i] } u[c, i] = s } } ";
  const std::string kNone;
  const auto expect = [&](const std::string& items, const std::string& merged) {
    const std::string kEnd = "drop y[0, 0, 0] = 0.0 drop z[0, 0] = 0.0";
    const std::string before = items + kEnd, after = merged + kEnd;
    Expect({kSignature, before.c_str(), kSignature, merged.empty() ? nullptr : after.c_str()},
           MergeRows);
  };
  // Arguments stay as they are; others may read parts of the rows.
  expect(
      kFirst + kProduct +
          "for c in [0, C) { for h in [1, H) { for j in [0, W - 1) { z[c, j] = u[c, h - 1, j + 1] } } }",
      kMergedFirst + kMergedProduct +
          "for c in [0, C) { for h in [1, H) { for j_2 in [0, W - 1) { z[c, j_2] = u[c, W*(h - 1) + j_2 + 1] } } }");
  // Masked where it is out of range; no sum.
  expect(
      kFirst + kProduct +
          "for c in [0, C) { for h in [0, H) { for j in [0, W) { y[c, h, j] = u[c, h, j + 1 | 0.0] } } }",
      kNone);
  expect(kFirst +
             "for c in [0, C) { for h in [0, H) { for j in [0, W) { y[c, h, j] = t[c, h, j] } } }",
         kNone);
}

// Any two axes that a product walks, as those of points that lie one after the other; not those
// that it only sums over.
TEST(MergeAxes, PointsOfTemporaries) {
  constexpr char kSignature[] =
      "x: f32[N, H, W, C], w: f32[C, C]) -> (y: f32[N, H, W, C], m: f32[N, C])";
  const std::string kFirst =
      "temp t: f32[N, H, W, C] temp u: f32[N, H, W, C] "
      "for a in [0, N) { for h in [0, H) { for q in [0, W) { for d in [0, C) { t[a, h, q, d] = x[a, h, q, d] } } } } ";
  const std::string kEnd = "drop y[0, 0, 0, 0] = 0.0 drop m[0, 0] = 0.0";
  const std::string before =
      kFirst +
      "for n in [0, N) { for c in [0, C) { for i in [0, H) { for j in [0, W) { acc s: f32 = sum "
      "for k in [0, C) { s += w[c, k]*t[n, i, j, k] } u[n, i, j, c] = s } } } } " +
      kEnd;
  const std::string after =
      "temp t: f32[N, H*W, C] temp u: f32[N, H*W, C] "
      "for a in [0, N) { for h in [0, H) { for q in [0, W) { for d in [0, C) { t[a, W*h + q, d] = x[a, h, q, d] } } } } "
      "for n in [0, N) { for c in [0, C) { for i in [0, H*W) { acc s: f32 = sum "
      "for k in [0, C) { s += w[c, k]*t[n, i, k] } u[n, i, c] = s } } } " +
      kEnd;
  Expect({kSignature, before.c_str(), kSignature, after.c_str()}, MergeRows);
  const std::string means =
      kFirst +
      "for n in [0, N) { for c in [0, C) { acc s: f32 = sum "
      "for i in [0, H) { for j in [0, W) { s += t[n, i, j, c] } } m[n, c] = s } } " +
      kEnd;
  Expect({kSignature, means.c_str(), kSignature, nullptr}, MergeRows);
}

}  // namespace
}  // namespace nestor::loop
