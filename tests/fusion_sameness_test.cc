// Fusion changes no bit. Behind every pass of the pipeline (so, for every prefix of
// it) a program that the pass changed verifies, gives the results of the unfused
// program in `native` mode, prints to text that parses back, and is left untouched by
// the same pass run again. Checked on random programs, their gradients and second
// gradients, and on every macro op with its gradient at its sampled shapes.
#include <set>

#include "absl/strings/str_cat.h"
#include "fusion/collapse.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "interp/reference.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "nestor.h"
#include "tests/random_programs.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

using fusion::Pass;
using fusion::Pipeline;
using loop::Program;

Finding CheckAgain(const Pass& pass, const Program& program, const std::string& text) {
  Program again = program;
  const auto changed = pass.run(again);
  if (!changed.ok()) return absl::StrCat("again: ", changed.status().ToString());
  const std::string second = loop::ToText(again);
  if (*changed || second != text) return absl::StrCat("is not idempotent:\n", text, "again:\n", second);
  return absl::nullopt;
}

// A program before fusion, and what it gives; `want` moves on to what a pass that
// reorders rounding made of it.
struct Subject {
  Program unfused;
  const RunInputs& inputs;
  Results want;
  int bounded = 0;  // checks against proven bounds
};

Finding CheckBounds(const Program& program, Subject& subject, Counts& counts) {
  const Results got = Run(program, subject.inputs);
  if (!got.ok()) return Compare(subject.want, got, "fused", counts);
  const auto bounds = InterpretReference(subject.unfused, subject.inputs);
  subject.want = got;
  // A place or a condition that the bounds do not decide has no reference.
  if (!bounds.ok()) return absl::nullopt;
  ++subject.bounded;
  for (size_t i = 0; i < got->size(); ++i) {
    const absl::Status status = CheckEnclosed((*bounds)[i], (*got)[i].view());
    if (!status.ok()) return absl::StrCat("result ", i, ": ", status.message());
  }
  return absl::nullopt;
}

Finding CheckPass(const Pass& pass, Program& program, Subject& subject, Counts& counts) {
  const std::string before = loop::ToText(program);
  const auto changed = pass.run(program);
  if (!changed.ok()) return changed.status().ToString();
  const std::string after = loop::ToText(program);
  if (!*changed) {
    if (after == before) return absl::nullopt;
    return absl::StrCat("says unchanged:\n", before, "became:\n", after);
  }
  const std::string both = absl::StrCat("\nbefore:\n", before, "after:\n", after);
  const absl::Status verified = Verify(program);
  if (!verified.ok()) return absl::StrCat(verified.message(), both);
  if (Finding finding = CheckAgain(pass, program, after)) return finding;
  const auto parsed = loop::ParseProgram(after);
  if (!parsed.ok()) return absl::StrCat(parsed.status().message(), both);
  if (loop::ToText(*parsed) != after) return absl::StrCat("prints as\n", loop::ToText(*parsed), both);
  // What cannot run need not fail in the same way: a pass may remove the reason.
  if (!subject.want.ok()) return absl::nullopt;
  Finding finding = pass.reorders_rounding ? CheckBounds(program, subject, counts)
                                           : Compare(subject.want, Run(program, subject.inputs), "fused", counts);
  if (finding) return absl::StrCat(*finding, both);
  return absl::nullopt;
}

int bounded_checks = 0;

Finding CheckProgram(const Pipeline& pipeline, Program program, const RunInputs& inputs, Counts& counts) {
  Subject subject{program, inputs, Run(program, inputs)};
  ++counts.programs;
  if (!subject.want.ok()) ++counts.refused;
  for (const Pass& pass : pipeline.passes()) {
    if (Finding finding = CheckPass(pass, program, subject, counts)) return absl::StrCat("pass ", pass.name, ": ", *finding);
  }
  bounded_checks += subject.bounded;
  return absl::nullopt;
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
    for (uint64_t seed = 1; seed <= 20; ++seed) {
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
    for (int i = 0; i < 3; ++i) {
      Program program = Lower(gradient->op);
      ASSERT_TRUE(Pipeline::Default().Run(program).ok());
      texts.insert(loop::ToText(program));
    }
    EXPECT_EQ(texts.size(), 1u) << name;
  }
}

}  // namespace
}  // namespace nestor
