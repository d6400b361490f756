// Proofs about accesses: one program per line, before and after. The verifier proves them again.
#include "loop_ir/proofs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

std::string Around(absl::string_view items) {
  return absl::StrCat(
      "program p(x: f32[N, M], v: f32[N], w: f32[3], ids: i64[N]) -> (y: f32[N, M], r: f32[N]) {\n",
      items, "\n for i in [0, N) { r[i] = 0.0  for j in [0, M) { y[i, j] = 0.0 } }\n}\n");
}

TEST(MarkChecked, TextInTextOut) {
  const struct {
    const char* before;
    const char* after;
  } kCases[] = {
      {"for i in [0, N) { r[i] = v[i] + w[2] }", "for i in [0, N) { r[i] = v[i] + w[2] }"},
      // Marks are per axis.
      {"for i in [0, N) { r[i] = x[ids[i], i] + x[i, 0] }",
       "for i in [0, N) { r[i] = x[ids[i] checked, i checked] + x[i, 0 checked] }"},
      {"for i in [0, N) { y[i, i] = w[i] }", "for i in [0, N) { y[i, i checked] = w[i checked] }"},
      // Conditions are taken into account; a mask is checked.
      {"for i in [0, N) { r[i] = w[i | 0.0 if i < 3] + w[i | 0.0] }",
       "for i in [0, N) { r[i] = w[i | 0.0 if i < 3] + w[i checked | 0.0] }"},
      // The same value in two loops, proven in one.
      {"for i in [0, N) { for j in [0, min(M, 3)) { y[i, j] = w[j] } for k in [0, M) { y[i, k] = w[k] } }",
       "for i in [0, N) { for j in [0, min(M, 3)) { y[i, j] = w[j] } for k in [0, M) { y[i, k] = w[k checked] } }"},
      // Loads in subscripts: they are made whether conditions hold or not.
      {"for i in [0, N) { r[i] = v[ids[ids[i]]] + v[ids[i + 1] | 0.0 if i + 1 < N] + v[ids[i] | 0.0 if ids[ids[i]] < 3] }",
       "for i in [0, N) { r[i] = v[ids[ids[i]] checked loads checked] + v[ids[i + 1] checked loads checked | 0.0 if i + 1 < N]"
       " + v[ids[i] checked | 0.0 if ids[ids[i]] < 3] }"},
      // One load that occurs twice.
      {"for i in [0, N) { r[i] = v[ids[i]] * v[ids[i]] }",
       "for i in [0, N) { r[i] = v[ids[i] checked] * v[ids[i] checked] }"},
  };
  for (const auto& [before, after] : kCases) {
    Program program = ParseProgram(Around(before)).value();
    ASSERT_TRUE(Verify(program).ok()) << Verify(program);
    EXPECT_TRUE(*MarkChecked(program));
    EXPECT_EQ(ToText(program),
              ToText(ParseProgram(Around(absl::StrCat("proven ", after))).value()));
    EXPECT_EQ(Verify(program), absl::OkStatus());
    EXPECT_FALSE(*MarkChecked(program)) << before;
  }
}

TEST(MarkChecked, WhatIsProvenLosesItsMark) {
  Program program = ParseProgram(Around("for i in [0, N) { r[i checked] = v[i checked] }")).value();
  EXPECT_TRUE(*MarkChecked(program));
  EXPECT_EQ(ToText(program),
            ToText(ParseProgram(Around("proven for i in [0, N) { r[i] = v[i] }")).value()));
}

}  // namespace
}  // namespace nestor::loop
