// The list by its contents after each call.
#include "jit/least_recently_used.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

using Names = LeastRecentlyUsed<std::string, int>;

std::string Text(const Names& names) {
  std::string text;
  for (const auto& [key, value] : names.entries()) absl::StrAppend(&text, key, value, " ");
  return text;
}

TEST(LeastRecentlyUsed, KeepsTheOrderOfUse) {
  Names names;
  EXPECT_EQ(names.Find("a"), nullptr);
  EXPECT_EQ(names.Keep("a", 1), 1);
  EXPECT_EQ(names.Keep("b", 2), 2);
  EXPECT_EQ(names.Keep("c", 3), 3);
  EXPECT_EQ(Text(names), "c3 b2 a1 ");
  EXPECT_EQ(*names.Find("a"), 1);
  EXPECT_EQ(Text(names), "a1 c3 b2 ");
  EXPECT_EQ(names.Keep("b", 9), 2) << "what is kept stays";
  EXPECT_EQ(Text(names), "b2 a1 c3 ");
  names.ForgetLast();
  EXPECT_EQ(names.Find("c"), nullptr);
  EXPECT_EQ(Text(names), "b2 a1 ");
  EXPECT_EQ(names.Keep("c", 4), 4);
  names.Clear();
  EXPECT_EQ(names.Find("c"), nullptr);
  EXPECT_EQ(Text(names), "");
}

}  // namespace
}  // namespace nestor::jit
