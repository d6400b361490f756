// The helpers of passes on small programs: sizes, and where declarations go.
#include "fusion/scopes.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/text_testing.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

Program Of(absl::string_view items) {
  return Parsed(absl::StrCat(
      "program p(x: f32[N], ids: i64[N]) -> (y: f32[N], r: f32) {\n  drop y[0] = 0.0  r = 0.0\n",
      items, "\n}\n"));
}

// Values and conditions, of all that is below.
TEST(Scopes, SizesStatements) {
  const struct {
    const char* item;
    int64_t size;
  } kCases[] = {
      {"r = 1.0", 1},
      {"r = x[0 | 0.0] + 1.0", 4},
      {"r = x[0 | 0.0 if 1 < N, 2 < N]", 4},
      {"for i in [0, N) { y[i] = x[i] * 2.0  y[i] = y[i] }", 4},
      {"for i in [0, N) { acc a: f32 = argmax  for j in [0, N) { a argmax= (x[j], index(j)) }  y[i] = x[i] }",
       3},
  };
  for (const auto& c : kCases) {
    const Program program = Of(c.item);
    EXPECT_EQ(SizeOf(program, NestAt(program, 2)), c.size) << c.item;
  }
}

TEST(Scopes, DeclaresBeforeTheFirstUse) {
  const struct {
    const char* before;
    const char* after;
  } kCases[] = {
      {"temp a: f32  r = 1.0  a = 2.0  r = a", "r = 1.0  temp a: f32  a = 2.0  r = a"},
      {"temp a: f32  temp b: f32  b = 1.0  a = b", "temp b: f32  b = 1.0  temp a: f32  a = b"},
      {"acc a: f32 = sum  temp b: f32  r = 1.0  for i in [0, N) { a += x[i]  b = 1.0 }  r = a",
       "r = 1.0  acc a: f32 = sum  temp b: f32  for i in [0, N) { a += x[i]  b = 1.0 }  r = a"},
      {"temp d: i64  temp e: f32[N]  r = 1.0  d = 0  r = x[d[]]",
       "r = 1.0  temp d: i64  d = 0  r = x[d[]]  temp e: f32[N]"},
      {"r = 1.0", "r = 1.0"},
  };
  for (const auto& c : kCases) {
    Program program = Of(c.before);
    const std::vector<TensorId> declared = TakeDeclarations(program.body);
    program.body = WithDeclarations(program, std::move(program.body), declared);
    EXPECT_TRUE(Verify(program).ok()) << Verify(program);
    EXPECT_EQ(ToText(program), ToText(Of(c.after)));
  }
}

// Items that are taken apart are the same when they are joined again.
TEST(Scopes, ApartAndJoined) {
  for (const char* items : {"", "r = 1.0", "temp t: f32  t = 1.0  for i in [0, N) { y[i] = t }"}) {
    Program program = Of(items);
    const std::string before = ToText(program);
    const size_t count = program.body.size();
    std::vector<Scope> parts = Apart(std::move(program.body));
    EXPECT_EQ(parts.size(), count);
    program.body = Joined(std::move(parts));
    EXPECT_EQ(ToText(program), before);
  }
}

// What a scope declares, and what is left.
TEST(Scopes, TakesDeclarations) {
  Program program = Of(
      "temp t: f32  t = 1.0  acc a: f32 = sum  for i in [0, N) { temp u: f32  u = t  y[i] = u }");
  std::string names;
  for (TensorId tensor : TakeDeclarations(program.body))
    absl::StrAppend(&names, program[tensor].name, " ");
  EXPECT_EQ(names, "t a ");
  EXPECT_EQ(program.body.size(), Of("").body.size() + 2);
}

}  // namespace
}  // namespace nestor::loop
