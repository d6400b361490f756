// The ranges that are found of values, as text.
#include "jit/schedule/integer_range.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// The range of the value of the program's only statement: "low..high", or "none".
std::string RangeIn(const char* value) {
  Program program = ParseVerified(absl::StrCat(
      "program p(a: i8[N], b: u8[N], c: i16[N], d: i32[N]; $z: i64 = 0 in [0, 255], $any: i64 = 0) -> (y: i32[N]) {\n"
      "for i in [0, N) { y[i] = ",
      value, " } }"));
  Ranges ranges(program);
  std::string text = "none";
  VisitStatements(program, [&](Statement& statement) {
    const auto range = RangeOf(program, ranges, statement.value);
    if (range) text = absl::StrCat(range->low, "..", range->high);
  });
  return text;
}

TEST(IntegerRange, OfValues) {
  EXPECT_EQ(RangeIn("i32(a[i])"), "-128..127");
  EXPECT_EQ(RangeIn("i32(b[i])"), "0..255");
  EXPECT_EQ(RangeIn("i32(c[i]) + i32(7)"), "-32761..32774");
  EXPECT_EQ(RangeIn("i32(b[i]) - i32(a[i])"), "-127..383");
  EXPECT_EQ(RangeIn("i32(b[i]) - i32(index($z))"), "-255..255");
  // Not known, or it wraps on the way.
  EXPECT_EQ(RangeIn("i32(a[i]) - i32(index($any))"), "none");
  EXPECT_EQ(RangeIn("d[i]"), "none");
  EXPECT_EQ(RangeIn("i32(b[i] + u8(1))"), "none");
  EXPECT_EQ(RangeIn("i32(i8(b[i]))"), "none");
  EXPECT_EQ(RangeIn("i32(a[i]) * i32(a[i])"), "none");
  // The bounds themselves wrap.
  EXPECT_EQ(RangeIn("i32(i64(c[i]) + i64(9223372036854755807))"), "none");
  EXPECT_EQ(RangeIn("i32(i64(-9223372036854755807) - i64(c[i]))"), "none");
}

}  // namespace
}  // namespace nestor::loop
