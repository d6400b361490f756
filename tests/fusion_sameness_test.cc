// Fusion changes no bit, and keeps whatever else pass_sameness.h asks of passes. Checked
// on random programs, their gradients and second gradients, and on every macro op with
// its gradient at its sampled shapes.
#include <set>

#include "fusion/collapse.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "nestor.h"
#include "tests/pass_sameness.h"
#include "tests/random_programs.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

using fusion::Pipeline;
using loop::Program;

int bounded_checks = 0;

Finding CheckProgram(const Pipeline& pipeline, const Program& program, const RunInputs& inputs, Counts& counts) {
  return CheckPasses(pipeline, program, program, inputs, counts, bounded_checks);
}

Finding CheckOp(const Op& op, uint64_t seed, Counts& counts) {
  const RandomInputsResult made = RandomInputs(op, seed);
  return CheckProgram(Pipeline::Default(), Lower(op), made.inputs, counts);
}

// What a schedule may ask for besides, behind fusion and alone.
Finding CheckCollapse(const Op& op, uint64_t seed, Counts& counts) {
  const RandomInputsResult made = RandomInputs(op, seed);
  Pipeline pipeline = Pipeline::Default();
  const absl::Status status = pipeline.InsertAfter("dead_code_2", {"collapse", fusion::CollapseLoops});
  if (!status.ok()) return status.ToString();
  if (Finding finding = CheckProgram(pipeline, Lower(op), made.inputs, counts)) return finding;
  pipeline = Pipeline::Default();
  pipeline.Truncate(1);
  NESTOR_CHECK(pipeline.InsertAfter("flatten", {"collapse", fusion::CollapseLoops}).ok(), "flatten comes first");
  return CheckProgram(pipeline, Lower(op), made.inputs, counts);
}

Finding CheckGradients(const Op& op, uint64_t seed, Counts& counts) {
  const auto first = Gradient(op);
  if (!first.ok()) {
    ++counts.no_gradient;
    return absl::nullopt;
  }
  if (Finding finding = CheckOp(first->op, seed, counts)) return finding;
  const auto second = Gradient(first->op);
  if (!second.ok()) return absl::nullopt;
  return CheckOp(second->op, seed, counts);
}

TEST(FusionSameness, RandomPrograms) {
  GeneratorOptions options;
  options.nodes = 14;
  TestPrograms("programs", 6000, options, CheckOp);
}

TEST(FusionSameness, RandomGradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestPrograms("gradients", 1500, options, CheckGradients);
}

TEST(FusionSameness, CollapsedLoops) {
  GeneratorOptions options;
  options.nodes = 10;
  TestPrograms("collapsed", 1000, options, CheckCollapse);
}

TEST(FusionSameness, MacroOps) {
  Counts counts;
  for (const std::string& name : MacroLibrary().OpNames()) {
    const absl::StatusOr<Op> op = LibraryOp(name);
    ASSERT_TRUE(op.ok()) << name << op.status();
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      Finding finding = CheckOp(*op, seed, counts);
      EXPECT_FALSE(finding.has_value()) << name << " seed " << seed << ": " << *finding;
      finding = CheckGradients(*op, seed, counts);
      EXPECT_FALSE(finding.has_value()) << name << ", gradient, seed " << seed << ": " << *finding;
      if (finding) break;
    }
  }
  EXPECT_LE(counts.refused, counts.programs / 4);
  EXPECT_GT(bounded_checks, 100);
}

// The same text again, whatever ran before: nothing depends on the order of a hash.
TEST(FusionSameness, IsDeterministic) {
  for (const std::string& name : MacroLibrary().OpNames()) {
    const auto gradient = Gradient(*LibraryOp(name));
    if (!gradient.ok()) continue;
    std::set<std::string> texts;
    for (int i = 0; i < 2; ++i) {
      Program program = Lower(gradient->op);
      ASSERT_TRUE(Pipeline::Default().Run(program).ok());
      texts.insert(loop::ToText(program));
    }
    EXPECT_EQ(texts.size(), 1u) << name;
  }
}

}  // namespace
}  // namespace nestor
