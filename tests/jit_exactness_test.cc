// Compiled code gives the bits of the interpreter on the same scheduled program: on
// random programs, their gradients, and every macro op with its gradient, for each
// instruction set that the CPU has. A strict program gives the bits of the unfused
// one; a fast one stays within its proven bounds.
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/cpu_features.h"
#include "jit/runtime/executor.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

using Side = GuardedMemory::Side;

const JitRunOptions kRuns[] = {
    {Side::kEnd, Arrangement::kCompact},
    {Side::kBegin, Arrangement::kCompact, /*in_place=*/true},
    {Side::kEnd, Arrangement::kReversed},
    {Side::kBegin, Arrangement::kTransposed},
};

// Thresholds so small that tests reach the code beyond them, one for each seed.
jit::CompileOptions OptionsOf(uint64_t seed) {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  if (seed % 2 == 0) options.streaming_bytes = 1;
  if (seed % 3 == 0) {
    options.schedule.memory_order.columns = 3;
    options.schedule.memory_order.rows = 2;
    options.schedule.parallel_sums.least_steps = 4;
  }
  constexpr int kAccumulators[] = {4, 1, 2, 8};
  options.schedule.accumulators = kAccumulators[seed % 4];
  return options;
}

Finding CheckOp(const Op& op, uint64_t seed, Counts& counts) {
  const RandomInputsResult made = RandomInputs(op, seed);
  // Every run compiles a layout: two of them for each seed.
  const JitRunOptions runs[] = {kRuns[0], kRuns[1 + seed % 3]};
  const bool bounded = seed % 4 == 0;
  return CheckCompiled(Lower(op), made.inputs, OptionsOf(seed), runs, bounded, counts);
}

Finding CheckGradients(const Op& op, uint64_t seed, Counts& counts) {
  const auto first = Gradient(op);
  if (!first.ok()) {
    ++counts.no_gradient;
    return absl::nullopt;
  }
  return CheckOp(first->op, seed, counts);
}

TEST(JitExactness, RandomPrograms) {
  GeneratorOptions options;
  options.nodes = 14;
  TestPrograms("programs", 1500, options, CheckOp);
}

// Sizes, $params and constants at the ends of int64: inputs that the interpreter accepts run, with
// the same bits, and those that it refuses are refused.
Finding CheckExtremes(const Op& op, uint64_t seed, Counts& counts) {
  InputOptions options;
  options.extremes = true;
  const RandomInputsResult made = RandomInputs(op, seed, options);
  return CheckCompiled(Lower(op), made.inputs, OptionsOf(seed), {kRuns[0]}, /*bounded=*/false,
                       counts);
}

TEST(JitExactness, RandomExtremes) {
  GeneratorOptions options;
  options.nodes = 10;
  options.extremes = true;
  TestPrograms("extremes", 2000, options, CheckExtremes);
}

TEST(JitExactness, RandomGradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestPrograms("gradients", 400, options, CheckGradients);
}

// The op and its gradient, on small inputs and on large ones.
void TestMacroOp(const std::string& name, const Property& property, uint64_t first, uint64_t seeds,
                 Counts& counts) {
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
}

// Few seeds for each op, different ones for each, so that over all ops every choice is drawn.
void TestMacroOps(const Property& property, uint64_t seeds) {
  Counts counts;
  uint64_t first = 1;
  for (const std::string& name : MacroLibrary().OpNames()) {
    TestMacroOp(name, property, first, seeds, counts);
    first += seeds;
  }
  std::cerr << counts.programs << " programs, refused by both " << counts.refused << "\n";
  EXPECT_LE(counts.refused, counts.programs / 4);
}

TEST(JitExactness, MacroOps) { TestMacroOps(CheckOp, 2); }

// Assembles for each instruction set, whatever the CPU has, without running the code.
Finding CheckAssembledForAll(const Op& op, uint64_t seed, Counts& counts) {
  ++counts.programs;
  jit::CompileOptions options = OptionsOf(seed);
  for (jit::Isa isa : {jit::Isa::kAvx2, jit::Isa::kAvx512}) {
    options.isa = isa;
    const absl::Status status = CheckAssembled(Lower(op), options);
    if (!status.ok()) return status.ToString();
  }
  return absl::nullopt;
}

TEST(JitExactness, MacroOpsAssembledForEverySet) { TestMacroOps(CheckAssembledForAll, 1); }

Finding CheckLarge(const Op& op, uint64_t seed, Counts& counts) {
  const auto made = DrawLargeInputs(op, seed, 34);
  if (!made) return absl::nullopt;
  const JitRunOptions runs[] = {kRuns[seed % 4]};
  return CheckCompiled(Lower(op), made->inputs, OptionsOf(seed), runs, /*bounded=*/false, counts);
}

TEST(JitExactness, MacroOpsOfManyVectors) { TestMacroOps(CheckLarge, 1); }

}  // namespace
}  // namespace nestor
