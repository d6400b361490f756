#include "fusion/collapse.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::fusion {
namespace {

using loop::Program;

Program Around(absl::string_view items) {
  const std::string text = absl::StrCat(
      "program p(x: f32[N, C], w: f32[N, C, D], s: f32[C], t: f32[C, N], ids: i64[N, C]) -> "
      "(y: f32[N, C], z: f32[N, C, D], r: f32[N]) {\n",
      items, "\n  for e in [0, N) { r[e] = 0.0  y[e, 0] = 1.0  z[e, 0, 0] = 2.0 }\n}\n");
  const absl::StatusOr<Program> program = loop::ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  if (!program.ok()) return Program();
  EXPECT_TRUE(Verify(*program).ok()) << Verify(*program) << "\n" << text;
  return *program;
}

TEST(Collapse, TextInTextOut) {
  const struct {
    const char* before;
    const char* after;  // "": unchanged
  } kCases[] = {
      {"for i in [0, N) { for j in [0, C) { y[i, j] = exp(x[i, j]) } }",
       "for i_2 in [0, N*C) { y[i_2/C, i_2%C] = exp(x[i_2/C, i_2%C]) }"},
      // All three, and the two that a broadcast leaves.
      {"for i in [0, N) { for j in [0, C) { for k in [0, D) { z[i, j, k] = w[i, j, k] } } }",
       "for i_2 in [0, N*C*D) { z[i_2/D/C, i_2/D%C, i_2%D] = w[i_2/D/C, i_2/D%C, i_2%D] }"},
      {"for i in [0, N) { for j in [0, C) { for k in [0, D) { z[i, j, k] = w[0, j, k] } } }",
       "for i in [0, N) { for j_2 in [0, C*D) { z[i, j_2/D, j_2%D] = w[0, j_2/D, j_2%D] } }"},
      // The body may hold loops, which are looked at in turn.
      {"for i in [0, N) { for j in [0, C) { acc a: f32 = sum  for k in [0, D) { a += z[i, j, k] }  y[i, j] = a } }",
       "for i_2 in [0, N*C) { acc a: f32 = sum  for k in [0, D) { a += z[i_2/C, i_2%C, k] }  y[i_2/C, i_2%C] = a }"},
      {"for i in [0, N) { temp h: f32[C, D]  for j in [0, C) { for k in [0, D) { h[j, k] = w[i, j, k] } }  r[i] = h[0, 0] }",
       "for i in [0, N) { temp h: f32[C, D]  for j_2 in [0, C*D) { h[j_2/D, j_2%D] = w[i, j_2/D, j_2%D] }  r[i] = h[0, 0] }"},
      // A loop index alone, in another order, shifted, as a value, in a mask or a gather.
      {"for i in [0, N) { for j in [0, C) { y[i, j] = x[i, j] * s[j] } }", ""},
      {"for i in [0, N) { for j in [0, C) { y[i, j] = t[j, i] } }", ""},
      {"for j in [0, C) { for i in [0, N) { y[i, j] = x[i, j] } }", ""},
      {"for i in [0, N) { for j in [0, C) { y[i, j] = x[i, j - 1 | 0.0] } }", ""},
      {"for i in [0, N) { for j in [0, C) { y[i, j] = f32(index(j)) } }", ""},
      {"for i in [0, N) { for j in [0, C) { y[i, j] = x[i, j | 0.0 if j < 3] } }", ""},
      {"for i in [0, N) { for j in [0, C) { y[i, j] = s[ids[i, j] | 0.0] } }", ""},
      {"for i in [0, N) { for j in [0, C) { for k in [0, i) { y[i, j] += x[i, j] } } }", ""},
      // Not the whole axis, or with a step.
      {"for i in [0, N) { for j in [1, C) { y[i, j] = x[i, j] } }", ""},
      {"for i in [0, N) { for j in [0, C) step 2 { y[i, j] = x[i, j] } }", ""},
  };
  for (const auto& c : kCases) {
    Program program = Around(c.before);
    const std::string before = ToText(program);
    const auto changed = CollapseLoops(program);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(*changed, *c.after != '\0') << c.before;
    EXPECT_TRUE(Verify(program).ok()) << Verify(program) << "\n" << c.before;
    const std::string after = ToText(program);
    EXPECT_EQ(after, *c.after != '\0' ? ToText(Around(c.after)) : before) << c.before;
    EXPECT_FALSE(*CollapseLoops(program)) << "not idempotent on " << c.before;
    EXPECT_EQ(ToText(program), after);
  }
}

}  // namespace
}  // namespace nestor::fusion
