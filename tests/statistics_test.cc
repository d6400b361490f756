// Memory plans and bytes walked of every macro op and its gradient, unfused and
// fused, against the replay and the simulation of each access.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autodiff/gradient.h"
#include "fusion/cost/bytes_walked_testing.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "loop_ir/lower.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/memory_plan_testing.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/text.h"
#include "macro_ops/library.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"

namespace nestor {
namespace {

using loop::Arena;
using loop::BytesWalked;
using loop::MemoryPlan;
using loop::SizedProgram;
using loop::Sizes;

struct Subject {
  std::string name;
  loop::Program program;
  Sizes sizes;
};

Op OpFor(const MacroOp& macro, const Sample& sample) {
  ArgumentSpecs specs;
  for (const SampleArgument& arg : sample.args)
    specs[arg.name] = {absl::nullopt, static_cast<int>(arg.shape.size())};
  const absl::StatusOr<Op> op = MacroLibrary().Instantiate(macro.name, specs);
  EXPECT_TRUE(op.ok()) << macro.name << op.status();
  return *op;
}

Sizes SizesFor(const Op& op, const Sample& sample) {
  RunInputs inputs;
  std::vector<Tensor> tensors;
  for (const SampleArgument& arg : sample.args) {
    const Argument* argument = op.FindArgument(arg.name);
    tensors.push_back(*Tensor::Create(argument->type, Dims(arg.shape.begin(), arg.shape.end())));
    inputs.tensors[arg.name] = tensors.back().view();
  }
  for (const auto& [name, text] : sample.params)
    inputs.params[name] = *ParseLiteral(text, op.FindParam(name)->type);
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(op), inputs);
  EXPECT_TRUE(binding.ok()) << op.name << binding.status();
  return binding->symbols;
}

std::vector<Subject> Subjects() {
  std::vector<Subject> subjects;
  const auto add = [&](const std::string& name, const Op& op, const Sizes& sizes) {
    subjects.push_back({name, Lower(op), sizes});
    Subject fused = {name + " fused", Lower(op), sizes};
    EXPECT_EQ(fusion::Pipeline::Default().Run(fused.program), absl::OkStatus()) << name;
    subjects.push_back(std::move(fused));
  };
  for (const MacroOp& macro : MacroOps()) {
    for (size_t i = 0; i < macro.samples.size(); ++i) {
      const Op op = OpFor(macro, macro.samples[i]);
      const Sizes sizes = SizesFor(op, macro.samples[i]);
      const std::string name = absl::StrCat(macro.name, " ", i);
      add(name, op, sizes);
      const auto gradient = Gradient(op);
      if (gradient.ok()) add(name + " gradient", gradient->op, sizes);
    }
  }
  return subjects;
}

int64_t Gathered(loop::TensorId, int64_t element) { return element * 7 % 3; }

TEST(MemoryPlans, OfEveryMacroOpKeepEveryValueUntilItIsRead) {
  for (const Subject& subject : Subjects()) {
    const auto sized = SizedProgram::Create(subject.program, subject.sizes);
    ASSERT_TRUE(sized.ok()) << subject.name << sized.status();
    for (bool use_outputs : {false, true}) {
      loop::MemoryOptions options;
      options.use_outputs = use_outputs;
      const MemoryPlan plan = loop::PlanMemory(subject.program, options);
      const absl::StatusOr<Arena> arena = loop::EvaluatePlan(*sized, plan);
      ASSERT_TRUE(arena.ok()) << subject.name << arena.status();
      for (int alias = -1; alias < static_cast<int>(plan.aliases.size()); ++alias) {
        EXPECT_EQ(loop::ReplayPlan(*sized, plan, *arena, Gathered, alias), absl::OkStatus())
            << subject.name << " " << alias << "\n"
            << ToText(subject.program);
      }
    }
  }
}

// How many times fewer terms are summed than the loops suggest, as conditions of divisibility drop
// terms: the estimate takes all conditions to hold.
double ClosedBy(const loop::Program& program, const Sizes& sizes) {
  double factor = 1;
  VisitItems(program, [&](const loop::Item& item) {
    const auto* statement = item.As<loop::Statement>();
    if (statement == nullptr) return;
    double own = 1;
    for (IndexId condition : statement->target.conditions) {
      const IndexNode& node = program.pool[condition];
      if (node.kind != IndexKind::kEq || program.pool[node.args[0]].kind != IndexKind::kMod)
        continue;
      const auto divisor = EvaluateIndex(
          program.pool, program.pool[node.args[0]].args[1],
          [&](const IndexNode& leaf, absl::Span<const int64_t>) {
            return absl::optional<int64_t>(sizes.at(program.pool.SymbolNameAt(leaf.value)));
          });
      own *= static_cast<double>(divisor.value_or(1));
    }
    factor = std::max(factor, own);
  });
  return factor;
}

// The program with all conditions of its accesses taken to hold, as the estimate takes them; places
// outside of a tensor are still not touched.
loop::Program WithOpenMasks(loop::Program program) {
  for (loop::Value& value : program.values) {
    if (auto* load = absl::get_if<loop::LoadValue>(&value.node)) load->access.conditions.clear();
  }
  VisitStatements(program, [](loop::Statement& statement) { statement.target.conditions.clear(); });
  return program;
}

double FactorBetween(double a, double b) { return a == b ? 1 : std::max(a / b, b / a); }

// The factor by which the estimate is off, beyond the allowed one: it takes conditions to hold, so
// it is right if it is close to the bytes that the program walks, except for dropped terms of sums,
// or to the bytes that it would walk with open masks.
absl::StatusOr<double> Excess(const Subject& subject, const SizedProgram& sized,
                              const SizedProgram& open, int64_t cache) {
  const double estimate = loop::EstimateBytesWalked(sized, cache).Total();
  const absl::StatusOr<BytesWalked> closed = loop::SimulateBytesWalked(sized, cache, Gathered);
  const absl::StatusOr<BytesWalked> all = loop::SimulateBytesWalked(open, cache, Gathered);
  if (!closed.ok()) return closed.status();
  const double of_closed =
      FactorBetween(estimate, closed->Total()) / ClosedBy(subject.program, subject.sizes);
  // Where a condition keeps a place in range, masks cannot be opened.
  return all.ok() ? std::min(of_closed, FactorBetween(estimate, all->Total())) : of_closed;
}

// The samples are small, so that borders and single elements weigh more than in real use.
TEST(BytesWalked, OfEveryMacroOpAreCloseToTheirDefinition) {
  std::vector<double> factors;
  for (const Subject& subject : Subjects()) {
    const loop::Program opened = WithOpenMasks(subject.program);
    const auto sized = SizedProgram::Create(subject.program, subject.sizes),
               open = SizedProgram::Create(opened, subject.sizes);
    ASSERT_TRUE(sized.ok() && open.ok()) << subject.name << sized.status() << open.status();
    for (int64_t cache : {64, 512, 4096, 1 << 20}) {
      const absl::StatusOr<double> excess = Excess(subject, *sized, *open, cache);
      ASSERT_TRUE(excess.ok()) << subject.name << excess.status();
      factors.push_back(*excess);
      EXPECT_LE(*excess, 2) << subject.name << ", cache " << cache;
    }
  }
  std::sort(factors.begin(), factors.end());
  std::printf("%zu estimates: median %.3f, 9th decile %.3f, worst %.3f\n", factors.size(),
              factors[factors.size() / 2], factors[factors.size() * 9 / 10], factors.back());
  EXPECT_LE(factors[factors.size() / 2], 1.05);
  EXPECT_LE(factors[factors.size() * 9 / 10], 1.1);
}

}  // namespace
}  // namespace nestor
