// nestor print: an op at a stage of the pipeline, as text that parses back.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/fused.h"
#include "cli/given.h"
#include "cli/inputs.h"
#include "cli/jit_flags.h"
#include "cli/measured_call.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/program.h"
#include "jit/compile.h"
#include "jit/disassemble.h"
#include "jit/kernel.h"
#include "jit/schedule/streaming.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"
#include "uops/message.h"
#include "uops/notation/print.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor print PROGRAM [x=f32[2,3] ...] [flags]

Prints an op as it stands at a stage on its way to the machine.

PROGRAM is a file in the notation, - for stdin, the text of ops ('op f(..) ..'), or
a macro op's name, or a generator's call ('einsum(ij,jk->ik)'). Dimensions and
$params stay symbols; x=f32[2,3] says the type and rank of an argument where the
program leaves them open (else T is f32, and ..N one dimension). With N=64, or another
size, the stages scheduled and asm are those of the code that runs at the sizes, which
are completed as for `nestor bench`: it may have constants, other tiles, merged axes,
and, for large arguments, what --large adds.

  --stage=uops      the micro-ops, in the notation (the default), with a comment
                    for each two sizes that must be equal
  --stage=loops     the loop program that they are lowered to, nothing fused
  --stage=fused     what the passes of fusion make of it
  --stage=scheduled what the passes of the schedule make of that
  --stage=asm       the machine code of that, an instruction a line after its offset,
                    under the statement that it is for

These of the stages fused, scheduled and asm:
  --passes=a,b      with these passes only; --passes= with none
  --until=N         with the first N passes only; --until=merge with those up to
                    and with the one of that name
  --strict          without passes that reorder rounding
  --trace           after each pass, on stderr, its time and what it made, or that
                    it changed nothing
  --isa=avx2        of scheduled and asm: {isa or isa}, which this CPU need not
                    have; by default its best
  --large           of scheduled and asm: for arguments larger than the caches, which
                    results stream past and rows are fetched into before their turn
  --bind=w,b        of scheduled and asm: for these inputs being frozen, as by
                    nestor bench --bind
  --op=NAME         which op of several; by default the last

Examples:
  $ nestor print softmax
  $ nestor print softmax --stage=loops 'x=f64[2,3,4]'
  $ nestor print softmax --stage=fused --until=merge
  $ nestor print softmax --stage=fused --trace
  $ nestor print softmax --stage=scheduled --large
  $ nestor print softmax --stage=asm --isa=avx2
  $ nestor print conv2d --stage=scheduled --bind=w
  $ nestor print matmul --stage=scheduled 'a=[256,256]' N=256
  $ nestor print matmul | nestor run -

Exit codes: 0 done, 2 bad usage or input.
)";

constexpr Flag kFlags[] = {{"--op"},    {"--stage"},         {"--passes"},
                           {"--until"}, {"--strict", false}, {"--trace", false},
                           {"--isa"},   {"--large", false},  {"--bind"}};

absl::StatusOr<std::string> UopsText(const Op& op, const Arguments&) {
  return PrintOp(op, {.equalities = true});
}

absl::StatusOr<std::string> LoopsText(const Op& op, const Arguments&) {
  return loop::ToText(Lower(op));
}

absl::StatusOr<std::string> FusedText(const Op& op, const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(
      const loop::Program program,
      RunPasses(op, arguments, fusion::Pipeline::Default(), arguments.Has("--strict")));
  return loop::ToText(program);
}

// By input, whether --bind names it; empty where the flag is absent.
absl::StatusOr<std::vector<bool>> BoundInputs(const Op& op, const Arguments& arguments) {
  std::vector<bool> bound;
  NESTOR_ASSIGN_OR_RETURN(const std::vector<std::string> names, arguments.List("--bind"));
  if (names.empty()) return bound;
  std::vector<std::string> known;
  for (const Argument& arg : op.args) {  // a program's inputs are the arguments, in their order
    known.push_back(arg.name);
    bound.push_back(absl::c_linear_search(names, known.back()));
  }
  for (const std::string& name : names) {
    if (absl::c_linear_search(known, name)) continue;
    return absl::InvalidArgumentError(absl::StrCat("--bind: op ", op.name, " has no input '", name,
                                                   "'", DidYouMean(name, known)));
  }
  return bound;
}

// --large adds what the runtime does to code for arguments beyond the caches.
absl::StatusOr<loop::Program> Scheduled(const Op& op, const Arguments& arguments, jit::Isa isa) {
  jit::CompileOptions options;
  options.mode = arguments.Has("--strict") ? jit::Mode::kStrict : jit::Mode::kFast;
  NESTOR_ASSIGN_OR_RETURN(options.schedule.contractions.bound, BoundInputs(op, arguments));
  NESTOR_ASSIGN_OR_RETURN(
      loop::Program program,
      RunPasses(op, arguments, WithSchedule(jit::SchedulePipeline(options, isa)),
                arguments.Has("--strict")));
  if (!arguments.Has("--large")) return program;
  // The passes were cut short.
  if (!program.proven) NESTOR_RETURN_IF_ERROR(jit::ProveForCode(program, isa));
  NESTOR_RETURN_IF_ERROR(loop::StreamArguments(program).status());
  return program;
}

absl::StatusOr<std::string> ScheduledText(const Op& op, const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(const jit::Isa isa, IsaFor(arguments));
  NESTOR_ASSIGN_OR_RETURN(const loop::Program program, Scheduled(op, arguments, isa));
  return loop::ToText(program);
}

