// nestor bench: how fast an op's machine code runs, compared with the limits of this machine: the
// rates that it reaches, measured here too, since a number from a data sheet says little about this
// processor at this moment.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "bench/measure.h"
#include "bench/peaks.h"
#include "bench/thread_team.h"
#include "check/c_kernel.h"
#include "check/child.h"
#include "cli/arguments.h"
#include "cli/block_times.h"
#include "cli/command.h"
#include "cli/dimensions.h"
#include "cli/figures.h"
#include "cli/flag_values.h"
#include "cli/given.h"
#include "cli/inputs.h"
#include "cli/jit_flags.h"
#include "cli/library_kernel.h"
#include "cli/measured_call.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/tune.h"
#include "fusion/cost/statistics.h"
#include "fusion/pipeline.h"
#include "jit/executable.h"
#include "nestor.h"
#include "tensor/binding.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor bench PROGRAM [N=64 ...] [flags]

Measures how fast an op runs as machine code: a `key: value` a line.

PROGRAM is a file in the notation, - for stdin, the text of ops ('op f(..) ..'), or
a macro op's name. Sizes and inputs are given, or made up, as for `nestor run`.

  time_ms           of a call, without making memory for its results: the median
                    of some rounds, inputs being in the caches where they fit
  gflops            10^9 floating-point operations a second, as `nestor stats`
                    counts them; beside it peak_gflops, of f32 multiply-adds in
                    registers
  gbytes_per_s      10^9 bytes of inputs and outputs a second, each counted once;
                    beside it peak_gbytes_per_s, of a copy in memory, which what
                    fits in the caches may exceed
  flops, bytes      of a call
  bound_by          what keeps it from being quicker: compute; the first, second or last
                    cache, or memory, out of which it reads and writes too much; or
                    latency, where none of these would take half of the time alone, but
                    steps wait for each other. By a model of what the code moves
  bound_share       what the most loaded of these would take alone, of the time
  threads, isa, mode

  --library=FILE    measures the kernel in a shared object beside it, in turns, in
                    a process of both: library_time_ms, library_gflops,
                    library_gbytes_per_s, and speed_up, its time over Nestor's. It is
                    the function that `nestor header` prints; --symbol=NAME and
                    --strided say which, as they do there. Check it first
  --bind=w,b        freezes these inputs before measuring, as the weights of a layer:
                    what is computed of them alone is computed once
  --compile         measures the time of compiling, too: compile_ms, code_bytes, of
                    the code for all sizes
  --blocks          where the time goes: block_N_us, of each function that the code is
                    made of and that takes a hundredth of the time, and block_N, what it
                    writes (names as `nestor print --stage=scheduled` has them) and how
                    often its outer loop runs, the iterations of parallel ones being
                    shared out to threads; block_N_bound_by, block_N_bound_share;
                    other_blocks_us. What is computed of bound
                    inputs alone is not among them
  --tune=FILE       searches for a schedule that is quicker for such sizes on this machine, and
                    writes it to a file of schedules, which gets a line more or is new:
                    tuned_time_ms, tuned_speed_up, schedule ("default" where none is quicker,
                    and FILE has none for it then). --time=30s is how long it searches
  --schedules=FILE  runs by the schedules in the file, where it has one for the op, the
                    sizes and the machine
  --mode=fast       sums in lanes and fused multiply-adds (the default), or
  --mode=strict     the bits that the interpreter gives
  --threads=N       by default as many as there are
  --isa=avx2        {isa, isa}: by default the best there is
  --seed=S          of what is drawn; 0 by default
  --json            prints one object
  --type=f64        what type variables are; by default f32
  --op=NAME         which op of several; by default the last

Examples:
  $ nestor bench softmax N0=1024 C=512
  $ nestor bench matmul 'a=[256,256]' N=256 --threads=1 --compile --json
  $ nestor bench attention B0=8 L=512 S=512 D=64 E=64 --blocks
  $ nestor bench matmul 'a=[100,100]' N=100 --tune=my.schedules --time=2s

Exit codes: 0 done, 2 bad usage or input, 3 the library crashed or hung.
)";

