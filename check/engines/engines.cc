// A program runs after a prefix of the passes: the interpreter's results after that prefix are the
// oracle of its machine code, and the unfused program's results are those of every strict prefix.
// So any two engines can be compared, whatever was drawn for them.
#include "check/engines/engines.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "check/engines/dealing_executor.h"
#include "check/engines/guarded_run.h"
#include "fusion/pipeline.h"
#include "interp/interpreter.h"
#include "jit/cache.h"
#include "jit/codegen/foreign_instructions.h"
#include "jit/disassemble.h"
#include "jit/runtime/abi_harness.h"
#include "jit/runtime/executor.h"
#include "loop_ir/intervals.h"
#include "loop_ir/signature.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"
#include "uops/stable_hash.h"

namespace nestor {
namespace {

// Never freed, as are all singletons here: threads may still run when the process ends.
jit::Executor& TwoThreads() {
  static jit::Executor* const pool = jit::NewThreadPool(2).release();
  return *pool;
}

DealingExecutor& Dealer() {
  static auto* const dealer = new DealingExecutor;
  return *dealer;
}

jit::Executor& ExecutorOf(const Engine& engine) {
  if (engine.threads == 1) return jit::InlineExecutor();
  return engine.dealt ? Dealer() : TwoThreads();
}

// Fusion, then the schedule, without the passes that the mode leaves out.
// One list, so that "after N passes" may end in fusion or in the schedule.
std::vector<fusion::Pass> PassesOf(const jit::CompileOptions& options) {
  std::vector<fusion::Pass> passes = fusion::Pipeline::Default().passes();
  const fusion::Pipeline schedule = jit::SchedulePipeline(options, *options.isa);
  passes.insert(passes.end(), schedule.passes().begin(), schedule.passes().end());
  if (options.mode == jit::Mode::kFast) return passes;
  std::vector<fusion::Pass> strict;
  for (fusion::Pass& pass : passes) {
    if (!pass.reorders_rounding) strict.push_back(std::move(pass));
  }
  return strict;
}

// An executable runs all of them by itself, whatever was drawn.
int NumPasses(const Engine& engine) {
  const int count = static_cast<int>(PassesOf(engine.options).size());
  return engine.backend == Engine::Backend::kExecutable ? count : std::min(engine.passes, count);
}

std::string PassesText(const Engine& engine) {
  const std::vector<fusion::Pass> passes = PassesOf(engine.options);
  const int count = NumPasses(engine);
  if (count == 0) return "unfused";
  if (count == static_cast<int>(passes.size())) return "after all passes";
  return absl::StrCat("after pass ", count, " (", passes[static_cast<size_t>(count - 1)].name, ")");
}

// With the seed these reproduce the engine; a reader sees which threshold a fault may depend on.
std::string ThresholdsText(const jit::CompileOptions& options) {
  const loop::ContractionTileOptions& tiles = options.schedule.contractions;
  return absl::StrCat(
      options.schedule.accumulators, " accumulators, tiles ", tiles.rows, " x ", tiles.vectors,
      ", blocks ", tiles.sum_block, " x ", tiles.row_block, " x ", tiles.column_block,
      tiles.panels ? "" : " without panels", tiles.columns_outside ? ", columns outside" : "",
      ", strips of ", options.schedule.strips.rows, ", memory order ",
      options.schedule.memory_order.columns, " x ", options.schedule.memory_order.rows,
      ", sums in pieces of ", options.schedule.parallel_sums.least_steps,
      options.prefetching_bytes ? ", prefetching" : "",
      options.streaming_bytes ? ", streaming" : "");
}

absl::string_view Name(Engine::Backend backend) {
  constexpr absl::string_view kNames[] = {"interpreter", "code", "executable"};
  return kNames[static_cast<int>(backend)];
}

// By name, so that a program without some input binds the same ones of the others.
bool IsBound(const Engine& engine, const std::string& input) {
  return engine.bind_seed && Random(StableHash(input, *engine.bind_seed)).Chance(50);
}

std::vector<bool> BoundInputsOf(const Engine& engine, const loop::Program& program) {
  std::vector<bool> bound;
  for (loop::TensorId id : program.inputs) bound.push_back(IsBound(engine, program[id].name));
  return bound;
}

std::string RunText(const Engine& engine) {
  const absl::string_view bound = engine.bind_seed ? ", inputs bound" : "";
  if (engine.backend == Engine::Backend::kInterpreter)
    return absl::StrCat(engine.shuffle_seed ? ", loops shuffled" : "", bound);
  return absl::StrCat(bound, engine.specialized ? ", specialized" : "", ", ", engine.threads,
                      engine.threads == 1 ? " thread"
                      : engine.dealt      ? " threads in turn"
                                          : " threads",
                      ", outputs ", Name(engine.outputs), engine.in_place ? ", in place" : "",
                      engine.poison_dead ? ", dead bytes poisoned" : "",
                      engine.from_cache ? ", from a cache" : "",
                      engine.side == GuardedMemory::Side::kEnd ? ", to the end of a page"
                                                               : ", from the begin of a page",
                      engine.calls > 1 ? absl::StrCat(", ", engine.calls, " calls") : "");
}

}  // namespace

std::string Describe(const Engine& engine) {
  return absl::StrCat(Name(engine.backend), ", ", jit::Name(*engine.options.isa),
                      engine.options.mode == jit::Mode::kStrict ? " strict" : " fast", ", ",
                      PassesText(engine), RunText(engine), " (", ThresholdsText(engine.options),
                      ")");
}

absl::Span<const jit::Isa> AvailableSets() {
  static const auto* const sets = [] {
    auto* available = new std::vector<jit::Isa>;
    for (const jit::IsaFacts& set : jit::kIsas) {
      if (jit::CheckIsa(set.isa).ok()) available->push_back(set.isa);
    }
    return available;
  }();
  return *sets;
}

// ---- Drawing

namespace {

// 0 rows or vectors: as many as the instruction set's registers allow.
loop::ContractionTileOptions DrawTiles(Random& random) {
  loop::ContractionTileOptions tiles;
  if (random.Chance(30)) return tiles;
  tiles.rows = random.Pick({0, 0, 2, 3, 4, 6});
  tiles.vectors = random.Pick({0, 0, 1, 2});
  tiles.sum_block = random.Pick({1, 2, 3, 5, 8, 384});
  tiles.row_block = random.Pick({1, 2, 3, 16});
  tiles.column_block = random.Pick({1, 1, 2, 3});
  return tiles;
}

void DrawRun(Random& random, Engine& engine) {
  engine.threads = random.Chance(40) ? 2 : 1;
  engine.dealt = random.Chance(50);
  engine.side = random.Pick({GuardedMemory::Side::kEnd, GuardedMemory::Side::kBegin});
  const Arrangement other =
      random.Pick({Arrangement::kTransposed, Arrangement::kEverySecond, Arrangement::kEveryThird,
                   Arrangement::kReversed, Arrangement::kRowsApart});
  engine.outputs = random.Chance(25) ? other : Arrangement::kCompact;
  engine.in_place = random.Chance(30);
  engine.poison_dead = random.Chance(30);
  engine.checks_abi = random.Chance(15);
  engine.from_cache = random.Chance(15);
  engine.specialized = random.Chance(10);
  engine.calls = random.Pick({1, 1, 2, 3});
}

}  // namespace

// Numbers small enough that even small programs reach every tile, strip, piece and variant.
jit::CompileOptions DrawCompileOptions(Random& random) {
  jit::CompileOptions options;
  options.schedule.accumulators = random.Pick({4, 1, 2, 3, 8});
  if (random.Chance(60)) {
    options.schedule.memory_order.columns = random.Pick({3, 8, 20});
    options.schedule.memory_order.rows = random.Pick({1, 2, 3});
  }
  options.schedule.contractions = DrawTiles(random);
  if (random.Chance(70)) options.schedule.strips.rows = random.Pick({1, 2, 3, 4, 5});
  if (random.Chance(70)) options.schedule.parallel_sums.least_steps = random.Pick({1, 2, 9, 64});
  if (random.Chance(75)) options.least_parallel_bytes = 0;
  if (random.Chance(50)) options.streaming_bytes = 1;
  else if (random.Chance(50)) options.prefetching_bytes = 1;
  options.size_classes.least_work = random.Chance(50) ? 0 : options.size_classes.least_work;
  options.size_classes.largest_constant = random.Pick({16, 16, 4, 2});
  options.size_classes.variants = random.Pick({16, 1, 2});
  options.schedule.contractions.panels = random.Chance(70);
  options.schedule.contractions.columns_outside = random.Chance(30);
  // Executables find the version by the sizes. Others have one for all calls, and skip those that
  // it does not fit.
  std::vector<bool> version;
  while (random.Chance(40)) version.push_back(random.Chance(50));
  options.schedule.contractions.version = options.schedule.strips.version = version;
  return options;
}

Engine DrawEngine(Random& random, jit::Mode mode, Engine::Backend backend) {
  Engine engine;
  engine.backend = AvailableSets().empty() ? Engine::Backend::kInterpreter : backend;
  engine.options = DrawCompileOptions(random);
  engine.options.mode = mode;
  // An interpreter takes any set: the schedule depends on it, but no code of it runs.
  const auto isa = random.Below(static_cast<int64_t>(std::size(jit::kIsas)));
  engine.options.isa = backend == Engine::Backend::kInterpreter || AvailableSets().empty()
                           ? jit::kIsas[isa].isa
                           : AvailableSets()[static_cast<size_t>(isa) % AvailableSets().size()];
  const int64_t passes = static_cast<int64_t>(PassesOf(engine.options).size());
  engine.passes = static_cast<int>(random.Chance(40) ? passes : random.Between(0, passes));
  if (random.Chance(40)) engine.shuffle_seed = random.Bits();
  if (random.Chance(30)) engine.bind_seed = random.Bits();
  DrawRun(random, engine);
  return engine;
}

// ---- Building

namespace {

// Notes whether passes that reorder rounding changed the program.
absl::Status RunPasses(const Engine& engine, loop::Program& program, bool& keeps_bits) {
  fusion::Pipeline pipeline(PassesOf(engine.options));
  pipeline.Truncate(NumPasses(engine));
  fusion::RunOptions run;
  run.verify = true;
  run.observer = [&](const fusion::PassReport& report, const loop::Program&) {
    if (report.changed && report.pass.reorders_rounding) keeps_bits = false;
  };
  return pipeline.Run(program, run);
}

// The same program for each set, so that a key that forgets the set would give the wrong code.
absl::StatusOr<std::shared_ptr<const jit::Executable>> CompileInCache(
    const loop::Program& unfused, const jit::CompileOptions& options) {
  jit::ExecutableCache cache;
  for (jit::Isa isa : AvailableSets()) {
    jit::CompileOptions other = options;
    other.isa = isa;
    NESTOR_RETURN_IF_ERROR(cache.Compile(unfused, other).status());
  }
  return cache.Compile(unfused, options);
}

absl::StatusOr<std::shared_ptr<const jit::Executable>> CompileAlone(
    const Engine& engine, const loop::Program& unfused, const loop::Program& program,
    const jit::CompileOptions& options) {
  const bool whole = engine.backend == Engine::Backend::kExecutable;
  NESTOR_ASSIGN_OR_RETURN(auto executable, whole ? jit::Compile(unfused, options)
                                                 : jit::CompileScheduled(program, options));
  return std::shared_ptr<const jit::Executable>(std::move(executable));
}

}  // namespace

absl::Status BuiltEngine::Compile(const loop::Program& unfused) {
  jit::CompileOptions options = engine_.options;
  options.executor = &ExecutorOf(engine_);
  const bool cached = engine_.backend == Engine::Backend::kExecutable && engine_.from_cache;
  NESTOR_ASSIGN_OR_RETURN(executable_, cached ? CompileInCache(unfused, options)
                                              : CompileAlone(engine_, unfused, program_, options));
  if (executable_->options().isa != *options.isa) {
    return absl::InternalError(
        absl::StrCat("what was compiled is for ", jit::Name(executable_->options().isa)));
  }
  return absl::OkStatus();
}

// Passes run here for all engines but executables, which run them on their own.
absl::StatusOr<BuiltEngine> BuiltEngine::Build(const loop::Program& unfused, const Engine& engine) {
  BuiltEngine built(engine, unfused);
  built.engine_.options.schedule.contractions.bound = BoundInputsOf(engine, unfused);
  if (engine.backend == Engine::Backend::kExecutable) {
    // An executable runs the passes itself, and others for each class of sizes.
    built.keeps_bits_ = engine.options.mode == jit::Mode::kStrict;
  } else {
    NESTOR_RETURN_IF_ERROR(RunPasses(built.engine_, built.program_, built.keeps_bits_));
  }
  if (engine.backend != Engine::Backend::kInterpreter)
    NESTOR_RETURN_IF_ERROR(built.Compile(unfused));
  return built;
}

absl::StatusOr<BuiltEngine> BuiltEngine::For(const RunInputs& inputs) const {
  BuiltEngine made = *this;
  if (engine_.backend != Engine::Backend::kExecutable) return made;
  if (engine_.specialized) {
    NESTOR_ASSIGN_OR_RETURN(const Binding binding, Bind(SignatureOf(program_), inputs));
    NESTOR_ASSIGN_OR_RETURN(made.executable_, executable_->Specialize(binding.symbols));
  }
  for (loop::TensorId id : program_.inputs) {
    const std::string& name = program_[id].name;
    if (!IsBound(engine_, name)) continue;
    NESTOR_ASSIGN_OR_RETURN(made.executable_,
                            made.executable_->Bind(name, inputs.tensors.at(name)));
  }
  return made;
}

// ---- Running

// An executable proves this at each call, and takes other code where it fails.
bool BuiltEngine::Fits(const RunInputs& inputs) const {
  if (engine_.backend == Engine::Backend::kExecutable) return true;
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(program_), inputs);
  if (!binding.ok()) return true;  // to be refused
  return loop::ProveNoOverflow(program_,
                               [&](const std::string& name) { return binding->Find(name); })
      .ok();
}

