#include "fusion/flatten.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::fusion {
namespace {

using loop::ParseProgram;
using loop::Program;

Program Around(absl::string_view items) {
  const std::string text = absl::StrCat("program p(x: f32[N, C]) -> (y: f32[N], r: f32) {\n", items,
                                        "\n  for o in [0, N) { y[o] = 1.0 }  block { r = 1.0 }\n}\n");
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  if (!program.ok()) return Program();
  EXPECT_TRUE(Verify(*program).ok()) << Verify(*program) << "\n" << text;
  return *program;
}

TEST(Flatten, TextInTextOut) {
  const struct {
    const char* before;
    const char* after;  // "": unchanged
  } kCases[] = {
      // Each block one loop or one statement already; what a loop holds stays.
      {"", ""},
      {"block { r = 2.0 }", ""},
      {"temp t: f32  block { t = 2.0 }  for i in [0, N) { y[i] = t }", ""},
      {"for i in [0, N) { temp t: f32  acc s: f32 = sum  t = 1.0  for c in [0, C) { s += x[i, c] }  y[i] = s + t }", ""},
      // Loops and statements in the order of the text.
      {"block { r = 2.0  r = 3.0 }", "block { r = 2.0 }  block { r = 3.0 }"},
      {"block { r = 2.0  for i in [0, N) step 2 { y[i] = r }  r = 3.0 }",
       "block { r = 2.0 }  for i in [0, N) step 2 { y[i] = r }  block { r = 3.0 }"},
      {"for i in [0, N) { y[i] = 2.0 }  block { for j in [0, N) parallel { y[j] = x[j, 0] }  r = 2.0 }  "
       "for k in [0, N) { y[k] += r }",
       "for i in [0, N) { y[i] = 2.0 }  for j in [0, N) parallel { y[j] = x[j, 0] }  block { r = 2.0 }  "
       "for k in [0, N) { y[k] += r }"},
      // What blocks declare, behind what the program declares.
      {"block { temp t: f32  t = 2.0  r = t }", "temp t: f32  block { t = 2.0 }  block { r = t }"},
      {"temp a: f32  block { a = 1.0  temp b: f32[C]  for c in [0, C) { b[c] = a }  acc s: f32 = sum  "
       "for d in [0, C) { s += b[d] }  r = s }",
       "temp a: f32  temp b: f32[C]  acc s: f32 = sum  block { a = 1.0 }  for c in [0, C) { b[c] = a }  "
       "for d in [0, C) { s += b[d] }  block { r = s }"},
      {"block { acc b: f32 = argmax  for c in [0, C) { b argmax= (x[0, c], index(c)) }  r = x[0, b[]] }",
       "acc b: f32 = argmax  for c in [0, C) { b argmax= (x[0, c], index(c)) }  block { r = x[0, b[]] }"},
      // Nothing to hold.
      {"block {}", " "},
      {"block { temp t: f32[N] }", "temp t: f32[N]"},
      {"block {}  block { r = 2.0  for i in [0, N) { for c in [0, C) {} } }",
       "block { r = 2.0 }  for i in [0, N) { for c in [0, C) {} }"},
  };
  for (const auto& c : kCases) {
    Program program = Around(c.before);
    const std::string before = ToText(program);
    const auto changed = FlattenBlocks(program);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(*changed, *c.after != '\0') << c.before;
    EXPECT_TRUE(Verify(program).ok()) << Verify(program) << "\n" << c.before;
    const std::string after = ToText(program);
    EXPECT_EQ(after, *c.after ? ToText(Around(c.after)) : before);
    EXPECT_FALSE(*FlattenBlocks(program)) << "not idempotent on " << c.before;
    EXPECT_EQ(ToText(program), after);
  }
}

// A register tensor must stay in a scope: a program cannot declare it.
TEST(Flatten, RegisterTensors) {
  Program program = Around("block { temp t: f32[4] register  t[0] = 2.0  r = t[0] }");
  ASSERT_TRUE(FlattenBlocks(program).ok());
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
}

}  // namespace
}  // namespace nestor::fusion