// How long to search for a schedule.
constexpr absl::Duration kMostTuning = absl::Seconds(30);

constexpr Flag kFlags[] = {{"--op"},
                           {"--seed"},
                           {"--json", false},
                           {"--compile", false},
                           {"--blocks", false},
                           {"--threads"},
                           {"--mode"},
                           {"--isa"},
                           {"--library"},
                           {"--symbol"},
                           {"--strided", false},
                           {"--type"},
                           {"--bind"},
                           {"--tune"},
                           {"--time"},
                           {"--schedules"}};

double SecondsOf(std::function<void()> run) {
  return bench::MeasureAlternating({{"", std::move(run)}})[0].cost;
}

// The times of a call, in seconds.
struct Times {
  double nestor = 0;
  absl::optional<double> library;
};

// The kernel to compare with Nestor's; a callback reports when a call of it has returned.
struct Library {
  LibraryKernel kernel;
  std::function<void()> on_return;
};

absl::StatusOr<Times> TimesOfCalls(const std::function<absl::Status()>& nestor,
                                   const std::function<absl::Status()>& library) {
  absl::Status status;
  std::vector<bench::Contender> contenders = {{"nestor", [&] { status.Update(nestor()); }}};
  if (library) contenders.push_back({"library", [&] { status.Update(library()); }});
  const std::vector<bench::Reading> readings = bench::MeasureAlternating(contenders);
  if (!status.ok()) return status;
  Times times{readings[0].cost, {}};
  if (library) times.library = readings[1].cost;
  return times;
}

// The first call of each compiles and reserves memory, and is not measured. With a library's
// kernel, the two take turns, so that the machine's state favours neither.
absl::StatusOr<Times> TimesOf(const Op& op, const jit::Executable& executable,
                              const RunInputs& inputs, const Binding& binding,
                              const Library* library) {
  NESTOR_ASSIGN_OR_RETURN(const MeasuredCall call, MakeCall(executable, inputs, binding));
  jit::Workspace workspace;
  const auto nestor = [&] { return executable.Run(call.arguments(), &workspace); };
  NESTOR_RETURN_IF_ERROR(nestor());
  if (library == nullptr) return TimesOfCalls(nestor, nullptr);
  NESTOR_ASSIGN_OR_RETURN(const LibraryCall other,
                          LibraryCall::Create(library->kernel, op, inputs, binding));
  NESTOR_RETURN_IF_ERROR(other.run()());
  library->on_return();
  return TimesOfCalls(nestor, other.run());
}

absl::StatusOr<loop::Statistics> FusedStatistics(const Op& op, const SymbolValues& sizes) {
  loop::Program program = Lower(op);
  NESTOR_RETURN_IF_ERROR(fusion::Pipeline::Default().Run(program));
  return loop::StatisticsOf(program, sizes);
}

std::string Decimal(double value) { return absl::StrFormat("%.6g", value); }

double BytesOf(const loop::Statistics& statistics) {
  return static_cast<double>(statistics.input_bytes) + static_cast<double>(statistics.output_bytes);
}

Figures SpeedFigures(double seconds, const loop::Statistics& statistics,
                     const bench::Peaks& peaks) {
  const double bytes = BytesOf(statistics);
  return {{"time_ms", Decimal(seconds * 1e3)},
          {"gflops", Decimal(statistics.flops / seconds * 1e-9)},
          {"peak_gflops", Decimal(peaks.gigaflops)},
          {"gbytes_per_s", Decimal(bytes / seconds * 1e-9)},
          {"peak_gbytes_per_s", Decimal(peaks.copy_gigabytes)},
          {"flops", CountText(statistics.flops)},
          {"bytes", CountText(bytes)}};
}

void AddLibrary(const Times& times, const loop::Statistics& statistics, Figures& figures) {
  const double seconds = *times.library;
  figures.push_back({"library_time_ms", Decimal(seconds * 1e3)});
  figures.push_back({"library_gflops", Decimal(statistics.flops / seconds * 1e-9)});
  figures.push_back({"library_gbytes_per_s", Decimal(BytesOf(statistics) / seconds * 1e-9)});
  figures.push_back({"speed_up", Decimal(seconds / times.nestor)});
}

