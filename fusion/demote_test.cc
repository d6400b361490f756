// Sums over columns before and after they become temporaries that a walk by rows can share; and
// those that must stay.
#include "fusion/demote.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

// A walk of x by rows, which the columns' sums may join.
constexpr char kRows[] = "  for a in [0, N) { for b in [0, M) { z[a, b] = x[a, b] * 2.0 } }\n";

constexpr char kHead[] = "program p(x: f32[N, M], h: bf16[N, M], w: f32[M, M], k: i64[N, M]) -> "
                         "(z: f32[N, M], c: f32[M], d: f32[M], g: bf16[M], e: f32[M, M]) {\n";
constexpr char kTail[] = "\n  drop z[0, 0] = 0.0  drop c[0] = 0.0  drop d[0] = 0.0"
                         "\n  drop g[0] = bf16(0.0)  drop e[0, 0] = 0.0\n}\n";

void ExpectDemotion(absl::Span<const PassCase> cases, absl::string_view rows = kRows) {
  ExpectPass(DemoteAccumulators, {absl::StrCat(kHead, rows), kTail}, cases);
}

TEST(Demote, TextInTextOut) {
  ExpectDemotion({
      // The result itself is reset and accumulated into.
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  c[j] = s }",
       "for j_2 in [0, M) { c[j_2] = 0.0 }  for j in [0, M) { for i in [0, N) { c[j] += x[i, j] } }"},
      {"for j in [0, M) { acc s: f32 = max  for i in [0, N) { s max= x[i, j] * 3.0 }  c[j] = s }",
       "for j_2 in [0, M) { c[j_2] = -inf }  for j in [0, M) { for i in [0, N) { c[j] max= x[i, j] * 3.0 } }"},
      {"for j in [0, M) { acc s: f32 = prod  for i in [0, N) { s *= x[i, j] }  c[j] = s }",
       "for j_2 in [0, M) { c[j_2] = 1.0 }  for j in [0, M) { for i in [0, N) { c[j] *= x[i, j] } }"},
      // Several, in one walk.
      {"for j in [0, M) { acc s: f32 = sum  acc t: f32 = min  for i in [0, N) { s += x[i, j]  t min= x[i, j] }  c[j] = s  d[j] = t }",
       "for j_2 in [0, M) { c[j_2] = 0.0  d[j_2] = inf }  for j in [0, M) { for i in [0, N) { c[j] += x[i, j]  d[j] min= x[i, j] } }"},
      // Something is done with the sum, or it is used twice: a third nest does it.
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  c[j] = s / f32(index(N)) }",
       "acc s: f32[M] = sum  for j in [0, M) { for i in [0, N) { s[j] += x[i, j] } }  for j_2 in [0, M) { c[j_2] = s[j_2] / f32(index(N)) }"},
      // c is read back.
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  c[j] = s  d[j] = s * c[j] }",
       ""},
      // The terms read the column's old result, which must stay until they are summed.
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] * c[j] }  c[j] = s }",
       ""},
      // A masked or partial result.
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  drop c[j] if j < 3 = s }",
       "acc s: f32[M] = sum  for j in [0, M) { for i in [0, N) { s[j] += x[i, j] } }  for j_2 in [0, M) { drop c[j_2] if j_2 < 3 = s[j_2] }"},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  c[j] = s[ | 0.0 if j < 3] }",
       "acc s: f32[M] = sum  for j in [0, M) { for i in [0, N) { s[j] += x[i, j] } }  for j_2 in [0, M) { c[j_2] = s[j_2 | 0.0 if j_2 < 3] }"},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  drop c[j - 1] = s }",
       "acc s: f32[M] = sum  for j in [0, M) { for i in [0, N) { s[j] += x[i, j] } }  for j_2 in [0, M) { drop c[j_2 - 1] = s[j_2] }"},
      // Dropped terms stay dropped; more than one reduced loop.
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { drop s if k[i, j] < 2 += x[i, j] }  c[j] = s }",
       "for j_2 in [0, M) { c[j_2] = 0.0 }  for j in [0, M) { for i in [0, N) { drop c[j] if k[i, j] < 2 += x[i, j] } }"},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { for l in [0, 3) { s += x[i, j] } }  c[j] = s }",
       "for j_2 in [0, M) { c[j_2] = 0.0 }  for j in [0, M) { for i in [0, N) { for l in [0, 3) { c[j] += x[i, j] } } }"},
      // Loops that cannot be interchanged, as the bounds of one hold another's index.
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { for l in [0, i) { s += x[i, j] } }  c[j] = s }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, j) { s += x[i, j] }  c[j] = s }", ""},
      // Rows share the outer loop as it is.
      {"for i in [0, N) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] }  drop c[i] = s }", ""},
      // Kept loops over part of a range, or stepping.
      {"for j in [1, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  c[j] = s }", ""},
      {"for j in [0, M) step 2 { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  c[j] = s }",
       ""},
      // Another tensor; only a row in common.
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += f32(h[i, j]) }  c[j] = s }", ""},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += f32(index(i)) }  c[j] = s }",
       ""},
      // Pairs cannot lie in a tensor.
      {"for j in [0, M) { acc s: f32 = argmax  for i in [0, N) { s argmax= (x[i, j], index(i)) }  c[j] = f32(s) }",
       ""},
      // A contraction stays whole for its tiles.
      {"for j in [0, M) { for l in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] * x[i, l] }  e[j, l] = s } }",
       ""},
      // More than a sum: statements before it, two walks, accumulators from outside,
      // a result that is accumulated.
      {"for j in [0, M) { acc s: f32 = sum  c[j] = 1.0  for i in [0, N) { s += x[i, j] }  c[j] = s }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  for l in [0, N) { s += x[l, j] }  c[j] = s }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j]  c[j] = s } }", ""},
      {"acc s: f32 = sum  for j in [0, M) { for i in [0, N) { s += x[i, j] }  c[j] = s }", ""},
      {"acc t: f32 = sum  for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j]  t += x[i, j] }  c[j] = s }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  c[j] += s }", ""},
      // Items in between forbid it.
      {"drop c[0] = z[0, 0]  for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] * c[0] }  d[j] = s }",
       ""},
  });
}

