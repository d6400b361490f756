// Fusion changes no bit, and keeps all other promises of passes in pass_sameness.h. Checked on
// random programs, their gradients and second gradients, and on every macro op with its gradient at
// its sampled shapes.
#include <list>
#include <set>
#include <string>

#include "fusion/merge_axes.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "loop_ir/constants.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "nestor.h"
#include "tests/pass_sameness.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

using fusion::Pipeline;
using loop::Program;

int bounded_checks = 0;

Finding CheckProgram(const Pipeline& pipeline, const Program& program, const RunInputs& inputs,
                     Counts& counts) {
  return CheckPasses(pipeline, program, program, inputs, counts, bounded_checks);
}

Finding CheckOp(const Op& op, uint64_t seed, Counts& counts) {
  const RandomInputsResult made = RandomInputs(op, seed);
  return CheckProgram(Pipeline::Default(), Lower(op), made.inputs, counts);
}

int merged_programs = 0;

// Sizes are numbers, so that shapes with merged axes bind; the same elements are given
// in these shapes.
Finding CheckMergedAxes(const Op& op, uint64_t seed, Counts& counts) {
  RandomInputsResult made = RandomInputs(op, seed);
  Program program = Lower(op);
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(op), made.inputs);
  ++counts.programs;
  if (!binding.ok()) return absl::nullopt;
  loop::PutConstants(program, [&](const std::string& name) { return binding->Find(name); });
  RunInputs inputs = made.inputs;
  inputs.dims.clear();
  const Results want = Run(program, inputs);
  if (!loop::MergeAxes(program)) return absl::nullopt;
  ++merged_programs;
  const absl::Status verified = Verify(program);
  if (!verified.ok()) return absl::StrCat(verified.message(), "\n", loop::ToText(program));
  std::list<Tensor> compact;
  for (const loop::TensorId input : program.inputs) {
    TensorView& view = inputs.tensors.at(program[input].name);
    if (view.shape.size() == program[input].shape.size()) continue;
    const absl::StatusOr<Dims> shape =
        EvaluateShape(program.pool, program[input].shape, *binding, "input");
    if (!shape.ok()) return shape.status().ToString();
    compact.push_back(Tensor::FromView(view).value());
    view = ViewOf(view.type, compact.back().view().data, *shape);
  }
  Results got = Run(program, inputs);
  if (got.ok() && want.ok()) {
    for (size_t i = 0; i < got->size(); ++i) {
      const TensorView result =
          ViewOf((*want)[i].type(), (*got)[i].view().data, (*want)[i].shape());
      (*got)[i] = Tensor::FromView(result).value();
    }
  }
  if (Finding finding = Compare(want, got, "merged", counts))
    return absl::StrCat(*finding, "\n", loop::ToText(program));
  return absl::nullopt;
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

TEST(FusionSameness, MergedAxes) {
  GeneratorOptions options;
  options.nodes = 10;
  TestPrograms("merged", 2000, options, CheckMergedAxes);
  EXPECT_GT(merged_programs, 200);
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

// Gives the same text again, whatever ran before: nothing depends on the order of a hash.
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