void AddSetup(const JitSetup& setup, Figures& figures) {
  figures.push_back({"threads", absl::StrCat(setup.threads())});
  figures.push_back({"isa", std::string(jit::Name(*setup.options.isa)), /*is_text=*/true});
  figures.push_back(
      {"mode", setup.options.mode == jit::Mode::kStrict ? "strict" : "fast", /*is_text=*/true});
}

void AddCompilation(const Op& op, const JitSetup& setup, const jit::Executable& executable,
                    Figures& figures) {
  const double seconds = SecondsOf([&] { Compile(op, setup.options).status().IgnoreError(); });
  figures.push_back({"compile_ms", Decimal(seconds * 1e3)});
  figures.push_back({"code_bytes", absl::StrCat(executable.kernel().code_bytes())});
}

// The team's threads end with it, so that none disturbs later measurements.
Rates RatesOf(const JitSetup& setup) {
  bench::ThreadTeam team(setup.threads());
  const jit::CacheSizes caches = jit::Caches();
  const int64_t bytes[] = {caches.l1, caches.l2, caches.last};
  return {*setup.options.isa, setup.threads(), bench::MeasurePeaks(team),
          bench::MeasureCacheRates(bytes)};
}

// Measurements besides that of a call, and the inputs to which the call is bound.
struct More {
  bool blocks = false, compiles = false;
  absl::optional<TuneRequest> tune;
  std::vector<std::string> bound;
};

absl::StatusOr<More> ReadMore(const Arguments& arguments) {
  More more{arguments.Has("--blocks"), arguments.Has("--compile"), {}, {}};
  NESTOR_ASSIGN_OR_RETURN(more.bound, arguments.List("--bind"));
  NESTOR_ASSIGN_OR_RETURN(const absl::Duration time,
                          ReadDuration(arguments, "--time", kMostTuning));
  const auto file = arguments.Find("--tune");
  if (file && file->empty()) return absl::InvalidArgumentError("--tune=: a file is expected");
  if (file) more.tune = TuneRequest{*file, time, more.bound};
  if (!file && arguments.Has("--time")) return absl::InvalidArgumentError("--time: only of --tune");
  return more;
}

// Each flag adds figures; the order of the figures is that of this function.
absl::StatusOr<Figures> Measure(const Op& op, const RunInputs& inputs, const JitSetup& setup,
                                int64_t max_bytes, const Library* library, const More& more) {
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, Bind(SignatureOf(op), inputs));
  NESTOR_ASSIGN_OR_RETURN(const auto executable,
                          CompileBound(op, inputs, setup.options, more.bound));
  NESTOR_RETURN_IF_ERROR(CheckMemory(*executable, binding.symbols, max_bytes));
  NESTOR_ASSIGN_OR_RETURN(const loop::Statistics statistics, FusedStatistics(op, binding.symbols));
  NESTOR_ASSIGN_OR_RETURN(const Times times, TimesOf(op, *executable, inputs, binding, library));
  const Rates rates = RatesOf(setup);
  Figures figures = SpeedFigures(times.nestor, statistics, rates.peaks);
  NESTOR_ASSIGN_OR_RETURN(const MeasuredCall call, MakeCall(*executable, inputs, binding));
  NESTOR_ASSIGN_OR_RETURN(const CallTimes calls,
                          TimesOfBlocks(*executable, call.arguments(), binding, rates));
  AddBound(calls.bound, "", figures);
  if (times.library) AddLibrary(times, statistics, figures);
  AddSetup(setup, figures);
  if (more.blocks) AddBlocks(calls.blocks, figures);
  if (more.tune) {
    NESTOR_ASSIGN_OR_RETURN(const Figures tuned,
                            Tune(op, inputs, binding, setup.options, *more.tune));
    figures.insert(figures.end(), tuned.begin(), tuned.end());
  }
  if (more.compiles) AddCompilation(op, setup, *executable, figures);
  return figures;
}

