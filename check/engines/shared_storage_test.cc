// Tensors share storage where their live ranges allow it, and results do not change.
#include "check/engines/shared_storage.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "check/engines/finding.h"
#include "check/engines/trial_inputs.h"
#include "check/engines/trial_programs.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

std::set<std::string> TextsOf(const char* program) {
  const absl::StatusOr<Op> op = ParseOp(program);
  EXPECT_TRUE(op.ok()) << op.status();
  std::set<std::string> texts;
  for (uint64_t seed = 0; op.ok() && seed < 100; ++seed) {
    Random random(seed);
    texts.insert(loop::ToText(WithSharedStorage(Lower(*op), random)));
  }
  return texts;
}

bool AnyHolds(const std::set<std::string>& texts, absl::string_view part) {
  for (const std::string& text : texts) {
    if (absl::StrContains(text, part)) return true;
  }
  return false;
}

TEST(SharedStorage, FollowsLives) {
  const std::set<std::string> texts = TextsOf(
      "op f(x: f32[N], z: f32[M]) -> (y) {\n"
      "  a[i] = exp(x[i])\n  b[i] = a[i] + a[N - 1 - i]\n  c[i] = tanh(b[i])\n  y[i] = c[i] * b[i]\n}");
  EXPECT_TRUE(AnyHolds(texts, "t6[i] = exp(x[i])")) << "a and c follow each other\n"
                                                    << *texts.begin();
  EXPECT_TRUE(AnyHolds(texts, "y[i] = exp(x[i])")) << "a and the result do\n" << *texts.begin();
  EXPECT_TRUE(AnyHolds(texts, "t5[i_3] = t5[i_3] + t4[i_3]")) << "a ends where b begins\n"
                                                              << *texts.begin();
  EXPECT_FALSE(AnyHolds(texts, "t6[i_4] = tanh(t6[i_4])")) << "b is read again";
}

TEST(SharedStorage, LeavesWhatIsReadAtOtherPlaces) {
  const std::set<std::string> texts = TextsOf(
      "op f(x: f32[N]) -> (y) {\n  a[i] = exp(x[i])\n  y[i] = tanh(a[N - 1 - i]) where i < N\n}");
  EXPECT_TRUE(AnyHolds(texts, "y[i] = exp(x[i])")) << *texts.begin();
  EXPECT_FALSE(AnyHolds(texts, "t3[i] = exp(x[i])")) << *texts.begin();
}

TEST(SharedStorage, LeavesWhatIsGatheredFrom) {
  const std::set<std::string> texts = TextsOf(
      "op f(x: i64[N], v: i64[N]) -> (y) {\n  p[i] = x[i] * 2\n  q[i] = v[p[i] % N]\n  y[i] = q[i] + 1\n}");
  EXPECT_FALSE(AnyHolds(texts, "y[i] = x[i] * 2")) << *texts.begin();
}

TEST(SharedStorage, ComputesTheSame) {
  int shared = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Op op = DrawTrialOp(seed);
    const loop::Program program = Lower(op);
    Random random(seed);
    const loop::Program other = WithSharedStorage(program, random);
    shared += DeclaredIn(program.body).size() != DeclaredIn(other.body).size();
    TrialInputOptions options;
    const auto drawn = DrawTrialInputs(op, program, seed, options);
    if (!drawn) continue;
    const Results want = nestor::Run(program, drawn->inputs);
    if (!want.ok()) continue;
    Counts counts;
    const Finding finding =
        Compare(want, nestor::Run(other, drawn->inputs), "in shared storage", counts);
    ASSERT_FALSE(finding.has_value()) << *finding << "\n" << loop::ToText(other);
  }
  EXPECT_GE(shared, 300);
}

}  // namespace
}  // namespace nestor
