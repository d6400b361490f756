// Code for a class of sizes gives the bits of the interpreter on the program that was
// scheduled with these sizes as numbers: on random programs, their gradients, and every
// macro op with its gradient, however little they compute. A strict variant gives the bits of
// the unfused program; a fast one stays within its proven bounds. So does an executable that
// was specialized.
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "jit/size_classes.h"
#include "loop_ir/lower.h"
#include "loop_ir/signature.h"
#include "nestor.h"
#include "tensor/binding.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

using Side = GuardedMemory::Side;

const JitRunOptions kRuns[] = {
    {Side::kEnd, Arrangement::kCompact},
    {Side::kBegin, Arrangement::kCompact, /*in_place=*/true},
    {Side::kEnd, Arrangement::kReversed},
};

// Every call has a class.
jit::CompileOptions OptionsOf(uint64_t seed) {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  options.size_classes.least_work = 0;
  constexpr int kLargest[] = {16, 1, 4};
  options.size_classes.largest_constant = kLargest[seed % 3];
  return options;
}

// Whether the sizes have a separate class.
bool HasVariant(const loop::Program& unfused, const jit::CompileOptions& options,
                const RunInputs& inputs) {
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(unfused), inputs);
  if (!binding.ok()) return false;
  const jit::SizeClasses classes(unfused, options.size_classes);
  return !classes.Of([&](const std::string& name) { return binding->Find(name); }).empty();
}

struct Tested {
  int variants = 0;  // programs that have some

  Finding Check(const Op& op, const RandomInputsResult& made, uint64_t seed, bool bounded,
                Counts& counts) {
    const loop::Program unfused = Lower(op);
    const jit::CompileOptions options = OptionsOf(seed);
    // As in jit_exactness_test.
    if (!HasVariant(unfused, options, made.inputs)) return absl::nullopt;
    ++variants;
    const JitRunOptions runs[] = {kRuns[0], kRuns[1 + seed % 2]};
    return CheckCompiled(unfused, made.inputs, options, runs, bounded, counts);
  }
};

TEST(JitVariants, RandomPrograms) {
  Tested tested;
  GeneratorOptions options;
  options.nodes = 14;
  TestPrograms("programs", 1000, options, [&](const Op& op, uint64_t seed, Counts& counts) {
    return tested.Check(op, RandomInputs(op, seed), seed, seed % 4 == 0, counts);
  });
  EXPECT_GT(tested.variants, 200);
}

TEST(JitVariants, RandomExtremes) {
  Tested tested;
  GeneratorOptions options;
  options.nodes = 10;
  options.extremes = true;
  TestPrograms("extremes", 1000, options, [&](const Op& op, uint64_t seed, Counts& counts) {
    InputOptions extremes;
    extremes.extremes = true;
    return tested.Check(op, RandomInputs(op, seed, extremes), seed, /*bounded=*/false, counts);
  });
  EXPECT_GT(tested.variants, 200);
}

TEST(JitVariants, RandomGradients) {
  Tested tested;
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestPrograms("gradients", 400, options,
               [&](const Op& op, uint64_t seed, Counts& counts) -> Finding {
                 const auto gradient = Gradient(op);
                 if (!gradient.ok()) {
                   ++counts.no_gradient;
                   return absl::nullopt;
                 }
                 return tested.Check(gradient->op, RandomInputs(gradient->op, seed), seed,
                                     seed % 4 == 0, counts);
               });
  EXPECT_GT(tested.variants, 60);
}

// The op and its gradient, with few seeds for each op, and others for each.
void TestMacroOps(const Property& property, uint64_t seeds, Counts& counts) {
  uint64_t first = 1;
  for (const std::string& name : MacroLibrary().OpNames()) {
    std::vector<Op> ops = {LibraryOp(name).value()};
    if (auto gradient = Gradient(ops[0]); gradient.ok()) ops.push_back(std::move(gradient->op));
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
      SetCurrentCase(name, seed);
      for (const Op& op : ops) {
        const Finding finding = property(op, seed, counts);
        EXPECT_FALSE(finding.has_value()) << op.name << " seed " << seed << ": " << *finding;
      }
    }
    first += seeds;
  }
}

