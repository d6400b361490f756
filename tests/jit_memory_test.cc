// Temporaries share bytes as their plan says: results are the interpreter's even if every unused
// byte is overwritten before each function of the code. The programs are not fused, so that they
// have many temporaries.
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/signature.h"
#include "loop_ir/sized_program.h"
#include "loop_ir/text.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// How often bytes were shared, which the tests are about.
struct Sharing {
  int programs = 0;
  int shared = 0;          // temporaries of the program lie closer than side by side
  int private_shared = 0;  // those of scopes do
};

jit::CompileOptions OptionsOf(uint64_t seed, jit::Isa isa) {
  jit::CompileOptions options;
  options.mode = jit::Mode::kStrict;
  options.isa = isa;
  options.executor = seed % 5 == 0 ? &jit::DefaultExecutor() : &jit::InlineExecutor();
  options.least_parallel_bytes = 0;
  if (seed % 3 == 0) {
    options.schedule.memory_order.columns = 3;
    options.schedule.memory_order.rows = 2;
    options.schedule.parallel_sums.least_steps = 4;
  }
  return options;
}

// `fused` programs have more temporaries in scopes, others more in the program.
absl::StatusOr<std::unique_ptr<const jit::Executable>> Scheduled(
    loop::Program program, bool fused, const jit::CompileOptions& options) {
  fusion::RunOptions run;
  run.strict = true;
  if (fused) NESTOR_RETURN_IF_ERROR(fusion::Pipeline::Default().Run(program, run));
  NESTOR_RETURN_IF_ERROR(jit::SchedulePipeline(options, *options.isa).Run(program, run));
  return jit::CompileScheduled(std::move(program), options);
}

absl::Status CountSharing(const jit::Executable& executable, const RunInputs& inputs,
                          Sharing& sharing) {
  const loop::MemoryPlan& plan = executable.kernel().plan();
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, Bind(SignatureOf(executable.program()), inputs));
  NESTOR_ASSIGN_OR_RETURN(const auto sized,
                          loop::SizedProgram::Create(executable.program(), binding.symbols));
  NESTOR_ASSIGN_OR_RETURN(const loop::Arena arena, EvaluatePlan(sized, plan));
  int64_t bytes[2] = {0, 0};
  for (const loop::PlannedBuffer& buffer : plan.buffers) {
    for (loop::TensorId tensor : buffer.tensors) {
      bytes[buffer.is_private] += loop::AlignedForArena(sized.Bytes(tensor).value());
    }
  }
  ++sharing.programs;
  sharing.shared += loop::AlignedForArena(arena.total) < bytes[0];
  sharing.private_shared += loop::AlignedForArena(arena.private_total) < bytes[1];
  return absl::OkStatus();
}

Finding CheckPoisoned(const Op& op, uint64_t seed, Counts& counts, Sharing& sharing) {
  const RandomInputsResult made = RandomInputs(op, seed);
  const loop::Program program = Lower(op);
  const Results want = Run(program, made.inputs);
  ++counts.programs;
  counts.refused += want.ok() ? 0 : 1;
  for (jit::Isa isa : TestedSets()) {
    const auto executable = Scheduled(program, seed % 4 == 0, OptionsOf(seed, isa));
    if (!executable.ok()) return absl::StrCat("does not compile: ", executable.status().ToString());
    JitRunOptions run;
    run.poison_dead = true;
    run.in_place = true;
    const Results got = RunJit(**executable, made.inputs, run);
    if (!want.ok()) continue;
    const absl::Status counted = CountSharing(**executable, made.inputs, sharing);
    // Where the proof fails for these sizes, the unfused program ran.
    if (!counted.ok() && !IsFeared(counted)) return counted.ToString();
    const Finding finding = Compare(want, got, jit::Name(isa), counts);
    if (finding) return absl::StrCat(*finding, "\n", loop::ToText((*executable)->program()));
  }
  return absl::nullopt;
}

void ExpectSharing(const Sharing& sharing) {
  std::cerr << sharing.programs << " programs, temporaries share bytes in " << sharing.shared
            << ", those of scopes in " << sharing.private_shared << "\n";
  EXPECT_GE(sharing.shared, sharing.programs / 8);
}

