// nestor run: loads PROGRAM, makes up what is missing, runs its machine code or the oracle, prints
// or writes the results. All possible checks are made before the run.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/fused.h"
#include "cli/given.h"
#include "cli/inputs.h"
#include "cli/jit_flags.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/results.h"
#include "interp/interpreter.h"
#include "jit/compile.h"
#include "loop_ir/lower.h"
#include "nestor.h"
#include "tensor/binding.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor run PROGRAM [NAME=value ...] [flags]

Runs an op and prints its results.

PROGRAM is a file in the notation, - for stdin, the text of ops ('op f(..) ..'), or
a macro op's name, or a generator's call ('einsum(ij,jk->ik)').

  x=x.npy           a tensor for the argument x (a uint16 file is taken as bf16
                    where the program says bf16)
  x=f32[2,3]        an input of this type and shape, made up; x=[2,3] of the type
                    that the program says
  k=3               the $param k
  N=64              the dimension N
  -o y=y.npy        writes the result y to a file instead of printing it

What is missing is made up, and each such input is named on stderr. Dimensions
are 4, 5, 6, ... or, of a macro op given no sizes, those of its first sample;
floats are drawn from [-1, 1), integers from 0..3.

  --op=NAME         which op of several; by default the last
  --seed=S          of what is drawn; 0 by default
  --json            prints one object, {"y": {"type": "f32", "shape": [2, 3],
                    "data": [...]}}, elements in row-major order, those that are
                    inf or NaN as the strings "inf", "-inf", "nan"
  --backend=jit     what runs it: machine code (the default), or
  --backend=interp  the interpreter: slow, checks every access, on any CPU
  --mode=fast       sums in lanes and fused multiply-adds (the default), or
  --mode=strict     the bits that the interpreter gives
  --threads=N       of machine code; by default as many as there are
  --isa=avx2        of machine code; {isa, isa}: by default the best there is
  --schedules=FILE  of machine code: by the schedules that `nestor bench --tune` wrote
  --until=N         runs what the first N passes make, as `nestor print
                    --stage=scheduled` shows it; --until=merge: those up to and with
                    the one of that name

Examples:
  $ nestor run softmax
  $ nestor run matmul 'a=f32[2,3]' N=4 --seed=7 --threads=1
  $ nestor run max_pool2d 'x=[1,1,4,4]' k=2 stride=2 --json
  $ nestor run softmax N0=2 C=3 -o y=y.npy && nestor run log_softmax x=y.npy
  $ nestor run 'op scale(x: f32[N]; $k) -> (y) { y[i] = x[i] * f32($k) }' k=3

Exit codes: 0 done, 2 bad usage or input.
)";

constexpr Flag kFlags[] = {{"--op"},      {"--seed"}, {"--json", false}, {"--backend"},  {"--mode"},
                           {"--threads"}, {"--isa"},  {"--until"},       {"--schedules"}};

// ---- Backends

constexpr const char* kJitFlags[] = {"--mode", "--threads", "--isa", "--schedules"};

// Flags of the machine code are refused with the interpreter, rather than ignored.
absl::StatusOr<bool> UsesJit(const Arguments& arguments) {
  const std::string backend = arguments.Find("--backend").value_or("jit");
  if (backend == "jit") return true;
  if (backend != "interp") {
    return absl::InvalidArgumentError(absl::StrCat("--backend=", backend, ": unknown backend",
                                                   DidYouMean(backend, {"jit", "interp"}),
                                                   " (there are jit, interp)"));
  }
  for (const char* flag : kJitFlags) {
    if (arguments.Has(flag))
      return absl::InvalidArgumentError(absl::StrCat(flag, ": only of --backend=jit"));
  }
  return false;
}

// Says how the op can be run nevertheless.
absl::Status AddHint(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status) && !absl::IsUnimplemented(status)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; --backend=interp runs the interpreter"));
}

fusion::Pipeline AllPasses(const jit::CompileOptions& options) {
  const jit::Isa isa = options.isa ? *options.isa : jit::BestIsa().value_or(jit::kLeastIsa);
  return WithSchedule(jit::SchedulePipeline(options, isa));
}

// The program that the passes left by --until make of `op`.
absl::StatusOr<loop::Program> CutShort(const Op& op, const Arguments& arguments,
                                       const jit::CompileOptions& options) {
  return RunPasses(op, arguments, AllPasses(options), options.mode == jit::Mode::kStrict);
}

absl::StatusOr<std::unique_ptr<const jit::Executable>> CompileFor(
    const Op& op, const Arguments& arguments, const jit::CompileOptions& options) {
  if (!arguments.Has("--until")) return Compile(op, options);
  NESTOR_ASSIGN_OR_RETURN(loop::Program program, CutShort(op, arguments, options));
  return jit::CompileScheduled(std::move(program), options);
}

// Binding comes first, so that a mistake in the inputs is reported before the code is made.
absl::StatusOr<std::vector<Tensor>> RunCompiled(const Op& op, const Arguments& arguments,
                                                const RunInputs& inputs, const JitSetup& setup,
                                                int64_t max_bytes) {
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, Bind(SignatureOf(op), inputs));
  const auto executable = CompileFor(op, arguments, setup.options);
  if (!executable.ok()) return AddHint(executable.status());
  NESTOR_RETURN_IF_ERROR(CheckMemory(**executable, binding.symbols, max_bytes));
  return nestor::Run(**executable, inputs);
}

absl::StatusOr<std::vector<Tensor>> RunInterpreted(const Op& op, const Arguments& arguments,
                                                   const RunInputs& inputs, int64_t max_bytes) {
  InterpreterOptions options;
  options.max_bytes = max_bytes;
  if (!arguments.Has("--until")) return Interpret(Lower(op), inputs, options);
  NESTOR_ASSIGN_OR_RETURN(const loop::Program program, CutShort(op, arguments, {}));
  return Interpret(program, inputs, options);
}

// Flags, program, words, paths and sizes in this order, each before anything that takes long.
absl::Status Run(const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(const bool uses_jit, UsesJit(arguments));
  const absl::StatusOr<JitSetup> setup = uses_jit ? JitSetupFor(arguments) : JitSetup();
  if (!setup.ok()) return AddHint(setup.status());
  NESTOR_RETURN_IF_ERROR(PipelineFor(arguments, AllPasses(setup->options)).status());
  NESTOR_ASSIGN_OR_RETURN(const uint64_t seed, arguments.Seed());
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(Given given, ReadWords(arguments, program));
  std::vector<std::string> remarks;
  if (program.macro != nullptr) FillFromSample(*program.macro, program, given, remarks);
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given));
  NESTOR_RETURN_IF_ERROR(CheckOutputs(arguments, op));
  int64_t max_bytes = MaxBytes();
  NESTOR_ASSIGN_OR_RETURN(const Inputs inputs,
                          MakeInputs(op, given, program.macro, seed, &max_bytes));
  for (const std::string& remark : remarks) Remark(remark);
  for (const std::string& remark : inputs.remarks) Remark(remark);
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          uses_jit ? RunCompiled(op, arguments, inputs.run, *setup, max_bytes)
                                   : RunInterpreted(op, arguments, inputs.run, max_bytes));
  return Deliver(arguments, op, results);
}

}  // namespace

const Command kRunCommand = {"run", "runs an op and prints its results", kHelp, kFlags, true, true,
                             Run};

}  // namespace nestor::cli
