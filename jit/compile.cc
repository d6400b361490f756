// The list of schedule passes, and the way from a program to code.
//
// The order of passes is a chain of dependencies that the comments beside them name. Roughly: sums
// get nests of their own (up to split_contractions); the shape of these and the layouts of
// temporaries are chosen (up to padded_views); contractions are tiled; loops that are left are
// ordered, jammed and unrolled; at last loops are marked to run in parallel and in lanes, and what
// code takes as proven is recorded. A pass that changes the order in which floats are rounded is
// left out of a strict schedule; it then mostly has an exact twin before it, for integers and
// maxima.
#include "jit/compile.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fusion/cost/work.h"
#include "fusion/hoist.h"
#include "fusion/merge_axes.h"
#include "fusion/split_loops.h"
#include "jit/runtime/executor.h"
#include "jit/schedule/attributes.h"
#include "jit/schedule/carried_sums.h"
#include "jit/schedule/contraction_tiles.h"
#include "jit/schedule/first_places.h"
#include "jit/schedule/gated_sums.h"
#include "jit/schedule/hoist_copies.h"
#include "jit/schedule/lane_partials.h"
#include "jit/schedule/loops_from_zero.h"
#include "jit/schedule/memory_order.h"
#include "jit/schedule/merge_batches.h"
#include "jit/schedule/multiply_add.h"
#include "jit/schedule/narrow_sums.h"
#include "jit/schedule/padded_sums.h"
#include "jit/schedule/padded_views.h"
#include "jit/schedule/paired_steps.h"
#include "jit/schedule/parallel_sums.h"
#include "jit/schedule/peel_borders.h"
#include "jit/schedule/promote_sums.h"
#include "jit/schedule/residue_strips.h"
#include "jit/schedule/sampled_columns.h"
#include "jit/schedule/scan_lanes.h"
#include "jit/schedule/scatter_order.h"
#include "jit/schedule/split_contractions.h"
#include "jit/schedule/split_quotients.h"
#include "jit/schedule/split_residues.h"
#include "jit/schedule/steps.h"
#include "jit/schedule/strips.h"
#include "jit/schedule/sum_order.h"
#include "jit/schedule/sum_terms.h"
#include "jit/schedule/temporary_layouts.h"
#include "jit/schedule/transpose_tiles.h"
#include "jit/schedule/trimmed_sums.h"
#include "jit/schedule/turn_results.h"
#include "jit/schedule/unroll_and_jam.h"
#include "jit/schedule/unroll_divided.h"
#include "jit/schedule/unroll_sums.h"
#include "loop_ir/proofs.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

absl::StatusOr<Isa> IsaOf(const CompileOptions& options) {
  if (options.isa) return *options.isa;
  return BestIsa();
}

// With fewer bytes, waking a thread takes longer than its work; the limit is lower if more is
// computed with each byte.
int64_t LeastParallelBytes(const loop::Program& program) {
  constexpr int kOperationsPerElement = 4;  // that memory hides
  return ExecutableOptions().least_parallel_bytes * kOperationsPerElement /
         std::max(kOperationsPerElement, loop::MostOperations(program));
}

}  // namespace