// ---- In a child

// The time limit for loading a library and for its first call.
constexpr absl::Duration kPatience = absl::Minutes(1);
// The time limit for all measured calls.
constexpr absl::Duration kMostMeasuring = absl::Minutes(10);

using MeasureText = absl::FunctionRef<absl::StatusOr<std::string>(std::function<void()> on_return)>;

// The messages of a child: a call of the kernel has returned; the measurements; an error, its
// code first.
constexpr char kReturned = 'r', kMeasured = 'm', kError = 'e';

std::string Message(const absl::StatusOr<std::string>& measured) {
  if (measured.ok()) return absl::StrCat(std::string(1, kMeasured), *measured);
  const char code = static_cast<char>(measured.status().code());
  return absl::StrCat(std::string{kError, code}, measured.status().message());
}

// The kernel may end its process, or never return.
absl::StatusOr<std::string> MeasureInChild(MeasureText measure) {
  absl::StatusOr<std::string> result = absl::UnavailableError("");
  absl::Time returned = absl::InfinitePast();
  const ChildEnd end = RunInChild(
      [&](Say say) { say(Message(measure([&] { say(std::string(1, kReturned)); }))); },
      [&](absl::string_view message) {
        if (message[0] == kReturned) returned = absl::Now();
        if (message[0] == kMeasured) result = std::string(message.substr(1));
        if (message[0] == kError)
          result = absl::Status(static_cast<absl::StatusCode>(message[1]), message.substr(2));
        return true;
      },
      kPatience, [&] { return absl::Now() - returned < kMostMeasuring; });
  if (end.death.empty() && (result.ok() || !absl::IsUnavailable(result.status()))) return result;
  return absl::UnavailableError(absl::StrCat("while the kernel is measured, its process ",
                                             end.death.empty() ? "exits with 0" : DeathText(end),
                                             end.words.empty() ? "" : "; it says: ", end.words));
}

// A kernel of a library may crash, so it is measured in a child process, which measures Nestor
// beside it.
absl::Status Run(const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(const uint64_t seed, arguments.Seed());
  NESTOR_ASSIGN_OR_RETURN(const JitSetup setup, JitSetupFor(arguments));
  NESTOR_ASSIGN_OR_RETURN(const More more, ReadMore(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(Given given, ReadWords(arguments, program));
  std::vector<std::string> remarks;
  if (program.macro != nullptr) FillFromSample(*program.macro, program, given, remarks);
  NESTOR_ASSIGN_OR_RETURN(const auto type, ReadType(arguments, program));
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given, type));
  NESTOR_ASSIGN_OR_RETURN(const auto named, ReadLibraryKernel(arguments, op));
  if (named) NESTOR_RETURN_IF_ERROR(TryLoadCKernel(named->file, named->prototype, kPatience));
  int64_t max_bytes = MaxBytes();
  NESTOR_ASSIGN_OR_RETURN(const Inputs inputs,
                          MakeInputs(op, given, program.macro, seed, &max_bytes));
  for (const std::string& remark : remarks) Remark(remark);
  for (const std::string& remark : inputs.remarks) Remark(remark);
  const auto measure = [&](const Library* library) -> absl::StatusOr<std::string> {
    NESTOR_ASSIGN_OR_RETURN(const Figures figures,
                            Measure(op, inputs.run, setup, max_bytes, library, more));
    return FiguresText(figures, arguments.Has("--json"));
  };
  const auto measure_beside = [&](std::function<void()> on_return) -> absl::StatusOr<std::string> {
    NESTOR_ASSIGN_OR_RETURN(LibraryKernel kernel, LoadLibraryKernel(*named));
    const Library library{std::move(kernel), std::move(on_return)};
    return measure(&library);
  };
  NESTOR_ASSIGN_OR_RETURN(const std::string text,
                          named ? MeasureInChild(measure_beside) : measure(nullptr));
  return WriteStdout(text);
}

}  // namespace

const Command kBenchCommand = {"bench", "measures how fast an op runs", kHelp, kFlags, true, false,
                               Run};

}  // namespace nestor::cli
