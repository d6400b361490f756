// Bands, cores and the loops and statements that stand alone, of nests in text.
#include "loop_ir/perfect_nest.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/text_testing.h"

namespace nestor::loop {
namespace {

// The names of the loops' indices.
template <class AnyLoop>
std::string Names(const Program& program, const std::vector<AnyLoop*>& loops) {
  return absl::StrJoin(loops, " ", [&](std::string* out, const Loop* loop) {
    absl::StrAppend(out, program.vars[loop->var]);
  });
}

Program Of(absl::string_view items) {
  return Parsed(absl::StrCat("program p(x: f32[N, N]) -> (y: f32[N, N], z: f32) { z = 0.0  ", items,
                             "  drop y[0, 0] = 0.0 }"));
}

TEST(PerfectNest, BandsAndCores) {
  const struct {
    const char* nest;
    const char* band;
    size_t items;     // in the core
    const char* one;  // the index of the only loop among them
    bool is_statement;
  } kCases[] = {
      {"for i in [0, N) { y[i, i] = 1.0 }", "i", 1, "", true},
      {"for i in [0, N) { for j in [i, N) step 2 { y[i, j] = 1.0 } }", "i j", 1, "", true},
      {"for i in [0, N) { y[i, 0] = 1.0  y[i, 1] = 2.0 }", "i", 2, "", false},
      {"for i in [0, N) { for j in [0, N) { z = 1.0  for k in [0, N) { z = x[i, k] } } }", "i j", 2,
       "k", false},
      {"for i in [0, N) { for j in [0, N) { z = x[i, j] }  for k in [0, N) { z = x[i, k] } }", "i",
       2, "", false},
      {"for i in [0, N) { temp t: f32  for j in [0, N) { for k in [0, N) { t = x[j, k] } } }", "i",
       2, "j", false},
  };
  for (const auto& c : kCases) {
    Program program = Of(c.nest);
    Loop& nest = *program.body[1].As<Loop>();
    const Loop& same = nest;
    const std::vector<Loop*> band = BandOf(nest);
    EXPECT_EQ(Names(program, band), c.band) << c.nest;
    EXPECT_EQ(BandOf(same), LoopsAround(band.begin(), band.end())) << c.nest;
    EXPECT_EQ(CoreOf(nest).size(), c.items) << c.nest;
    EXPECT_EQ(&CoreOf(same), &CoreOf(nest)) << c.nest;
    const Loop* one = OneLoopAmong(CoreOf(nest));
    EXPECT_EQ(one == nullptr ? "" : program.vars[one->var], c.one) << c.nest;
    EXPECT_EQ(OnlyStatementIn(nest) != nullptr, c.is_statement) << c.nest;
    EXPECT_EQ(OnlyStatementIn(same), OnlyStatementIn(nest)) << c.nest;
  }
}

TEST(PerfectNest, OnlyLoops) {
  const Program program = Of("for i in [0, N) { for j in [0, N) { z = x[i, j] } }");
  EXPECT_EQ(OnlyLoopIn(program.body), nullptr);  // there are statements beside it
  const Loop& outer = *program.body[1].As<Loop>();
  ASSERT_NE(OnlyLoopIn(outer.body), nullptr);
  EXPECT_EQ(OnlyLoopIn(OnlyLoopIn(outer.body)->body), nullptr);  // that is a statement
}

TEST(PerfectNest, IsPutTogetherAgain) {
  Program program = Of("for i in [0, N) { for j in [i, N) step 2 { z = x[i, j]  z = 2.0 } }");
  const std::string text = ToText(program);
  const Loop nest = std::move(*program.body[1].As<Loop>());
  program.body[1] = std::move(Around(BandOf(nest), CoreOf(nest))[0]);
  EXPECT_EQ(ToText(program), text);
}

}  // namespace
}  // namespace nestor::loop