// Prefixes of names (exact_lanes) tell runs of one pass apart, since a list can be cut at a name.
fusion::Pipeline SchedulePipeline(const CompileOptions& options, Isa isa) {
  loop::LanePartialsOptions lanes;
  lanes.isa = isa;
  lanes.vectors = static_cast<int>(options.schedule.accumulators);
  loop::LanePartialsOptions exact_lanes = lanes;
  exact_lanes.reorders_rounding = false;
  loop::ScanLanesOptions scans, exact_scans;
  scans.isa = exact_scans.isa = isa;
  exact_scans.reorders_rounding = false;
  loop::ParallelSumsOptions exact_sums = options.schedule.parallel_sums;
  exact_sums.reorders_rounding = false;
  loop::ContractionTileOptions contractions = options.schedule.contractions;
  contractions.isa = isa;
  return fusion::Pipeline({
      // First: they split loops once more, where the other nests still are as fusion left them.
      {"exact_scatters",
       [](loop::Program& program) { return loop::ScatterInMemoryOrder(program, {}); }},
      {"scatters",
       [](loop::Program& program) {
         return loop::ScatterInMemoryOrder(program, {/*reorders_rounding=*/true});
       },
       /*reorders_rounding=*/true},
      {"first_places", loop::FindFirstPlaces},
      {"carried_sums", loop::MoveCarriedSums},
      {"merge_batches", loop::MergeBatches},
      {"split_quotients", loop::SplitQuotients},
      {"loops_from_zero", loop::CountFromZero},
      {"steps_inside", loop::MoveStepsInside},
      {"wide_products", loop::WidenProducts, /*reorders_rounding=*/true},
      {"sum_terms", loop::SeparateSums},
      {"split_contractions", loop::SplitContractions},
      // After the passes above: sums have nests of their own.
      {"residue_strips",
       [=](loop::Program& program) { return loop::GatherResidues(program, isa); }},
      {"exact_residues", [](loop::Program& program) { return loop::SplitResidues(program); }},
      {"split_residues",
       [](loop::Program& program) {
         return loop::SplitResidues(program, {/*reorders_rounding=*/true});
       },
       /*reorders_rounding=*/true},
      {"layouts",
       [=](loop::Program& program) {
         return loop::LayOutTemporaries(program, isa, contractions.bound);
       }},
      {"padded_sums", [=](loop::Program& program) { return loop::PadSums(program, isa); }},
      {"trimmed_sums",
       [=](loop::Program& program) { return loop::TrimSums(program, isa, contractions.bound); }},
      {"sum_order", [=](loop::Program& program) { return loop::SumWindowsFirst(program, isa); },
       /*reorders_rounding=*/true},
      {"promote_sums", loop::PromoteSums},
      {"gated_sums", loop::GateFactors},
      {"strips",
       [=](loop::Program& program) { return loop::RunInStrips(program, options.schedule.strips); }},
      {"paired_steps", loop::PairSteps},
      {"turn_results",
       [=](loop::Program& program) { return loop::TurnResults(program, isa, contractions.bound); }},
      {"padded_views", loop::MaterializePaddedViews},
      {"sampled_columns", loop::CopySampledColumns},
      {"rows_of_temporaries", loop::MergeRowsOfTemporaries},
      {"few_columns",
       [=](loop::Program& program) { return loop::TileFewColumns(program, contractions); },
       /*reorders_rounding=*/true},
      {"contractions",
       [=](loop::Program& program) { return loop::TileContractions(program, contractions); }},
      {"hoist_copies", loop::HoistCopies},
      {"split_windows", loop::SplitWindows},
      {"narrow_sums", loop::NarrowSums},
      {"unroll_sums", loop::UnrollSums},
      // After unroll_sums: a sum of one step is an assignment.
      {"unroll_divided", loop::UnrollDivided},
      {"exact_parallel_sums",
       [=](loop::Program& program) { return loop::SumInParallel(program, exact_sums); }},
      {"parallel_sums",
       [=](loop::Program& program) {
         return loop::SumInParallel(program, options.schedule.parallel_sums);
       },
       /*reorders_rounding=*/true},
      {"memory_order",
       [=](loop::Program& program) {
         return loop::WalkInMemoryOrder(program, options.schedule.memory_order);
       }},
      {"unroll_and_jam", loop::UnrollAndJam},
      {"last_step", loop::KeepLastStep},
      // After last_step: a value that is passed from step to step is a scalar.
      {"exact_scans",
       [=](loop::Program& program) { return loop::ScanInLanes(program, exact_scans); }},
      {"scans", [=](loop::Program& program) { return loop::ScanInLanes(program, scans); },
       /*reorders_rounding=*/true},
      {"add_onto_dot_products", loop::AddOntoDotProducts},
      {"multiply_add", loop::FuseMultiplyAdd, /*reorders_rounding=*/true},
      {"transpose", [=](loop::Program& program) { return loop::TransposeInTiles(program, isa); }},
      {"from_wide", loop::HoistFromWide},
      {"parallel", loop::MarkParallel},
      // Maxima and sums of integers are the same in any order; sums of floats are not.
      {"exact_lanes",
       [=](loop::Program& program) { return loop::SumInLanes(program, exact_lanes); }},
      {"lanes", [=](loop::Program& program) { return loop::SumInLanes(program, lanes); },
       /*reorders_rounding=*/true},
      {"vector", loop::MarkVector},
      // After vector: a loop that contains a parallel one has no lanes.
      {"inner_parallel", loop::MarkInnerParallel},
      // After vector: rows are in lanes. (1-D loops are threads' pieces.)
      {"peel_borders", [=](loop::Program& program) { return loop::PeelBorders(program, isa); }},
      // The facts that code takes as proven.
      {"checked", loop::MarkChecked},
      {"lane_count", [=](loop::Program& program) { return loop::SetLanes(program, isa); }},
      {"vectors", loop::DecideVectors},
  });
}

