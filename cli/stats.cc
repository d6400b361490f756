// nestor stats: the costs of an op's program at given sizes, as lowered and as fused.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/fused.h"
#include "cli/given.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/sizes.h"
#include "fusion/cost/statistics.h"
#include "jit/compile.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/lower.h"
#include "loop_ir/sized_program.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor stats PROGRAM [N=64 ...] [flags]

Counts what an op costs at given sizes, unfused and fused: a `key: value` a line.

PROGRAM is a file in the notation, - for stdin, the text of ops ('op f(..) ..'), or
a macro op's name. Sizes are given as N=64, k=3, x=f32[2,3] or x=x.npy; every
dimension that these do not determine must be given. Nothing is run.

  blocks            loops at the top of the program; beside them `loops` and
                    `statements`
  bytes             bytes walked: loads and stores that a cache with least recently
                    used replacement does not serve, estimated
  arena_bytes       memory for temporaries, which share it: of a run of the code;
                    arena_lower_bound: the most that are needed at once;
                    private_bytes: what each thread needs beside;
                    temp_bytes: all of them side by side
  input_bytes, output_bytes
  flops             floating-point operations, an accumulation being one
  fuse_ms           the time that fusing took
  compile_ms        the time to machine code for this CPU, fuse_ms included
  code_bytes        of that code, without constants
  .._unfused        the same of the program as it was lowered

  --l2=1MiB         the size of the cache, in bytes or with KiB, MiB, GiB
  --json            prints one object
  --op=NAME         which op of several; by default the last
  --passes=a,b      fuses with these passes only; --passes= with none
  --until=N         fuses with the first N passes only; --until=merge with those up
                    to and with the one of that name

Examples:
  $ nestor stats softmax N0=1024 C=512
  $ nestor stats matmul 'a=[512,512]' N=512 --l2=256KiB --json

Exit codes: 0 done, 2 bad usage or input.
)";

constexpr Flag kFlags[] = {{"--op"}, {"--l2"}, {"--json", false}, {"--passes"}, {"--until"}};

// ---- Flags

absl::StatusOr<int64_t> CacheBytes(const Arguments& arguments) {
  const std::string text = arguments.Find("--l2").value_or("1MiB");
  absl::string_view number = text;
  int64_t unit = 1;
  constexpr std::pair<const char*, int64_t> kUnits[] = {
      {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
  for (const auto& [suffix, size] : kUnits) {
    if (absl::ConsumeSuffix(&number, suffix)) unit = size;
  }
  int64_t count, bytes;
  const bool is_number =
      !number.empty() && absl::ascii_isdigit(number[0]) && absl::SimpleAtoi(number, &count);
  if (is_number && !__builtin_mul_overflow(count, unit, &bytes)) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat("--l2=", text, ": a size is expected, as in 1MiB, 512KiB or 65536"));
}

// ---- Passes

double Milliseconds(absl::Time begin) { return absl::ToDoubleMilliseconds(absl::Now() - begin); }

struct Fused {
  loop::Program program;
  double milliseconds;
};

absl::StatusOr<Fused> Fuse(loop::Program program, const fusion::Pipeline& pipeline) {
  const absl::Time begin = absl::Now();
  NESTOR_RETURN_IF_ERROR(pipeline.Run(program));
  return Fused{std::move(program), Milliseconds(begin)};
}

struct Code {
  std::unique_ptr<const jit::Executable> executable;
  double milliseconds;
};

absl::StatusOr<Code> MakeCode(loop::Program fused) {
  const absl::Time begin = absl::Now();
  NESTOR_ASSIGN_OR_RETURN(const jit::Isa isa, jit::BestIsa());
  NESTOR_RETURN_IF_ERROR(jit::SchedulePipeline({}, isa).Run(fused));
  NESTOR_ASSIGN_OR_RETURN(auto executable, jit::CompileScheduled(std::move(fused)));
  return Code{std::move(executable), Milliseconds(begin)};
}

// Measures the memory of the code.
absl::Status MeasureMemory(const jit::Executable& executable, const loop::Sizes& sizes,
                           loop::Statistics& statistics) {
  NESTOR_ASSIGN_OR_RETURN(const loop::SizedProgram sized,
                          loop::SizedProgram::Create(executable.program(), sizes));
  return loop::MeasureMemory(sized, executable.kernel().plan(), statistics);
}

// ---- Figures

void AddProgram(const loop::Statistics& statistics, const std::string& suffix, Figures& figures) {
  const auto add = [&](const char* key, const std::string& value) {
    figures.push_back({key + suffix, value});
  };
  add("blocks", absl::StrCat(statistics.blocks));
  add("loops", absl::StrCat(statistics.loops));
  add("statements", absl::StrCat(statistics.statements));
  add("bytes", CountText(statistics.walked.Total()));
  add("arena_bytes", absl::StrCat(statistics.arena_bytes));
  add("arena_lower_bound", absl::StrCat(statistics.arena_lower_bound));
  add("private_bytes", absl::StrCat(statistics.private_bytes));
  add("temp_bytes", absl::StrCat(statistics.temp_bytes));
  add("flops", CountText(statistics.flops));
}

// The time from the lowered program to machine code.
void AddCode(const Fused& fused, const Code& code, Figures& figures) {
  figures.push_back(
      {"compile_ms", absl::StrFormat("%.3f", fused.milliseconds + code.milliseconds)});
  figures.push_back({"code_bytes", absl::StrCat(code.executable->kernel().code_bytes())});
}

absl::Status Run(const Arguments& arguments) {
  loop::StatisticsOptions options;
  NESTOR_ASSIGN_OR_RETURN(options.cache_bytes, CacheBytes(arguments));
  NESTOR_ASSIGN_OR_RETURN(const fusion::Pipeline pipeline,
                          PipelineFor(arguments, fusion::Pipeline::Default()));
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Given given, ReadWords(arguments, program));
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given));
  NESTOR_ASSIGN_OR_RETURN(const loop::Sizes sizes, BindSizes(op, given));
  const loop::Program lowered = Lower(op);
  NESTOR_ASSIGN_OR_RETURN(const loop::Statistics unfused, StatisticsOf(lowered, sizes, options));
  NESTOR_ASSIGN_OR_RETURN(const Fused fused, Fuse(lowered, pipeline));
  NESTOR_ASSIGN_OR_RETURN(loop::Statistics statistics, StatisticsOf(fused.program, sizes, options));
  const absl::StatusOr<Code> code = MakeCode(fused.program);
  if (code.ok()) NESTOR_RETURN_IF_ERROR(MeasureMemory(*code->executable, sizes, statistics));
  Figures figures;
  AddProgram(unfused, "_unfused", figures);
  AddProgram(statistics, "", figures);
  figures.push_back({"input_bytes", absl::StrCat(statistics.input_bytes)});
  figures.push_back({"output_bytes", absl::StrCat(statistics.output_bytes)});
  figures.push_back({"fuse_ms", absl::StrFormat("%.3f", fused.milliseconds)});
  if (code.ok()) {
    AddCode(fused, *code, figures);
  } else {
    Remark(absl::StrCat("no compile_ms and code_bytes, and memory as of the fused program: ",
                        code.status().message()));
  }
  return WriteStdout(FiguresText(figures, arguments.Has("--json")));
}

}  // namespace

const Command kStatsCommand = {
    "stats", "counts what an op costs, unfused and fused", kHelp, kFlags, true, false, Run};

}  // namespace nestor::cli
