// Schedules keep the promises of passes in pass_sameness.h: they change no bit, except those that
// reorder rounding, which stay within the proven bounds. The interpreter runs the scheduled
// programs, so every instruction set is checked on any CPU: on random programs and their gradients,
// and on every macro op with its gradient, at small shapes and at shapes that fill several vectors,
// strict and fast, with thresholds down to a few elements.
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/intervals.h"
#include "loop_ir/lower.h"
#include "loop_ir/signature.h"
#include "nestor.h"
#include "tensor/binding.h"
#include "tests/jit_runs.h"
#include "tests/pass_sameness.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

using jit::Isa;

int bounded_checks = 0;

jit::CompileOptions OptionsOf(uint64_t seed) {
  jit::CompileOptions options;
  constexpr int kAccumulators[] = {4, 1, 2, 3};
  options.schedule.accumulators = kAccumulators[seed % 4];
  if (seed % 3 != 0) {
    options.schedule.memory_order.columns = 3;
    options.schedule.memory_order.rows = 2;
  }
  if (seed % 3 != 1)
    options.schedule.parallel_sums.least_steps = 1 + static_cast<int64_t>(seed % 5);
  if (seed % 4 != 0) options.schedule.strips.rows = 1 + static_cast<int64_t>(seed % 3);
  if (seed % 7 == 0) options.schedule.contractions.rows = 2;
  if (seed % 7 == 1) options.schedule.contractions.vectors = 1;
  if (seed % 5 < 2) options.mode = jit::Mode::kStrict;
  return options;
}

fusion::Pipeline PassesOf(const jit::CompileOptions& options, Isa isa) {
  const fusion::Pipeline pipeline = jit::SchedulePipeline(options, isa);
  std::vector<fusion::Pass> passes;
  for (const fusion::Pass& pass : pipeline.passes()) {
    if (options.mode == jit::Mode::kFast || !pass.reorders_rounding) passes.push_back(pass);
  }
  return fusion::Pipeline(std::move(passes));
}

Finding CheckSchedule(const Op& op, const RunInputs& inputs, uint64_t seed, Counts& counts) {
  const loop::Program unfused = Lower(op);
  jit::CompileOptions options = OptionsOf(seed);
  loop::Program fused = unfused;
  fusion::RunOptions run;
  run.strict = options.mode == jit::Mode::kStrict;
  const absl::Status status = fusion::Pipeline::Default().Run(fused, run);
  if (!status.ok()) return status.ToString();
  const Isa isa = seed % 2 == 0 ? Isa::kAvx2 : Isa::kAvx512;
  const auto binding = Bind(loop::SignatureOf(fused), inputs);
  if (binding.ok() && seed % 3 == 0) {
    // The version for these sizes: the tests of the loops for all sizes say which.
    loop::Program scheduled = fused;
    const absl::Status made = PassesOf(options, isa).Run(scheduled, run);
    if (!made.ok()) return made.ToString();
    options.schedule.contractions.version = options.schedule.strips.version =
        loop::VersionAt(scheduled, [&](const std::string& name) { return binding->Find(name); });
  }
  const Finding finding =
      CheckPasses(PassesOf(options, isa), unfused, fused, inputs, counts, bounded_checks);
  if (!finding) return absl::nullopt;
  return absl::StrCat(isa == Isa::kAvx2 ? "avx2, " : "avx512, ", *finding);
}

Finding CheckSmall(const Op& op, uint64_t seed, Counts& counts) {
  return CheckSchedule(op, RandomInputs(op, seed).inputs, seed, counts);
}

Finding CheckLarge(const Op& op, uint64_t seed, Counts& counts) {
  const auto made = DrawLargeInputs(op, seed, 34);
  if (!made) return absl::nullopt;
  return CheckSchedule(op, made->inputs, seed, counts);
}

Finding CheckGradient(const Op& op, uint64_t seed, Counts& counts) {
  const auto gradient = Gradient(op);
  if (!gradient.ok()) {
    ++counts.no_gradient;
    return absl::nullopt;
  }
  return CheckSmall(gradient->op, seed, counts);
}

TEST(ScheduleSameness, RandomPrograms) {
  GeneratorOptions options;
  options.nodes = 14;
  TestPrograms("programs", 3000, options, CheckSmall);
}

TEST(ScheduleSameness, RandomProgramsOfManyVectors) {
  GeneratorOptions options;
  options.nodes = 8;
  TestPrograms("large programs", 300, options, CheckLarge);
}

TEST(ScheduleSameness, RandomGradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestPrograms("gradients", 700, options, CheckGradient);
}

// Few seeds for each op, different ones for each, so that over all ops every choice is drawn.
void TestMacroOps(const Property& property, uint64_t seeds) {
  Counts counts;
  uint64_t first = 1;
  for (const std::string& name : MacroLibrary().OpNames()) {
    const Op op = LibraryOp(name).value();
    const auto gradient = Gradient(op);
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
      SetCurrentCase(name, seed);
      Finding finding = property(op, seed, counts);
      EXPECT_FALSE(finding.has_value()) << name << " seed " << seed << ": " << *finding;
      if (finding || !gradient.ok()) continue;
      finding = property(gradient->op, seed, counts);
      EXPECT_FALSE(finding.has_value()) << name << ", gradient, seed " << seed << ": " << *finding;
    }
    first += seeds;
  }
  std::cerr << counts.programs << " programs, refused " << counts.refused << "\n";
  EXPECT_LE(counts.refused, counts.programs / 4);
}

TEST(ScheduleSameness, MacroOps) {
  TestMacroOps(CheckSmall, 3);
  EXPECT_GT(bounded_checks, 100);
}

TEST(ScheduleSameness, MacroOpsOfManyVectors) { TestMacroOps(CheckLarge, 2); }

}  // namespace
}  // namespace nestor
