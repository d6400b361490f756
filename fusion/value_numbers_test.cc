// Which values are numbered alike: those that are written alike, unless something between them
// changes what they read.
#include "fusion/value_numbers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text_testing.h"

namespace nestor::loop {
namespace {

// Two scalars, r and q, are assigned in turn; y and d are changed between them.
Program Of(absl::string_view type, absl::string_view first, absl::string_view between,
           absl::string_view second) {
  return Parsed(absl::StrCat(
      "program p(x: f32[N], i: i64[N]; $f: f32 = 1.0, $g: f32 = 1.0) -> (y: f32[N], d: i64[N], r: ",
      type, ", q: ", type, ") {\n  drop y[0] = 0.0  drop d[0] = 0  r = ", first, "  ", between,
      "  q = ", second, "\n}\n"));
}

// Whether the two have one number, with changes between them noted.
bool AreSame(const Program& program, bool alias) {
  ValueNumbers numbers(program);
  // After the stores that every output needs.
  const auto body = absl::MakeConstSpan(program.body).subspan(2);
  const int first = numbers.Of(body.front().As<Statement>()->value);
  EXPECT_EQ(numbers.Of(body.front().As<Statement>()->value), first);
  for (size_t i = 1; i + 1 < body.size(); ++i) {
    const Statement& statement = *body[i].As<Statement>();
    const int number = numbers.Of(statement.value);
    numbers.Change(statement.target.tensor);
    if (alias) numbers.Alias(statement.target, number);
  }
  return numbers.Of(body.back().As<Statement>()->value) == first;
}

TEST(ValueNumbers, WrittenAlike) {
  const struct {
    const char* first;
    const char* between;
    const char* second;
    bool same;
  } kCases[] = {
      {"x[0]", "", "x[0]", true},
      {"x[0]", "", "x[1]", false},
      {"exp(x[0]) + $f", "", "exp(x[0]) + $f", true},
      {"exp(x[0]) + $f", "", "$f + exp(x[0])", false},
      {"exp(x[0])", "", "log(x[0])", false},
      {"$f", "", "$g", false},
      {"0.0", "", "-0.0", false},
      {"1.0", "", "1.0", true},
      {"nan", "", "nan", true},
      {"f32(index(N))", "", "f32(index(N + 0))", true},
      {"f32(index(N))", "", "f32(index(N + 1))", false},
      {"f32(1)", "", "f32(u8(1))", false},
      {"f32(bf16(x[0]))", "", "f32(f16(x[0]))", false},
      // Masks and fills.
      {"x[0 | 0.0]", "", "x[0 | 0.0]", true},
      {"x[0 | 0.0]", "", "x[0 | -0.0]", false},
      {"x[0 | 0.0]", "", "x[0]", false},
      {"x[0 | 0.0 if N < 3]", "", "x[0 | 0.0]", false},
      {"x[0 | 0.0 if N < 3]", "", "x[0 | 0.0 if N < 4]", false},
      // Changes of a tensor that is read in a value, a place, a condition, an index.
      {"exp(y[0])", "y[0] = 1.0", "exp(y[0])", false},
      {"exp(y[0])", "y[1] = 1.0", "exp(y[0])", false},
      {"exp(y[0])", "d[0] = 1", "exp(y[0])", true},
      {"x[d[0]]", "d[0] = 1", "x[d[0]]", false},
      {"x[0 | 0.0 if d[0] < 2]", "d[0] = 1", "x[0 | 0.0 if d[0] < 2]", false},
      {"f32(index(d[0]))", "d[0] = 1", "f32(index(d[0]))", false},
      {"f32(index(i[0]))", "d[0] = 1", "f32(index(i[0]))", true},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(AreSame(Of("f32", c.first, c.between, c.second), false), c.same)
        << c.first << "  " << c.between << "  " << c.second;
  }
}

TEST(ValueNumbers, Aliases) {
  const struct {
    const char* first;
    const char* between;
    const char* second;
    bool same;
  } kCases[] = {
      {"exp(x[0])", "y[0] = exp(x[0])", "y[0]", true},
      {"exp(x[0])", "y[0] = exp(x[0])", "y[1]", false},
      {"exp(x[0])", "y[0] = exp(x[0])", "y[0 | 0.0]", false},
      {"exp(x[0])", "y[0] = exp(x[0])  y[1] = 2.0", "y[0]", false},
      {"exp(x[0])", "y[0] = exp(x[0])  d[0] = 1", "y[0]", true},
      {"exp(x[0])", "y[d[0]] = exp(x[0])  d[0] = 1", "y[d[0]]", false},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(AreSame(Of("f32", c.first, c.between, c.second), true), c.same)
        << c.first << "  " << c.between << "  " << c.second;
  }
}

}  // namespace
}  // namespace nestor::loop
