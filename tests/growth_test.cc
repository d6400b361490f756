// Twice the statements cost about twice the work, in every stage from the text to the
// listing of the code and to the gradient. It counts allocations and their bytes, which are the
// same on every machine: they show a stage that copies or keeps more than its share for each
// statement. (A scan that only reads does not; //bench:growth prints seconds.)
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/growth_programs.h"
#include "bench/growth_stages.h"
#include "fusion/pipeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "nestor.h"
#include "tests/allocation_counter.h"
#include "uops/call.h"

namespace nestor::bench {
namespace {

// The most that twice the statements may cost: n log n doubles to 2.2 at these sizes.
constexpr double kMostGrowth = 2.3;

struct Cost {
  std::string stage;
  int64_t allocations = 0, bytes = 0;
};

// The stages that a program of `n` statements goes through.
using Stages = std::function<std::vector<GrowthStage>(int n)>;

// Adds what each stage costs to `costs`.
void AddCosts(const std::vector<GrowthStage>& stages, std::vector<Cost>& costs) {
  costs.resize(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    const Allocations before = AllocationsSoFar();
    const absl::Status status = stages[i].run();
    const Allocations after = AllocationsSoFar();
    costs[i].stage = stages[i].name;
    costs[i].allocations += after.count - before.count;
    costs[i].bytes += after.bytes - before.bytes;
    EXPECT_EQ(status, absl::OkStatus()) << stages[i].name;
  }
}

// Costs are summed over sizes from `n` to almost 2 * n, since containers double, each
// at different sizes.
std::vector<Cost> CostsFrom(int n, const Stages& stages) {
  std::vector<Cost> costs;
  for (int quarter = 4; quarter < 8; ++quarter) AddCosts(stages(n * quarter / 4), costs);
  return costs;
}

// `but`: a stage that is not checked here.
void ExpectLinear(const std::string& what, int n, const Stages& stages,
                  const std::string& but = "") {
  const std::vector<Cost> once = CostsFrom(n, stages), twice = CostsFrom(2 * n, stages);
  const auto ratio = [](int64_t a, int64_t b) {
    return static_cast<double>(b) / static_cast<double>(a);
  };
  for (size_t i = 0; i < once.size(); ++i) {
    if (once[i].stage == but) continue;
    const std::string place = absl::StrCat(what, ", ", once[i].stage);
    EXPECT_LE(ratio(once[i].allocations, twice[i].allocations), kMostGrowth)
        << place << ", allocations";
    // RE2 makes a bitmap of the rest of the text for each token, up to some length.
    if (once[i].stage == "parse") continue;
    EXPECT_LE(ratio(once[i].bytes, twice[i].bytes), kMostGrowth) << place << ", bytes";
  }
}

// Leaves out the passes of fusion whose names begin with `prefix`.
GrowthOptions Without(absl::string_view prefix) {
  const fusion::Pipeline pipeline = fusion::Pipeline::Default();
  GrowthOptions options;
  for (const fusion::Pass& pass : pipeline.passes()) {
    if (absl::StartsWith(pass.name, prefix)) options.without.push_back(pass.name);
  }
  return options;
}

class Growth : public testing::TestWithParam<int> {
 protected:
  const GrowthKind& kind() const { return GrowthKinds()[static_cast<size_t>(GetParam())]; }
  // Objects that are made once and kept are made before anything is counted.
  void SetUp() override {
    std::vector<Cost> ignored;
    AddCosts(StagesToResults(kind().text(3)), ignored);
    AddCosts(StagesToGradient(kind().text(3)), ignored);
  }
};

// Each statement keeps a loop of its own.
TEST_P(Growth, OfManyLoopsIsLinear) {
  const GrowthOptions unfused = Without("");
  ExpectLinear(kind().name, 200, [&](int n) { return StagesToResults(kind().text(n), unfused); });
}

// Statements that can share a loop do, and stay separate: one loop has many statements.
TEST_P(Growth, OfLongLoopsIsLinear) {
  const GrowthOptions merged = Without("substitute");
  ExpectLinear(
      kind().name, 60, [&](int n) { return StagesToResults(kind().text(n), merged); }, "fusion");
}

// More statements could share a loop than merging puts into one.
TEST_P(Growth, OfFusionBeyondOneLoopIsLinear) {
  const GrowthOptions merged = Without("substitute");
  ExpectLinear(kind().name, 300, [&](int n) {
    std::vector<GrowthStage> stages = StagesToResults(kind().text(n), merged);
    stages.resize(3);  // parse, lower, fusion
    return stages;
  });
}

TEST_P(Growth, OfGradientsIsLinear) {
  ExpectLinear(kind().name, 200, [&](int n) { return StagesToGradient(kind().text(n)); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Growth, testing::Range(0, static_cast<int>(GrowthKinds().size())),
                         [](const testing::TestParamInfo<int>& info) {
                           return GrowthKinds()[static_cast<size_t>(info.param)].name;
                         });

// ---- Limits

TEST(Limits, OfBlocksIsAStatus) {
  const absl::StatusOr<Op> op =
      Parse(GrowthKinds()[0].text(static_cast<int>(jit::kMostItems) / 4 + 1));
  ASSERT_EQ(op.status(), absl::OkStatus());
  const absl::Status status = Compile(*op).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("program chain: "));
}

TEST(Limits, OfMicroOpsIsAStatus) {
  std::string terms = "1.0";
  for (int i = 0; i <= kMostMicroOps; ++i) terms += "+1.";
  const absl::Status status = Parse(absl::StrCat("op f() -> (y) { y = ", terms, " }")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("micro-ops"));
}

}  // namespace
}  // namespace nestor::bench