absl::Status ProveForCode(loop::Program& program, Isa isa) {
  NESTOR_RETURN_IF_ERROR(loop::MarkChecked(program).status());
  NESTOR_RETURN_IF_ERROR(loop::SetLanes(program, isa).status());
  return loop::DecideVectors(program).status();
}

// Machine-independent passes first, then those that choose tiles, lanes and threads for one
// instruction set.
absl::StatusOr<loop::Program> Schedule(loop::Program program, const CompileOptions& options) {
  if (static_cast<int64_t>(program.body.size()) > kMostItems) {
    return absl::ResourceExhaustedError(
        absl::StrCat("program ", program.name, ": ", program.body.size(),
                     " items at the top; at most ", kMostItems, " are compiled"));
  }
  fusion::RunOptions run;
  run.strict = options.mode == Mode::kStrict;
  NESTOR_RETURN_IF_ERROR(fusion::Pipeline::Default().Run(program, run));
  NESTOR_ASSIGN_OR_RETURN(const Isa isa, IsaOf(options));
  NESTOR_RETURN_IF_ERROR(SchedulePipeline(options, isa).Run(program, run));
  return program;
}

namespace {

// Fills in what the options leave to the machine.
absl::StatusOr<std::unique_ptr<const Executable>> MakeExecutable(
    loop::Program scheduled, const CompileOptions& options, std::shared_ptr<const Origin> origin) {
  ExecutableOptions executable;
  NESTOR_ASSIGN_OR_RETURN(executable.isa, IsaOf(options));
  executable.executor = options.executor != nullptr ? options.executor : &DefaultExecutor();
  executable.least_parallel_bytes =
      options.least_parallel_bytes.value_or(LeastParallelBytes(scheduled));
  executable.prefetching_bytes = options.prefetching_bytes.value_or(Caches().l2);
  // Arguments larger than the last cache are not found there again.
  executable.streaming_bytes = options.streaming_bytes.value_or(Caches().last);
  executable.size_classes = options.size_classes;
  return Executable::Create(std::move(scheduled), executable, std::move(origin));
}

}  // namespace

// The executable keeps the unfused program and the way to schedule it: variants are made by the
// same passes, later.
absl::StatusOr<std::unique_ptr<const Executable>> Compile(loop::Program program,
                                                          const CompileOptions& options) {
  const auto schedule = [options](loop::Program unfused,
                                  const Variation& variation) -> absl::StatusOr<loop::Program> {
    CompileOptions with = options;
    with.schedule.contractions.bound = variation.bound;
    with.schedule.contractions.version = with.schedule.strips.version = variation.version;
    NESTOR_RETURN_IF_ERROR(Choose(variation.choices, with.schedule));
    return Schedule(std::move(unfused), with);
  };
  ProgramSchedules tuned;
  if (options.schedules != nullptr) {
    NESTOR_ASSIGN_OR_RETURN(const Isa isa, IsaOf(options));
    tuned = ProgramSchedules(options.schedules, program, isa, options.mode == Mode::kStrict);
  }
  auto origin = std::make_shared<const Origin>(Origin{program, schedule, std::move(tuned)});
  NESTOR_ASSIGN_OR_RETURN(loop::Program scheduled, schedule(std::move(program), {}));
  return MakeExecutable(std::move(scheduled), options, std::move(origin));
}

absl::StatusOr<std::unique_ptr<const Executable>> CompileScheduled(loop::Program program,
                                                                   const CompileOptions& options) {
  NESTOR_ASSIGN_OR_RETURN(const Isa isa, IsaOf(options));
  NESTOR_RETURN_IF_ERROR(ProveForCode(program, isa));
  return MakeExecutable(std::move(program), options, nullptr);
}

}  // namespace nestor::jit
