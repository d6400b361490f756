// Whether the harness detects what it should: passes that break their promises, and rows that are
// no expectations.
#include "fusion/pass_testing.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "fusion/bless_testing.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[N]) -> (r: f32) {\n", "\n  r = 1.0\n}\n"};

absl::StatusOr<bool> Nothing(Program&) { return false; }
absl::StatusOr<bool> OnlySaysSo(Program&) { return true; }
absl::StatusOr<bool> Error(Program&) { return absl::InternalError("the pass failed"); }

absl::StatusOr<bool> DropsAll(Program& program) {
  program.body.clear();
  return true;
}

absl::StatusOr<bool> AddsAValue(Program& program) {
  program.AddParam("$k", DType::kF32);
  return false;
}

// Drops one item at a time, except for the last.
absl::StatusOr<bool> DropsFirst(Program& program) {
  if (program.body.size() < 2) return false;
  program.body.erase(program.body.begin());
  return true;
}

absl::StatusOr<bool> DropsFirstSilently(Program& program) {
  DropsFirst(program).IgnoreError();
  return false;
}

// The messages of the failures that a table makes.
std::vector<std::string> FailuresOf(absl::StatusOr<bool> (*pass)(Program&),
                                    absl::Span<const PassCase> cases) {
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    ExpectPass(pass, kFrame, cases);
  }
  std::vector<std::string> failures;
  for (int i = 0; i < results.size(); ++i)
    failures.push_back(results.GetTestPartResult(i).message());
  return failures;
}

TEST(PassTesting, SeesBrokenPromises) {
  const struct {
    absl::StatusOr<bool> (*pass)(Program&);
    PassCase row;
    const char* failure;  // a part of them; "": none
  } kCases[] = {
      {Nothing, {"", ""}, ""},
      {Nothing, {"r = 2.0", ""}, ""},
      {DropsFirst, {"r = 2.0", " "}, ""},
      // The program that a pass makes, and whether it says that it changed it.
      {Nothing, {"r = 2.0", " "}, "With diff"},
      {Nothing, {"r = 2.0", "r = 2.0"}, "what the pass says about a change"},
      {DropsFirst, {"r = 2.0", ""}, "With diff"},
      {DropsFirst, {"r = 2.0", "r = 3.0"}, "With diff"},
      {DropsFirstSilently, {"r = 2.0", " "}, "what the pass says about a change"},
      {DropsFirstSilently, {"r = 2.0", ""}, "With diff"},
      {OnlySaysSo, {"", ""}, "what the pass says about a change"},
      {Error, {"", ""}, "the pass failed"},
      // A program that Verify rejects; a value that nothing holds; a second run.
      {DropsAll, {"", " "}, "no statement writes"},
      {AddsAValue, {"", ""}, "unchanged, but not untouched"},
      {DropsFirst, {"r = 2.0  r = 3.0", "r = 3.0"}, "run again"},
      // Rows that do not parse, or hold programs that Verify rejects.
      {Nothing, {"r = }", ""}, "expected a value"},
      {Nothing, {"x[0] = 1.0", ""}, "the input x is written"},
      {DropsFirst, {"r = 2.0", "r = }"}, "expected a value"},
      {DropsFirst, {"r = 2.0", "x[0] = 1.0"}, "the input x is written"},
  };
  for (const auto& c : kCases) {
    const std::string failures = absl::StrJoin(FailuresOf(c.pass, {c.row}), "\n");
    EXPECT_EQ(failures.empty(), *c.failure == '\0') << c.row.before << "\n" << failures;
    EXPECT_TRUE(absl::StrContains(failures, c.failure)) << "no \"" << c.failure << "\" in\n"
                                                        << failures;
  }
}

// All rows are looked at, and the failure names its own.
TEST(PassTesting, NamesTheRow) {
  const std::vector<std::string> failures =
      FailuresOf(Nothing, {{"r = 2.0", " "}, {"r = 3.0", ""}, {"r = 4.0", " "}});
  ASSERT_EQ(failures.size(), 4u);  // the answer and the text of two rows
  for (int i : {0, 1}) EXPECT_TRUE(absl::StrContains(failures[i], ": r = 2.0")) << failures[i];
  for (int i : {2, 3}) EXPECT_TRUE(absl::StrContains(failures[i], ": r = 4.0")) << failures[i];
}

// The right string of a source is found to be the expectation, however it is laid out.
TEST(Bless, RewritesOneLiteral) {
  const struct {
    const char* source;
    std::vector<std::string> expected;
    const char* result;  // "": there is no such row
  } kCases[] = {
      {R"(T({{"b", "a"}}))", {"c"}, R"(T({{"b", "c"}}))"},
      {R"(T({{"b", "a"}}))", {}, R"(T({{"b", ""}}))"},
      {R"(T({{"b", "a"}}))", {"x[\"q\"]"}, R"(T({{"b", "x[\"q\"]"}}))"},
      {R"(T({{"x", "b"}, {"b",  // "b", "a"
  "a"}}))",
       {"c"},
       R"(T({{"x", "b"}, {"b",  // "b", "a"
  "c"}}))"},
      {"  {R\"(b)\",\n   R\"(a)\"},",
       {"for {", "  c", "  d", "}"},
       "  {R\"(b)\",\n   R\"(\n     for {\n       c\n       d\n     })\"},"},
      {R"(T({{"b", "a"}}))",
       {"for {", "  for {", "    c", "  }", "}"},
       R"(T({{"b", "for { for { c } }"}}))"},
      {R"(f('"', "b", ""  "a" ""))", {"c"}, R"(f('"', "b", "c"))"},
      {R"(T({{"b", "a"}, {"b", "a"}}))", {"c"}, ""},
      {R"(T({{"a", "b"}}))", {"c"}, ""},
      {R"(T({{"b" "a"}}))", {"c"}, ""},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(WithExpectation(c.source, "b", "a", c.expected).value_or(""), c.result) << c.source;
  }
}

}  // namespace
}  // namespace nestor::loop
