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
  return Parsed(absl::StrCat("program p(x: f32[N], ids: i64[N]) -> (y: f32[N], r: f32) {\n", items,
                             "\n  block { drop y[0] = 0.0 }  block { r = 0.0 }\n}\n"));
}

// Values and conditions, of all that is below.
TEST(Scopes, SizesStatements) {
  const struct {
    const char* item;
    int64_t size;
  } kCases[] = {
      {"block { r = 1.0 }", 1},
      {"block { r = x[0 | 0.0] + 1.0 }", 4},
      {"block { r = x[0 | 0.0 if 1 < N, 2 < N] }", 4},
      {"for i in [0, N) { y[i] = x[i] * 2.0  y[i] = y[i] }", 4},
      {"for i in [0, N) { acc a: f32 = argmax  for j in [0, N) { a argmax= (x[j], index(j)) }  y[i] = x[i] }",
       3},
  };
  for (const auto& c : kCases) {
    const Program program = Of(c.item);
    ASSERT_FALSE(program.blocks.empty());
    EXPECT_EQ(SizeOf(program, program.blocks[0].body[0]), c.size) << c.item;
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
    Program program = Of(absl::StrCat("block { ", c.before, " }"));
    Scope& body = program.blocks[0].body;
    const std::vector<TensorId> declared = DeclaredIn(body);
    Scope items;
    for (Item& item : body) {
      if (item.As<Declaration>() == nullptr) items.push_back(std::move(item));
    }
    body = WithDeclarations(program, std::move(items), declared);
    EXPECT_TRUE(Verify(program).ok()) << Verify(program);
    EXPECT_EQ(ToText(program), ToText(Of(absl::StrCat("block { ", c.after, " }"))));
  }
}

TEST(Scopes, FlatPrograms) {
  const struct {
    const char* items;
    bool flat;
  } kCases[] = {
      {"", true},
      {"block { r = 1.0 }  for i in [0, N) { y[i] = 1.0  y[i] = 2.0 }", true},
      {"block { r = 1.0  r = 2.0 }", false},
      {"block { temp t: f32 }", false},
      {"block {}", false},
  };
  for (const auto& c : kCases) {
    Program program = Of(c.items);
    EXPECT_EQ(IsFlat(program), c.flat) << c.items;
    if (!c.flat) continue;
    const std::string before = ToText(program);
    Scope items = TakeItems(program);
    EXPECT_TRUE(program.blocks.empty());
    PutItems(program, std::move(items));
    EXPECT_EQ(ToText(program), before);
  }
}

}  // namespace
}  // namespace nestor::loop