absl::StatusOr<std::string> AsmText(const Op& op, const Arguments& arguments) {
  jit::TranslateOptions options;
  NESTOR_ASSIGN_OR_RETURN(options.isa, IsaFor(arguments));
  NESTOR_ASSIGN_OR_RETURN(loop::Program program, Scheduled(op, arguments, options.isa));
  if (!program.proven) NESTOR_RETURN_IF_ERROR(jit::ProveForCode(program, options.isa));
  NESTOR_ASSIGN_OR_RETURN(const auto kernel, jit::Kernel::Compile(std::move(program), options));
  return jit::Disassemble(*kernel);
}

// The code that a call with the inputs runs.
absl::StatusOr<std::shared_ptr<const jit::Kernel>> KernelFor(const Op& op, const RunInputs& inputs,
                                                             const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(JitSetup setup, JitSetupFor(arguments));
  setup.options.mode = arguments.Has("--strict") ? jit::Mode::kStrict : jit::Mode::kFast;
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, Bind(SignatureOf(op), inputs));
  NESTOR_ASSIGN_OR_RETURN(const std::vector<std::string> bound, arguments.List("--bind"));
  NESTOR_ASSIGN_OR_RETURN(const auto executable, CompileBound(op, inputs, setup.options, bound));
  return executable->KernelAt([&](const std::string& name) { return binding.Find(name); });
}

// In the order of the pipeline.
struct Stage {
  const char* name;
  bool takes_passes;
  bool takes_isa;  // and sizes, and inputs to bind
  absl::StatusOr<std::string> (*text)(const Op& op, const Arguments& arguments);
  std::string (*sized_text)(const jit::Kernel& kernel);  // null: the same at all sizes
};
constexpr Stage kStages[] = {
    {"uops", false, false, UopsText, nullptr},
    {"loops", false, false, LoopsText, nullptr},
    {"fused", true, false, FusedText, nullptr},
    {"scheduled", true, true, ScheduledText,
     [](const jit::Kernel& kernel) { return loop::ToText(kernel.program()); }},
    {"asm", true, true, AsmText, jit::Disassemble},
};

absl::StatusOr<const Stage*> FindStage(const std::string& name) {
  std::vector<std::string> known;
  for (const Stage& stage : kStages) {
    if (stage.name == name) return &stage;
    known.push_back(stage.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("--stage=", name, ": unknown stage",
                                                 DidYouMean(name, known), " (there are ",
                                                 absl::StrJoin(known, ", "), ")"));
}

absl::Status CheckFlags(const Stage& stage, const Arguments& arguments) {
  for (const char* flag : {"--passes", "--until", "--strict", "--trace"}) {
    if (stage.takes_passes || !arguments.Has(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": no passes run before the stage ", stage.name));
  }
  for (const char* flag : {"--isa", "--large"}) {
    if (stage.takes_isa || !arguments.Has(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": the stage ", stage.name, " is the same on all machines"));
  }
  if (arguments.Has("--bind") && !stage.takes_isa) {
    return absl::InvalidArgumentError(
        absl::StrCat("--bind: the stage ", stage.name, " is the same whatever is bound"));
  }
  return absl::OkStatus();
}

absl::Status CheckFlagsOfSized(const Arguments& arguments) {
  for (const char* flag : {"--passes", "--until", "--trace", "--large"}) {
    if (!arguments.Has(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": only where dimensions and $params stay symbols"));
  }
  return absl::OkStatus();
}

// The stage of the code that runs at the given sizes.
absl::StatusOr<std::string> SizedText(const Stage& stage, const Program& program, Given given,
                                      const Arguments& arguments) {
  NESTOR_RETURN_IF_ERROR(CheckFlagsOfSized(arguments));
  std::vector<std::string> remarks;
  if (program.macro != nullptr) FillFromSample(*program.macro, program, given, remarks);
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given));
  int64_t max_bytes = MaxBytes();
  NESTOR_ASSIGN_OR_RETURN(const Inputs inputs,
                          MakeInputs(op, given, program.macro, /*seed=*/0, &max_bytes));
  for (const std::string& remark : remarks) Remark(remark);
  for (const std::string& remark : inputs.remarks) Remark(remark);
  NESTOR_ASSIGN_OR_RETURN(const auto kernel, KernelFor(op, inputs.run, arguments));
  return stage.sized_text(*kernel);
}

absl::StatusOr<std::string> SymbolicText(const Stage& stage, const Program& program,
                                         const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(const Given given, ReadShapeWords(arguments, program));
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given));
  return stage.text(op, arguments);
}

absl::Status Run(const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(const Stage* const stage,
                          FindStage(arguments.Find("--stage").value_or("uops")));
  NESTOR_RETURN_IF_ERROR(CheckFlags(*stage, arguments));
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(Given given, ReadWords(arguments, program));
  const bool has_sizes = !given.dims.empty() || !given.params.empty() || !given.tensors.empty();
  NESTOR_ASSIGN_OR_RETURN(const std::string text,
                          has_sizes && stage->sized_text != nullptr
                              ? SizedText(*stage, program, std::move(given), arguments)
                              : SymbolicText(*stage, program, arguments));
  return WriteStdout(text);
}

}  // namespace

const Command kPrintCommand = {
    "print", "prints an op as micro-ops, loops or machine code", kHelp, kFlags, true, false, Run};

}  // namespace nestor::cli