namespace {

Results InterpretWithin(const loop::Program& program, const RunInputs& inputs,
                        absl::optional<uint64_t> shuffle_seed) {
  InterpreterOptions options;
  // Beyond it: ResourceExhausted, for which nothing is compared (IsLimit).
  options.max_steps = 10'000'000;
  options.shuffle_seed = shuffle_seed;
  return Interpret(program, inputs, options);
}

JitRunOptions RunOptionsOf(const Engine& engine, jit::Workspace& workspace) {
  JitRunOptions run;
  run.side = engine.side;
  run.outputs = engine.outputs;
  run.in_place = engine.in_place;
  run.workspace = &workspace;
  run.poison_dead = engine.poison_dead;
  return run;
}

// Bit by bit: results must not depend on what the first call left in the workspace.
absl::Status CheckSame(const Results& first, const Results& again) {
  Counts counts;
  const Finding finding = Compare(first, again, "a call with the same inputs", counts);
  return finding ? absl::InternalError(*finding) : absl::OkStatus();
}

}  // namespace

// Checks the kernels that runs added: each is decoded once.
absl::Status BuiltEngine::CheckAllInstructions() const {
  for (std::shared_ptr<const jit::Kernel> kernel : executable_->kernels()) {
    if (absl::c_linear_search(*decoded_, kernel)) continue;
    NESTOR_RETURN_IF_ERROR(CheckInstructions(*kernel, executable_->options().isa));
    decoded_->push_back(std::move(kernel));
  }
  return absl::OkStatus();
}