void TestRandom(const char* what, int64_t count, const GeneratorOptions& options, bool gradients) {
  Sharing sharing;
  TestPrograms(what, count, options, [&](const Op& op, uint64_t seed, Counts& counts) -> Finding {
    if (!gradients) return CheckPoisoned(op, seed, counts, sharing);
    const auto gradient = Gradient(op);
    if (gradient.ok()) return CheckPoisoned(gradient->op, seed, counts, sharing);
    ++counts.no_gradient;
    return absl::nullopt;
  });
  ExpectSharing(sharing);
}

TEST(JitMemory, OfRandomPrograms) {
  GeneratorOptions options;
  options.nodes = 14;
  TestRandom("programs", 800, options, false);
}

TEST(JitMemory, OfRandomGradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestRandom("gradients", 300, options, true);
}

TEST(JitMemory, OfMacroOpsAndTheirGradients) {
  Counts counts;
  Sharing sharing;
  for (const std::string& name : MacroLibrary().OpNames()) {
    const Op op = LibraryOp(name).value();
    const auto gradient = Gradient(op);
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SetCurrentCase(name, seed);
      Finding finding = CheckPoisoned(op, seed, counts, sharing);
      EXPECT_FALSE(finding.has_value()) << name << " seed " << seed << ": " << *finding;
      if (!gradient.ok()) continue;
      finding = CheckPoisoned(gradient->op, seed, counts, sharing);
      EXPECT_FALSE(finding.has_value()) << name << ", gradient, seed " << seed << ": " << *finding;
    }
  }
  ExpectSharing(sharing);
}

// Each kind of first use of an accumulator of the program: at the start, after another one used its
// bytes, in a parallel loop, in a sequential loop, in the middle of a block.
TEST(JitMemory, AccumulatorsOfTheProgramAreFilledBeforeTheirFirstUse) {
  constexpr const char* kPrograms[] = {
      "acc a: f32[N] = sum  for i in [0, N) parallel { a[i] += x[i] }  for i in [0, N) parallel { y[i] = a[i] }",
      "temp t: f32[N]  acc a: f32[N] = max  for i in [0, N) parallel { t[i] = x[i] }  "
      "for i in [0, N) parallel { y[i] = t[N - 1 - i] }  for i in [0, N) parallel { a[i] max= y[i] }  "
      "for i in [0, N) parallel { y[i] = a[N - 1 - i] }",
      "temp t: f32[N]  acc a: f32[N] = prod  for i in [0, N) { t[i] = x[i] }  for i in [0, N) { y[i] = t[N - 1 - i] }  "
      "for k in [0, 2) { for i in [0, N) { a[i] *= y[i] } }  for i in [0, N) { y[i] = a[N - 1 - i] }",
      "acc a: f32[N] = sum  acc b: f32[N] = sum  for i in [0, N) { a[i] += x[i] }  "
      "for i in [0, N) { y[i] = a[N - 1 - i] }  for i in [0, N) { b[i] += y[i] }  for i in [0, N) { y[i] = b[i] }",
      "acc a: f32[N] = argmax  acc b: f32[N] = argmin  for i in [0, N) parallel { a[i] argmax= (x[i], index(i)) }  "
      "for i in [0, N) parallel { y[i] = f32(a[N - 1 - i]) }  for i in [0, N) parallel { b[i] argmin= (y[i], index(i + 1)) }  "
      "for i in [0, N) parallel { y[i] = f32(b[N - 1 - i]) + y[i] }",
      "acc s: f32 = sum  for i in [0, N) { s += x[i] }  for i in [0, N) parallel { y[i] = s }",
  };
  for (const char* items : kPrograms) {
    const auto program =
        loop::ParseProgram(absl::StrCat("program p(x: f32[N]) -> (y: f32[N]) { ", items, " }"));
    ASSERT_TRUE(program.ok()) << program.status() << items;
    for (const int64_t n : {1, 17, 100}) {
      const Tensor x =
          Tensor::Of(DType::kF32, {n}, std::vector<double>(static_cast<size_t>(n), 1.5));
      RunInputs inputs;
      inputs.tensors["x"] = x.view();
      const Results want = nestor::Run(*program, inputs);
      ASSERT_TRUE(want.ok()) << want.status();
      for (jit::Isa isa : TestedSets()) {
        const auto executable = jit::CompileScheduled(*program, OptionsOf(1, isa));
        ASSERT_TRUE(executable.ok()) << executable.status();
        JitRunOptions run;
        run.poison_dead = true;
        Counts counts;
        const Finding finding = Compare(want, RunJit(**executable, inputs, run), items, counts);
        EXPECT_FALSE(finding.has_value()) << *finding;
      }
    }
  }
}

}  // namespace
}  // namespace nestor
