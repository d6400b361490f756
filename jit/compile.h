// From a lowered program to an Executable: fusion, schedule, code.
#ifndef NESTOR_JIT_COMPILE_H_
#define NESTOR_JIT_COMPILE_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "fusion/pipeline.h"
#include "jit/executable.h"
#include "jit/runtime/cpu_features.h"
#include "jit/schedule_options.h"
#include "jit/schedules.h"
#include "jit/size_classes.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// Which rounding a kernel may choose (docs/semantics.md, section 5).
enum class Mode : uint8_t {
  kFast,    // sums in lanes, fused multiply-adds: within the proven bound
  kStrict,  // the bits that SEMANTICS defines
};

// A value; the defaults are meant for most programs.
//
//   jit::CompileOptions options;
//   options.mode = jit::Mode::kStrict;               // the interpreter's bits
//   options.executor = &jit::InlineExecutor();       // one thread
struct CompileOptions {
  Mode mode = Mode::kFast;
  // nullopt: the best set that the CPU has and NESTOR_ISA allows.
  absl::optional<Isa> isa;
  // Where parallel loops run: DefaultExecutor() where null; InlineExecutor() keeps them
  // on the caller's thread. Must outlive the executable.
  Executor* executor = nullptr;
  // Sizes of tiles, blocks and strips. They change no result in strict mode; in fast mode they
  // change the order of sums.
  ScheduleOptions schedule;
  // Schedules found by a search (LoadSchedules): if there is a line for a call's program,
  // sizes, processor and mode, its choices override `schedule`, and the call has code of its
  // own. Null: none.
  std::shared_ptr<const Schedules> schedules;
  // See ExecutableOptions; nullopt: derived from the program and the sizes of the machine's caches.
  absl::optional<int64_t> least_parallel_bytes, prefetching_bytes, streaming_bytes;
  // Which sizes get code of their own, and how much of it is kept.
  SizeClassOptions size_classes;
};

// A lowered program of more items at the top is refused with ResourceExhausted, instead of being
// compiled until memory is exhausted: each takes some kilobytes on the way. A micro-op is a nest
// and the declaration of what it fills.
constexpr int64_t kMostItems = int64_t{1} << 18;

// The schedule passes of compile.cc for a machine, in their order, as a list that can be cut and
// watched like the one of fusion. In strict mode those that reorder rounding are left out when the
// list is run, not here.
fusion::Pipeline SchedulePipeline(const CompileOptions& options, Isa isa);

// Fuses and schedules `program`, which is lowered, for `options`, whose instruction set the CPU may
// lack. The Statuses of BestIsa; ResourceExhausted beyond kMostItems.
// Schedule is for looking at programs, and needs no machine that could run them; Compile is for
// running.
absl::StatusOr<loop::Program> Schedule(loop::Program program, const CompileOptions& options);

// `program` is lowered. The Statuses of Schedule and Executable::Create.
// Thread-safe: calls share nothing. Takes from milliseconds to seconds, by the length of the
// program; ExecutableCache keeps what was compiled.
absl::StatusOr<std::unique_ptr<const Executable>> Compile(loop::Program program,
                                                          const CompileOptions& options = {});
// Runs the last two of these passes, which record the facts that code takes as proven: for a
// program that was scheduled by hand or in part. A second run changes nothing.
absl::Status ProveForCode(loop::Program& program, Isa isa);

// `program` is fused and scheduled already: its code runs at all sizes (see Executable::Create).
absl::StatusOr<std::unique_ptr<const Executable>> CompileScheduled(
    loop::Program program, const CompileOptions& options = {});

}  // namespace nestor::jit

#endif  // NESTOR_JIT_COMPILE_H_