// Calls each function through the harness, which says what it breaks.
absl::Status BuiltEngine::CheckAbi(const RunInputs& inputs) const {
  absl::Status status;
  const auto check = [&](jit::Kernel::Function function, const int64_t* table, int64_t begin,
                         int64_t end, char* private_memory) -> int64_t {
    const auto kernel =
        reinterpret_cast<jit::KernelFunction>(reinterpret_cast<uintptr_t>(function));
    const auto result =
        jit::CallCheckingAbi(kernel, table, begin, end, reinterpret_cast<int64_t>(private_memory));
    if (status.ok()) status = result.status();
    return result.value_or(0);
  };
  const jit::Kernel::Caller caller = check;
  JitRunOptions run;
  run.caller = &caller;
  // The results mean nothing: the harness calls a function four times, and it need not give
  // the same twice.
  RunJit(*executable_, inputs, run).status().IgnoreError();
  return status;
}

// Under the dealing executor, notes which worker's memory each function is given. Tasks run one
// after the other there, so that shared memory would not show in the results.
Results BuiltEngine::RunOnce(const RunInputs& inputs, const JitRunOptions& options) const {
  if (engine_.threads == 1 || !engine_.dealt) return RunJit(*executable_, inputs, options);
  const char* memory_of[2] = {nullptr, nullptr};
  bool shared = false;
  const auto note = [&](jit::Kernel::Function function, const int64_t* table, int64_t begin,
                        int64_t end, char* private_memory) -> int64_t {
    const int worker = Dealer().worker();
    memory_of[worker] = private_memory;
    shared |= memory_of[1 - worker] == private_memory;
    return function(table, begin, end, private_memory);
  };
  const jit::Kernel::Caller caller = note;
  JitRunOptions noted = options;
  noted.caller = &caller;
  const Results results = RunJit(*executable_, inputs, noted);
  if (shared) return absl::InternalError("two workers have the same private memory");
  return results;
}

