// Temporaries before and after the pass: which axes go, and where the declaration moves.
#include "fusion/contract.h"

#include <string>

#include "absl/strings/string_view.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[N, M], ids: i64[N]) -> (y: f32[N, M], r: f32[N]) {\n",
                          "\n  drop y[0, 0] = 0.0  drop r[0] = 0.0\n}\n"};

Program Around(absl::string_view items) { return ParseVerified(kFrame, items); }

TEST(Contract, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // The axis is removed; the declaration moves into the loop, before the first use.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0]  r[i] = t[i] }",
       "for i in [0, N) { temp t: f32  t = x[i, 0]  r[i] = t }"},
      {"temp t: f32[N]  for i in [0, N) { r[i] = 1.0  t[i] = x[i, 0]  r[i] = t[i] }",
       "for i in [0, N) { r[i] = 1.0  temp t: f32  t = x[i, 0]  r[i] = t }"},
      // From the last step down.
      {"temp t: f32[N]  for i in [0, N) { t[N - 1 - i] = x[i, 0]  r[i] = t[N - 1 - i] }",
       "for i in [0, N) { temp t: f32  t = x[i, 0]  r[i] = t }"},
      {"temp t: f32[N]  for i in [0, N) { t[N - 1 - i] = x[i, 0]  r[i] = t[N - i | 0.0] }", ""},
      {"temp t: f32[N]  for i in [0, N) { drop t[N - 2 - i] = x[i, 0]  r[i] = t[N - 2 - i | 0.0] }",
       ""},
      // This is repeated inwards, whatever the order of the axes.
      {"temp t: f32[N, M]  for i in [0, N) { for j in [0, M) { t[i, j] = x[i, j]  y[i, j] = t[i, j] } }",
       "for i in [0, N) { for j in [0, M) { temp t: f32  t = x[i, j]  y[i, j] = t } }"},
      {"temp t: f32[M, N]  for i in [0, N) { for j in [0, M) { t[j, i] = x[i, j]  y[i, j] = t[j, i] } }",
       "for i in [0, N) { for j in [0, M) { temp t: f32  t = x[i, j]  y[i, j] = t } }"},
      {"temp t: f32[M, N]  for i in [0, N) { for j in [0, M) { t[j, i] = x[i, j] }  for k in [0, M) { y[i, k] = t[k, i] } }",
       "for i in [0, N) { temp t: f32[M]  for j in [0, M) { t[j] = x[i, j] }  for k in [0, M) { y[i, k] = t[k] } }"},
      {"for i in [0, N) { temp t: f32[M]  for j in [0, M) { t[j] = x[i, j]  y[i, j] = t[j] } }",
       "for i in [0, N) { for j in [0, M) { temp t: f32  t = x[i, j]  y[i, j] = t } }"},
      // Through a loop that indexes no axis it lives on; further in nothing is tried.
      {"temp t: f32[M]  for i in [0, N) { for j in [0, M) { t[j] = x[i, j]  y[i, j] = t[j] } }",
       ""},
      {"temp t: f32[N, M]  for i in [0, N) { for k in [0, 3) { for j in [0, M) { t[i, j] = x[i, j]  y[i, j] = t[i, j] } } }",
       "for i in [0, N) { temp t: f32[M]  for k in [0, 3) { for j in [0, M) { t[j] = x[i, j]  y[i, j] = t[j] } } }"},
      // Not where an access lies in another loop, at another index, or at another axis.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for k in [0, N) { r[k] = t[k] }", ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0]  r[i] = t[i - 1 | 0.0] }", ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0]  r[i] = t[ids[i] | 0.0] }", ""},
      {"temp t: f32[N, N]  for i in [0, N) { for k in [0, N) { t[i, k] = x[i, 0] }  for l in [0, N) { r[i] = t[l, i] } }",
       ""},
      {"temp t: f32[N]  t[0] = 0.0  for i in [0, N) { r[i] = t[i] }", ""},
      // A diagonal: the index of one axis is one dimension.
      {"temp t: f32[N, N]  for i in [0, N) { t[i, i] = x[i, 0]  r[i] = t[i, i] }",
       "for i in [0, N) { temp t: f32[N]  t[i] = x[i, 0]  r[i] = t[i] }"},
      // An axis of one element is removed with the others, or alone; not if a read leaves
      // its range.
      {"temp t: f32[1, N]  for i in [0, N) { t[0, i] = x[i, 0]  r[i] = t[0, i] }",
       "for i in [0, N) { temp t: f32  t = x[i, 0]  r[i] = t }"},
      {"temp t: f32[N, 1]  for i in [0, N) { t[i, 0] = x[i, 0] }  for k in [0, N) { r[k] = t[k, 0] }",
       "temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for k in [0, N) { r[k] = t[k] }"},
      {"for i in [0, N) { acc a: f32[1] = sum  for j in [0, M) { a[0] += x[i, j] }  r[i] = a[0] }",
       "for i in [0, N) { acc a: f32 = sum  for j in [0, M) { a += x[i, j] }  r[i] = a }"},
      {"for i in [0, N) { temp t: f32[1]  t[0] = x[i, 0]  r[i] = t[i | 0.0] }", ""},
      // The loop must stay within the axis, as masks look there; a step does no harm.
      {"temp t: f32[N]  for i in [1, N) { t[i] = x[i, 0]  r[i] = t[i] }", ""},
      {"temp t: f32[N]  for i in [0, N + 1) { drop t[i] = 1.0  drop r[i] = t[i | 0.0] }", ""},
      {"temp t: f32[N + 1]  for i in [0, N) { t[i] = x[i, 0]  r[i] = t[i] }", ""},
      {"temp t: f32[N]  for i in [0, N) step 4 { t[i] = x[i, 0]  r[i] = t[i] }",
       "for i in [0, N) step 4 { temp t: f32  t = x[i, 0]  r[i] = t }"},
      // Masked accesses; other axes and conditions stay as they are.
      {"temp t: f32[N, M]  for i in [0, N) { for j in [0, M) { drop t[i, j - 1] if i < 3 = x[i, j] }  "
       "for k in [0, M) { y[i, k] = t[i, k + 1 | 0.5 if k < i] } }",
       "for i in [0, N) { temp t: f32[M]  for j in [0, M) { drop t[j - 1] if i < 3 = x[i, j] }  "
       "for k in [0, M) { y[i, k] = t[k + 1 | 0.5 if k < i] } }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0]  r[i] = t[i | 0.5] }",
       "for i in [0, N) { temp t: f32  t = x[i, 0]  r[i] = t[ | 0.5] }"},
      // Accumulators start afresh in each iteration, as each of their elements did.
      {"acc s: f32[N] = sum  for i in [0, N) { for j in [0, M) { s[i] += x[i, j] }  r[i] = s[i] }",
       "for i in [0, N) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] }  r[i] = s }"},
      {"acc b: f32[N] = argmax  for i in [0, N) { for j in [0, M) { b[i] argmax= (x[i, j], index(j)) }  r[i] = x[i, b[i]] }",
       "for i in [0, N) { acc b: f32 = argmax  for j in [0, M) { b argmax= (x[i, j], index(j)) }  r[i] = x[i, b[]] }"},
      {"acc s: f32[M] = sum  for i in [0, N) { for j in [0, M) { s[j] += x[i, j]  y[i, j] = s[j] } }",
       ""},
      // In gathers: of places, conditions, positions, index values.
      {"temp d: i64[N]  for i in [0, N) { d[i] = ids[i] + 1  drop r[d[i]] if d[i] < 3 = x[i, d[i] | 0.0] }",
       "for i in [0, N) { temp d: i64  d = ids[i] + 1  drop r[d[]] if d[] < 3 = x[i, d[] | 0.0] }"},
      {"temp d: i64[N]  acc b: f32 = argmax  for i in [0, N) { d[i] = ids[i]  b argmax= (x[i, 0], index(d[i] + 1)) }",
       "acc b: f32 = argmax  for i in [0, N) { temp d: i64  d = ids[i]  b argmax= (x[i, 0], index(d[] + 1)) }"},
      // Several at once keep their order; an extent may hold an index further out.
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0]  u[i] = t[i]  r[i] = t[i] + u[i] }",
       "for i in [0, N) { temp t: f32  t = x[i, 0]  temp u: f32  u = t  r[i] = t + u }"},
      {"for i in [0, N) { temp t: f32[i + 1, M]  for j in [0, i + 1) { for k in [0, M) { t[j, k] = x[i, k]  y[j, k] = t[j, k] } } }",
       "for i in [0, N) { for j in [0, i + 1) { for k in [0, M) { temp t: f32  t = x[i, k]  y[j, k] = t } } }"},
      // Declarations at the top, beside other items.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0]  r[i] = t[i] }  r[0] = 1.0",
       "for i in [0, N) { temp t: f32  t = x[i, 0]  r[i] = t }  r[0] = 1.0"},
      // Register tensors keep their extents; results and unused tensors stay.
      {"for i in [0, N) { temp t: f32[4] register  for k in [0, 4) { t[k] = x[i, k]  y[i, k] = t[k] } }",
       ""},
      {"for i in [0, N) { r[i] = x[i, 0]  r[i] += r[i] }", ""},
      {"temp t: f32[N]  for i in [0, N) { r[i] = x[i, 0] }", ""},
  };
  ExpectPass(ContractTemporaries, kFrame, kCases);
}

