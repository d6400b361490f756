// The check finds nothing wrong in a few random trials, and names the seed of a trial that crashes.
#include "check/engines/self_check.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "check/engines/trial_programs.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

TEST(SelfCheck, RandomTrials) {
  SelfCheckOptions options;
  options.trials = 150;
  const SelfCheckReport report = SelfCheck(DrawTrialOp, options);
  EXPECT_EQ(report.counts.trials, options.trials);
  EXPECT_GT(report.counts.pairs, options.trials);
  EXPECT_GT(report.counts.bounds, options.trials / 4);
  EXPECT_GT(report.counts.quotients, options.trials / 20);
  for (const SelfCheckFinding& finding : report.findings) {
    ADD_FAILURE() << finding.seed << ": " << finding.what << "\n" << finding.program;
  }
}

TEST(SelfCheck, NamesTheSeedThatEndsATrial) {
  const auto op_of = [](uint64_t seed) {
    if (seed == 5 || seed == 7) std::abort();
    return ParseOp("op f(x: f32[N]) -> (y) { y[i] = x[i] }").value();
  };
  SelfCheckOptions options;
  options.trials = 10;
  options.most_findings = 3;
  const SelfCheckReport report = SelfCheck(op_of, options);
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.findings[0].seed, 5u);
  EXPECT_EQ(report.findings[1].seed, 7u);
  EXPECT_TRUE(absl::StrContains(report.findings[0].what, "signal 6")) << report.findings[0].what;
}

// Difference quotients that step over many jumps, stay on one side of them all, or start between
// two equal ones agree: nothing is said about the gradient.
TEST(SelfCheck, SaysNothingOfJumpsApartFromTheSteps) {
  for (const char* row :
       {"mod(x[i], 1e-41)", "fmod(x[i], 1e-41)", "x[i] % x[i + M | 1e-41]",
        "fmod(x[i], where(x[i] > 9, x[i], $a))", "x[i] + fmod(1.0, $a)", "sin(x[i] * x[i] + 1e15)",
        "where(x[i] == 0.31, 0.0, where(x[i] > 0.31, x[i] - 1.0, x[i] + 0.38))"}) {
    const auto op_of = [&](uint64_t) {
      return ParseOp(absl::StrCat("op f(x: f32[M]; $a: f32 = 1e-41) -> (y) { y[i] = ", row, " }"))
          .value();
    };
    SelfCheckOptions options;
    options.trials = 20;
    options.derivative = 0;
    options.shrinking = absl::ZeroDuration();
    const SelfCheckReport report = SelfCheck(op_of, options);
    EXPECT_TRUE(report.findings.empty()) << row << ": " << report.findings[0].what;
  }
}

// Axes are merged regardless of the strides of arguments of which only the shape is used: then, in
// fast mode, sums run in another order, and are held against a program of that order.
TEST(SelfCheck, KnowsWhatRunsBesideShapes) {
  const auto op_of = [](uint64_t) {
    return ParseOp("op f(x: f32[M, 3], u: shape f32[N, M]) -> (y) { y = sum[i, j](x[i, j]) }")
        .value();
  };
  SelfCheckOptions options;
  options.trials = 60;
  options.derivative = 0;
  options.shrinking = absl::ZeroDuration();
  const SelfCheckReport report = SelfCheck(op_of, options);
  EXPECT_TRUE(report.findings.empty()) << report.findings[0].what;
}

// Alone, a seed gives the same program.
TEST(SelfCheck, ProgramsFollowFromTheSeed) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Op op = DrawTrialOp(seed);
    EXPECT_EQ(PrintOp(op), PrintOp(DrawTrialOp(seed)));
    EXPECT_EQ(PrintOp(Derived(op, -1, seed)), PrintOp(Derived(op, -1, seed)));
  }
}

}  // namespace
}  // namespace nestor
