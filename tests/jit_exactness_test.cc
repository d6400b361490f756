// Compiled code gives the bits of the interpreter on the same scheduled program: on
// random programs, their gradients, and every macro op with its gradient, for each
// instruction set that the CPU has. A strict program gives the bits of the unfused
// one; a fast one stays within its proven bounds.
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "interp/reference.h"
#include "jit/compile.h"
#include "jit/runtime/cpu_features.h"
#include "jit/runtime/executor.h"
#include "loop_ir/text.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

using jit::CompileOptions;
using jit::Isa;
using jit::Mode;
using loop::Program;

// Those that run here; what is missing is said.
std::vector<Isa> Sets() {
  std::vector<Isa> sets;
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    const absl::Status status = jit::CheckIsa(isa);
    if (status.ok()) sets.push_back(isa);
    else std::cerr << "skipped: " << status.message() << "\n";
  }
  return sets;
}

const std::vector<Isa>& AllSets() {
  static const auto* const sets = new std::vector<Isa>(Sets());
  return *sets;
}

Finding CheckCode(const Program& program, const RunInputs& inputs, const CompileOptions& options, Counts& counts) {
  const auto executable = jit::Compile(program, options);
  if (!executable.ok()) return absl::StrCat("does not compile: ", executable.status().ToString());
  const Program& scheduled = (*executable)->program();
  const std::string what = absl::StrCat(jit::Name(*options.isa), options.mode == Mode::kStrict ? " strict" : " fast");
  const Results want = Run(scheduled, inputs);
  for (GuardedMemory::Side side : {GuardedMemory::Side::kEnd, GuardedMemory::Side::kBegin}) {
    const Results got = RunJit(**executable, inputs, side);
    if (!want.ok()) break;
    const Finding finding = Compare(want, got, what, counts);
    if (finding) return absl::StrCat(*finding, "\n", loop::ToText(scheduled));
  }
  return absl::nullopt;
}

Finding CheckOp(const Op& op, uint64_t seed, Counts& counts) {
  const RandomInputsResult made = RandomInputs(op, seed);
  const Program program = Lower(op);
  ++counts.programs;
  if (!Run(program, made.inputs).ok()) {
    ++counts.refused;
    return absl::nullopt;
  }
  for (Isa isa : AllSets()) {
    for (Mode mode : {Mode::kFast, Mode::kStrict}) {
      CompileOptions options;
      options.isa = isa;
      options.mode = mode;
      options.executor = &jit::InlineExecutor();
      if (Finding finding = CheckCode(program, made.inputs, options, counts)) return finding;
    }
  }
  return absl::nullopt;
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
  TestPrograms("programs", 3000, options, CheckOp);
}

TEST(JitExactness, RandomGradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestPrograms("gradients", 600, options, CheckGradients);
}

TEST(JitExactness, MacroOps) {
  Counts counts;
  for (const std::string& name : MacroLibrary().OpNames()) {
    const absl::StatusOr<Op> op = LibraryOp(name);
    ASSERT_TRUE(op.ok()) << name << op.status();
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SetCurrentCase(name, seed);
      Finding finding = CheckOp(*op, seed, counts);
      EXPECT_FALSE(finding.has_value()) << name << " seed " << seed << ": " << *finding;
      if (finding) break;
      finding = CheckGradients(*op, seed, counts);
      EXPECT_FALSE(finding.has_value()) << name << ", gradient, seed " << seed << ": " << *finding;
      if (finding) break;
    }
  }
}

}  // namespace
}  // namespace nestor