// One temporary each, at all kinds of loops.
TEST(Contract, MovesTheTemporaryIntoTheLoop) {
  const struct {
    const char* contracted;  // t over i
    const char* expanded;
  } kCases[] = {
      {"for i in [0, N) { temp t: f32  t = x[i, 0]  r[i] = t }",
       "temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0]  r[i] = t[i] }"},
      {"for i in [0, N) { temp t: f32[M]  for j in [0, M) { t[j] = x[i, j] }  for k in [0, M) { y[i, k] = t[k - 1 | 0.0] } }",
       "temp t: f32[N, M]  for i in [0, N) { for j in [0, M) { t[i, j] = x[i, j] }  "
       "for k in [0, M) { y[i, k] = t[i, k - 1 | 0.0] } }"},
      {"for i in [0, N) { acc t: f32 = sum  for j in [0, M) { t += x[i, j] }  r[i] = t }",
       "acc t: f32[N] = sum  for i in [0, N) { for j in [0, M) { t[i] += x[i, j] }  r[i] = t[i] }"},
      {"for i in [0, N) { temp t: i64  t = ids[i]  drop r[t[]] if t[] < 3 = x[i, t[] | 0.0] + f32(index(t[])) }",
       "temp t: i64[N]  for i in [0, N) { t[i] = ids[i]  drop r[t[i]] if t[i] < 3 = x[i, t[i] | 0.0] + f32(index(t[i])) }"},
      {"for i in [0, N) { acc t: f32 = argmax  for j in [0, M) { t argmax= (x[i, j], index(j)) }  r[i] = x[i, t[]] }",
       "acc t: f32[N] = argmax  for i in [0, N) { for j in [0, M) { t[i] argmax= (x[i, j], index(j)) }  r[i] = x[i, t[i]] }"},
      {"for j in [0, M) { for i in [0, j) { temp t: f32[N]  t[0] = x[i, j]  y[i, j] = t[0] } }",
       "for j in [0, M) { temp t: f32[j, N]  for i in [0, j) { t[i, 0] = x[i, j]  y[i, j] = t[i, 0] } }"},
      {"for i in [0, N) step 4 { temp t: f32  t = x[i, 0]  r[i] = t }",
       "temp t: f32[N]  for i in [0, N) step 4 { t[i] = x[i, 0]  r[i] = t[i] }"},
      {"for i in [0, N) parallel { temp t: f32  t = x[i, 0]  r[i] = t }",
       "temp t: f32[N]  for i in [0, N) parallel { t[i] = x[i, 0]  r[i] = t[i] }"},
  };
  for (const auto& c : kCases) {
    Program program = Around(c.expanded);
    EXPECT_TRUE(*ContractTemporaries(program));
    EXPECT_TRUE(Verify(program).ok()) << Verify(program);
    EXPECT_EQ(ToText(program), ToText(Around(c.contracted)));
  }
}

}  // namespace
}  // namespace nestor::loop