TEST(JitVariants, MacroOps) {
  Tested tested;
  Counts counts;
  const Property check = [&](const Op& op, uint64_t seed, Counts& counts) {
    return tested.Check(op, RandomInputs(op, seed), seed, /*bounded=*/seed % 4 == 0, counts);
  };
  TestMacroOps(check, 2, counts);
  EXPECT_GT(tested.variants, 40);
}

// Sizes on both sides of a vector's and a tile's, so that some are constants and others not.
TEST(JitVariants, MacroOpsOfManyVectors) {
  Tested tested;
  Counts counts;
  const Property check = [&](const Op& op, uint64_t seed, Counts& counts) -> Finding {
    const auto made = DrawLargeInputs(op, seed, 34);
    if (!made) return absl::nullopt;
    return tested.Check(op, *made, 0, /*bounded=*/false, counts);
  };
  TestMacroOps(check, 1, counts);
  EXPECT_GT(tested.variants, 10);
}

// ---- Specialize

// Specializes for all sizes as numbers, or for some.
Finding CheckSpecialized(const Op& op, uint64_t seed, Counts& counts) {
  const loop::Program unfused = Lower(op);
  const RandomInputsResult made = RandomInputs(op, seed);
  const Results reference = Run(unfused, made.inputs);
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(unfused), made.inputs);
  if (!binding.ok()) return absl::nullopt;
  ++counts.programs;
  absl::flat_hash_map<std::string, int64_t> sizes = binding->symbols;
  if (seed % 3 == 0)
    absl::erase_if(sizes, [&](const auto& size) { return size.first.size() % 2 == seed % 2; });
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  for (jit::Mode mode : kModes) {
    options.mode = mode;
    const auto general = jit::Compile(unfused, options);
    if (!general.ok()) return "does not compile: " + general.status().ToString();
    const auto specialized = (*general)->Specialize(sizes);
    if (!specialized.ok()) return "cannot be specialized: " + specialized.status().ToString();
    const Results got = RunJit(**specialized, made.inputs, kRuns[seed % 2]);
    const Results want = reference.ok() ? Run((*specialized)->program(), made.inputs) : reference;
    if (Finding finding = Compare(want, got, "specialized,", counts)) return finding;
    if (mode == jit::Mode::kFast) continue;
    if (Finding finding = Compare(reference, got, "specialized, strict,", counts)) return finding;
  }
  return absl::nullopt;
}

TEST(JitVariants, SpecializedRandomPrograms) {
  GeneratorOptions options;
  options.nodes = 14;
  TestPrograms("specialized programs", 500, options, CheckSpecialized);
}

// Inputs that the interpreter refuses are refused, before or in the call, and no others.
Finding CheckSpecializedExtremes(const Op& op, uint64_t seed, Counts& counts) {
  const loop::Program unfused = Lower(op);
  InputOptions extremes;
  extremes.extremes = true;
  const RandomInputsResult made = RandomInputs(op, seed, extremes);
  const Results reference = Run(unfused, made.inputs);
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(unfused), made.inputs);
  if (!binding.ok() || absl::IsResourceExhausted(reference.status())) return absl::nullopt;
  ++counts.programs;
  counts.refused += !reference.ok();
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  options.mode = jit::Mode::kStrict;
  const auto general = jit::Compile(unfused, options);
  if (!general.ok()) return "does not compile: " + general.status().ToString();
  const auto specialized = (*general)->Specialize(binding->symbols);
  if (!specialized.ok()) return "cannot be specialized: " + specialized.status().ToString();
  return Compare(reference, RunJit(**specialized, made.inputs), "specialized, strict,", counts);
}

TEST(JitVariants, SpecializedExtremes) {
  GeneratorOptions options;
  options.nodes = 10;
  options.extremes = true;
  TestPrograms("specialized extremes", 1000, options, CheckSpecializedExtremes);
}

TEST(JitVariants, SpecializedMacroOps) {
  Counts counts;
  TestMacroOps(CheckSpecialized, 2, counts);
  EXPECT_GT(counts.programs, 80);
}

}  // namespace
}  // namespace nestor