Results BuiltEngine::Run(const RunInputs& inputs, jit::Workspace& workspace) const {
  if (executable_ == nullptr) return InterpretWithin(program_, inputs, engine_.shuffle_seed);
  const JitRunOptions run = RunOptionsOf(engine_, workspace);
  Results first = RunOnce(inputs, run);
  for (int i = 1; i < engine_.calls && first.ok(); ++i) {
    NESTOR_RETURN_IF_ERROR(CheckSame(first, RunOnce(inputs, run)));
  }
  NESTOR_RETURN_IF_ERROR(CheckAllInstructions());
  if (engine_.checks_abi && first.ok()) NESTOR_RETURN_IF_ERROR(CheckAbi(inputs));
  return first;
}

RunningProgram BuiltEngine::ProgramAt(const RunInputs& inputs) const {
  return RunningProgram(*executable_, inputs, IsCompactCall(*executable_, inputs, engine_.outputs));
}

Results BuiltEngine::Interpreted(const RunInputs& inputs) const {
  const auto interpret = [](const loop::Program& program, const RunInputs& given) {
    return InterpretWithin(program, given, absl::nullopt);
  };
  return executable_ == nullptr ? interpret(program_, inputs)
                                : ProgramAt(inputs).Interpreted(interpret);
}

std::string BuiltEngine::ProgramText(const RunInputs& inputs) const {
  return loop::ToText(executable_ == nullptr ? program_ : ProgramAt(inputs).program());
}

// The message holds the program and all of its code: nobody has to compile it again to see.
absl::Status CheckInstructions(const jit::Kernel& kernel, jit::Isa isa) {
  for (const jit::Kernel::FunctionView& function : kernel.Functions()) {
    absl::optional<std::string> fault = jit::FirstForeignInstruction(function.code, isa);
    if (!fault) fault = jit::FirstUnfencedReturn(function.code);
    if (!fault) continue;
    return absl::InternalError(absl::StrCat(jit::Name(isa), ", ", function.name, ": ", *fault, "\n",
                                            loop::ToText(kernel.program()),
                                            jit::Disassemble(kernel)));
  }
  return absl::OkStatus();
}

}  // namespace nestor
