// Memory and traffic of the convolutional network's training step.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "examples/digits/model.h"
#include "fusion/cost/bytes_walked_testing.h"
#include "fusion/dead_code.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "loop_ir/lower.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/memory_plan_testing.h"

namespace nestor::digits {
namespace {

using loop::SizedProgram;
using loop::Sizes;

loop::Program UnfusedStep(absl::string_view model) {
  const auto forward = ForwardOp(model);
  EXPECT_TRUE(forward.ok()) << forward.status();
  const auto step = TrainingStepOp(*forward);
  EXPECT_TRUE(step.ok()) << step.status();
  loop::Program program = Lower(*step);
  EXPECT_TRUE(loop::EliminateDeadCode(program).ok());
  return program;
}

loop::Program FusedStep(absl::string_view model) {
  loop::Program program = UnfusedStep(model);
  EXPECT_EQ(fusion::Pipeline::Default().Run(program), absl::OkStatus());
  return program;
}

int64_t Label(loop::TensorId, int64_t element) { return element * 7 % 10; }

void ExpectCloseToLowerBound(const std::string& name, const loop::Program& program) {
  const loop::MemoryPlan plan = loop::PlanMemory(program);
  for (int64_t n : {1, 2, 7, 32, 64, 1000}) {
    const auto sized = SizedProgram::Create(program, {{"N", n}});
    ASSERT_TRUE(sized.ok()) << sized.status();
    const auto arena = loop::EvaluatePlan(*sized, plan);
    ASSERT_TRUE(arena.ok()) << arena.status();
    const double ratio =
        static_cast<double>(arena->total) / static_cast<double>(arena->lower_bound);
    std::printf("%s, N = %d: arena %.0f bytes, %.4f of the lower bound\n", name.c_str(),
                static_cast<int>(n), static_cast<double>(arena->total), ratio);
    // In a small arena, alignment is the larger part.
    const int64_t padding = loop::kArenaAlignment * static_cast<int64_t>(plan.buffers.size());
    EXPECT_TRUE(ratio <= 1.1 || arena->total <= arena->lower_bound + padding) << name << " " << n;
  }
}

TEST(StepProgram, ArenaIsCloseToItsLowerBound) {
  for (const char* model : {"mlp", "cnn"}) {
    ExpectCloseToLowerBound(model, UnfusedStep(model));
    ExpectCloseToLowerBound(absl::StrCat(model, " fused"), FusedStep(model));
  }
}

// Every parameter and its momentum can be updated in place.
void ExpectUpdatesInPlace(const loop::Program& program, const loop::MemoryPlan& plan) {
  for (loop::TensorId output : program.outputs) {
    const std::string& name = program[output].name;
    const bool in_place =
        std::any_of(plan.aliases.begin(), plan.aliases.end(), [&](const auto& alias) {
          return alias.first == output && program[alias.second].name + "_new" == name;
        });
    EXPECT_EQ(in_place, name != "loss") << name;
  }
}

void ExpectSound(const loop::Program& program, const loop::MemoryPlan& plan) {
  const auto sized = SizedProgram::Create(program, {{"N", 1}});
  ASSERT_TRUE(sized.ok()) << sized.status();
  const auto arena = loop::EvaluatePlan(*sized, plan);
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_EQ(loop::ReplayPlan(*sized, plan, *arena, Label), absl::OkStatus());
}

TEST(StepProgram, PlanKeepsEveryValueUntilItIsRead) {
  for (const loop::Program& program : {UnfusedStep("cnn"), FusedStep("cnn")}) {
    ExpectSound(program, loop::PlanMemory(program));
    loop::MemoryOptions options;
    options.use_outputs = true;
    ExpectSound(program, loop::PlanMemory(program, options));
  }
  const loop::Program unfused = UnfusedStep("cnn");
  ExpectUpdatesInPlace(unfused, loop::PlanMemory(unfused));
}

TEST(StepProgram, BytesWalkedIsCloseToItsDefinition) {
  for (const loop::Program& program : {UnfusedStep("cnn"), FusedStep("cnn")}) {
    const auto sized = SizedProgram::Create(program, {{"N", 2}});
    ASSERT_TRUE(sized.ok()) << sized.status();
    for (int64_t cache : {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 20}) {
      const auto begin = std::chrono::steady_clock::now();
      const loop::BytesWalked estimate = loop::EstimateBytesWalked(*sized, cache);
      const std::chrono::duration<double, std::milli> time =
          std::chrono::steady_clock::now() - begin;
      const auto exact = loop::SimulateBytesWalked(*sized, cache, Label);
      ASSERT_TRUE(exact.ok()) << exact.status();
      const std::string figures = absl::StrCat("cache ", cache, ": loads ", estimate.loads, " for ",
                                               exact->loads, ", stores ", estimate.stores, " for ",
                                               exact->stores, ", in ", time.count(), " ms");
      std::printf("%s\n", figures.c_str());
      // In 1 KiB, the windows that a convolution walks do not fit, but for those at
      // the borders of these small images.
      const double factor = cache < 4096 ? 2 : 1.1;
      EXPECT_LE(estimate.Total(), exact->Total() * factor) << figures;
      EXPECT_GE(estimate.Total(), exact->Total() / factor) << figures;
    }
  }
}

}  // namespace
}  // namespace nestor::digits
