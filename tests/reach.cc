// The coverage of the random programs of `nestor check`: which micro-ops feed which, which passes
// change something, and which operations, each a row of the emitters, the code consists of.
//
//   ./bazelw run //tests:reach [-- PROGRAMS]
//
// Prints a table of counts, and a list of what was never reached.
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "check/engines/engines.h"
#include "check/engines/trial_programs.h"
#include "check/random.h"
#include "fusion/pipeline.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/translate.h"
#include "jit/compile.h"
#include "jit/runtime/cpu_features.h"
#include "jit/schedule/streaming.h"
#include "jit/size_classes.h"
#include "loop_ir/lower.h"
#include "uops/graph.h"
#include "uops/op.h"

namespace nestor {
namespace {

constexpr const char* kMicroOps[] = {"input", "param",  "constant", "index", "reindex",
                                     "map",   "reduce", "scatter",  "carry", "recurrence"};
constexpr size_t kCarry = 8;  // has no operands

using Counts = std::map<std::string, int64_t>;

// "reduce of map": the operand's kind after the user's.
void CountPairs(const Op& op, Counts& pairs) {
  const std::vector<bool> live = Reachable(op.graph, op.ResultNodes());
  for (int i = 0; i < op.graph.size(); ++i) {
    if (!live[static_cast<size_t>(i)]) continue;
    VisitOperands(op.graph, NodeId{i}, [&](NodeId operand) {
      ++pairs[absl::StrCat(kMicroOps[op.graph[NodeId{i}].op.index()], " of ",
                           kMicroOps[op.graph[operand].op.index()])];
    });
  }
}

// All pairs of a micro-op that has operands and a micro-op as its operand.
Counts AllPairs() {
  Counts pairs;
  for (size_t user = 4; user < std::size(kMicroOps); ++user) {
    if (user == kCarry) continue;
    for (const char* operand : kMicroOps) pairs[absl::StrCat(kMicroOps[user], " of ", operand)] = 0;
  }
  return pairs;
}

void CountPasses(const fusion::Pipeline& pipeline, absl::string_view what, loop::Program& program,
                 Counts& passes) {
  fusion::RunOptions run;
  run.observer = [&](const fusion::PassReport& report, const loop::Program&) {
    passes[absl::StrCat(what, report.pass.name)] += report.changed ? 1 : 0;
  };
  pipeline.Run(program, run).IgnoreError();
}

void CountOperations(loop::Program program, jit::Isa isa, Counts& operations) {
  jit::TranslateOptions options;
  options.isa = isa;
  loop::StreamArguments(program).status().IgnoreError();
  const auto count = [&](jit::Step& step) {
    for (const jit::Operation& operation : step.operations.operations) {
      ++operations[std::string(jit::Info(operation.opcode).name)];
    }
    return absl::OkStatus();
  };
  const jit::StepSink sink = count;
  jit::Translate(program, options, &sink).status().IgnoreError();
}

// Puts numbers for sizes, as for a variant for a class of sizes (jit/size_classes.h).
loop::Program OfSmallSizes(loop::Program program, Random& random) {
  jit::SizeClass constants;
  for (const std::string& name : jit::SymbolsOf(program).computed_with)
    constants.emplace_back(name, random.Between(1, 3));
  return jit::WithConstants(std::move(program), constants);
}

Counts AllOperations() {
  Counts operations;
  for (int i = 0; i < jit::kNumOpcodes; ++i)
    operations[std::string(jit::Info(static_cast<jit::Opcode>(i)).name)] = 0;
  return operations;
}

void Print(const char* what, const Counts& counts) {
  std::printf("\n%s\n", what);
  std::vector<std::string> never;
  for (const auto& [name, count] : counts) {
    if (count == 0) never.push_back(name);
    else std::printf("  %-32s %lld\n", name.c_str(), static_cast<long long>(count));
  }
  std::printf("never: %s\n", never.empty() ? "nothing" : absl::StrJoin(never, ", ").c_str());
}

void PrintReach(uint64_t programs) {
  Counts pairs = AllPairs(), passes, operations = AllOperations();
  for (uint64_t seed = 1; seed <= programs; ++seed) {
    const Op op = Derived(DrawTrialOp(seed), -1, seed);
    CountPairs(op, pairs);
    Random random(seed);
    jit::CompileOptions options = DrawCompileOptions(random);
    const jit::Isa isa = jit::kIsas[seed % std::size(jit::kIsas)].isa;
    loop::Program program = Lower(op);
    std::vector<bool>& bound = options.schedule.contractions.bound;
    if (random.Chance(30)) {
      for (size_t i = 0; i < program.inputs.size(); ++i) bound.push_back(random.Chance(50));
    }
    if (random.Chance(40)) program = OfSmallSizes(std::move(program), random);
    CountPasses(fusion::Pipeline::Default(), "", program, passes);
    CountPasses(jit::SchedulePipeline(options, isa), "schedule: ", program, passes);
    CountOperations(std::move(program), isa, operations);
  }
  std::printf("%llu programs\n", static_cast<unsigned long long>(programs));
  Print("Micro-ops of micro-ops", pairs);
  Print("Passes that changed the program", passes);
  Print("Operations", operations);
}

}  // namespace
}  // namespace nestor

int main(int argc, char** argv) {
  nestor::PrintReach(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4000);
}