// A type that is wider than the result's stays so: the sum is rounded once.
TEST(Demote, WideSums) {
  const char* const rows = "  for a in [0, N) { for b in [0, M) { z[a, b] = f32(h[a, b]) } }\n";
  ExpectDemotion(
      {
          {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += f32(h[i, j]) }  g[j] = bf16(s) }",
           "acc s: f32[M] = sum  for j in [0, M) { for i in [0, N) { s[j] += f32(h[i, j]) } }  for j_2 in [0, M) { g[j_2] = bf16(s[j_2]) }"},
          {"for j in [0, M) { acc s: bf16 = max  for i in [0, N) { s max= h[i, j] }  g[j] = s }",
           "for j_2 in [0, M) { g[j_2] = bf16(-inf) }  for j in [0, M) { for i in [0, N) { g[j] max= h[i, j] } }"},
      },
      rows);
}

// It pays only where there is a walk to join, and none is shared already.
TEST(Demote, OnlyToJoinAWalk) {
  const char* const sum =
      "for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  c[j] = s }";
  ExpectDemotion({{sum, ""}}, "");
  ExpectDemotion({{sum, ""}}, "  for a in [0, N) { for b in [0, M) { z[a, b] = 1.0 } }\n");
  ExpectDemotion({{sum, ""}}, "  for b in [0, M) { for a in [0, N) { e[b, b] = x[a, b] } }\n");
  // A later walk will do, although it writes along its rows: the sum takes its order.
  const std::string writes = "  for a in [0, N) { for b in [0, M) { z[a, b] = x[a, b] * 2.0 } }";
  const char* const walk =
      "for j_2 in [0, M) { c[j_2] = 0.0 }  for j in [0, M) { for i in [0, N) { c[j] += x[i, j] } }";
  ExpectDemotion({{absl::StrCat(sum, writes).c_str(), absl::StrCat(walk, writes).c_str()}}, "");
}

// Where the order of computations for two columns matters, the nest must stay whole; and all reads
// of an accumulator must be found.
TEST(Demote, KeepsDependencesBetweenColumns) {
  ExpectDemotion({
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] * c[j - 1 | 1.0] }  c[j] = s }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] * d[M - 1 - j] }  c[j] = s * 2.0  d[j] = s }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  acc t: f32 = sum  for i in [0, N) { s += x[i, j]  t += x[i, j] * 2.0 }  c[j] = s  c[j] = t }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  acc t: f32 = sum  for i in [0, N) { s += x[i, j]  t += x[i, j] * 2.0 }  c[j] = t * 2.0  c[j] = s }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  for i in [0, N) { s += x[i, j] }  d[j] = c[j]  c[j] = s }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  acc t: f32 = sum  for i in [0, N) { s += x[i, j]  t += x[i, j] * 2.0 }  c[j] = s  d[j] = t + c[j + 1 | 1.0] }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  acc t: f32 = max  for i in [0, N) { s += x[i, j]  t max= s }  c[j] = s  d[j] = t }",
       ""},
      {"for j in [0, M) { acc s: f32 = sum  temp t: f32  for i in [0, N) { s += x[i, j] }  t = s * 2.0  c[j] = t * t }",
       ""},
      {"for j in [0, M) { acc s: i64 = sum  for i in [0, N) { s += i64(x[i, j]) }  c[j] = w[s[], j | 0.0] }",
       ""},
  });
}

}  // namespace
}  // namespace nestor::loop
