// A memo changes no answer, and an access that it has seen costs no proof. simplify_test.cc checks
// which answers are right.
#include "fusion/simplify_access.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fusion/steps.h"
#include "gtest/gtest.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

// The loads of the only statement of a nest over i in [0, N), in order, and the loop around it.
struct Nest {
  explicit Nest(const std::vector<std::string>& loads) {
    const std::string text = absl::StrCat(
        "program p(x: f32[N], z: f32[N], w: f32[M], k: i64[N]) -> (r: f32[N]) {\nfor i in [0, N) { r[i] = ",
        absl::StrJoin(loads, " + "), " }\n}");
    absl::StatusOr<Program> parsed = ParseProgram(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    if (!parsed.ok()) return;
    program = *std::move(parsed);
    around = program.body[0].As<Loop>();
    VisitLoads(program, around->body[0].As<Statement>()->value,
               [&](ValueId, const Access& access) { accesses.push_back(access); });
  }

  Program program;
  const Loop* around = nullptr;
  std::vector<Access> accesses;
};

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  std::string Load() {
    std::vector<std::string> conditions;
    for (int left = Pick(6); left > 0; --left) conditions.push_back(Condition());
    const std::string mask =
        conditions.empty() ? "" : absl::StrCat(" if ", absl::StrJoin(conditions, ", "));
    static const char* const kTensors[] = {"x", "z", "w"};
    return absl::StrCat(kTensors[Pick(3)], "[", Index(), " | 0.0", mask, "]");
  }

 private:
  std::string Condition() {
    static const char* const kCompare[] = {" < ", " <= ", " == ", " != "};
    static const char* const kSides[] = {"N", "M", "0", "1", "i"};
    const std::string side = kSides[Pick(5)], compare = kCompare[Pick(8) ? Pick(2) : Pick(4)];
    return Pick(2) ? absl::StrCat(Index(), compare, side) : absl::StrCat(side, compare, Index());
  }

  std::string Index() {
    static const char* const kIndices[] = {"i",    "i/2",       "i%4",      "(i + 1)/3*3",
                                           "k[i]", "N - 1 - i", "min(i, M)"};
    const std::string index = kIndices[Pick(3) ? 0 : Pick(7)];
    const int offset = Pick(7) - 3;
    return offset == 0 ? index : absl::StrCat(index, offset < 0 ? " - " : " + ", std::abs(offset));
  }

  int Pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  std::mt19937 random_;
};

TEST(SimplifyAccess, OneMemoForAllSaysWhatOneForEachSays) {
  int changed = 0, never = 0;
  for (uint32_t seed = 0; seed < 400 && !HasFailure(); ++seed) {
    Generator generator(seed);
    std::vector<std::string> loads;
    for (int i = 0; i < 12; ++i) loads.push_back(generator.Load());
    Nest nest(loads);
    ASSERT_EQ(nest.accesses.size(), loads.size());
    Ranges ranges(nest.program);
    ranges.Enter(*nest.around);
    AccessMemo shared;
    for (int walk = 0; walk < 2; ++walk) {
      for (size_t i = 0; i < loads.size(); ++i) {
        Access alone = nest.accesses[i], with_others = alone;
        AccessMemo own;
        const bool made = SimplifyAccess(nest.program, ranges, own, alone);
        ASSERT_EQ(SimplifyAccess(nest.program, ranges, shared, with_others), made)
            << "seed " << seed << ": " << loads[i];
        never += !made;
        if (!made) continue;
        EXPECT_EQ(with_others.place, alone.place) << "seed " << seed << ": " << loads[i];
        EXPECT_EQ(with_others.conditions, alone.conditions) << "seed " << seed << ": " << loads[i];
        EXPECT_EQ(with_others.masked, alone.masked) << "seed " << seed << ": " << loads[i];
        EXPECT_EQ(with_others.fill, alone.fill) << "seed " << seed << ": " << loads[i];
        changed += alone.conditions != nest.accesses[i].conditions;
      }
    }
  }
  EXPECT_GT(changed, 1000);
  EXPECT_GT(never, 100);
}

int64_t StepsOf(const std::vector<std::string>& loads) {
  Nest nest(loads);
  Ranges ranges(nest.program);
  ranges.Enter(*nest.around);
  AccessMemo memo;
  const int64_t before = StepsOfThread();
  for (Access& access : nest.accesses) SimplifyAccess(nest.program, ranges, memo, access);
  return StepsOfThread() - before;
}

// 0 <= i - first + .. and so on: `count` conditions that follow from i - 9 being in range.
std::string Implied(int count, absl::string_view tensor) {
  std::vector<std::string> conditions;
  for (int k = 1; k <= count; ++k) conditions.push_back(absl::StrCat("0 <= i - ", k));
  return absl::StrCat(tensor, "[i - 9 | 0.0 if ", absl::StrJoin(conditions, ", "), "]");
}

TEST(SimplifyAccess, ConditionsOfThePlaceTakeOneProofEach) {
  for (int count = 1; count <= 9; ++count) EXPECT_EQ(StepsOf({Implied(count, "x")}), count);
}

// x and z have one shape.
TEST(SimplifyAccess, WhatWasAskedTakesNoProof) {
  for (int count = 1; count <= 9; ++count) {
    const std::string x = Implied(count, "x"), z = Implied(count, "z");
    EXPECT_EQ(StepsOf({x, x, z, x}), count);
    EXPECT_EQ(StepsOf({Implied(9, "x"), z}), 9);
  }
  const std::string open = "x[i - 1 | 0.0 if i <= M, M <= i + 2, i - 3 < M]";
  EXPECT_GT(StepsOf({open}), 0);
  EXPECT_EQ(StepsOf({open, open, open}), StepsOf({open}));
}

}  // namespace
}  // namespace nestor::loop
