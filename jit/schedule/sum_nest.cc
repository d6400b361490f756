// A sum that is computed in a quicker way is searched for NaN where it is stored. Only if there is one,
// the values that must be finite are searched for inf and NaN, and only if there is one of these,
// the nest runs once more as it was (second_run.h). Results that are stored as they are can be
// searched in place; others are kept in a temporary, and what is computed from them comes after the
// second run.
#include "jit/schedule/sum_nest.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/second_run.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/scans.h"

namespace nestor::loop {
namespace {

bool IsStatement(const Item& item) { return item.As<Statement>() != nullptr; }

// Whether the core declares scalars alone, and all its statements may run after its sums: these
// read nothing that statements set, which leave the accumulator alone, and read it only then.
bool SumsGoFirst(const Program& program, const SumNest& nest) {
  const TensorId accumulator = nest.step->target.tensor;
  const Footprint sums = FootprintOf(program, nest.sums[0]->body);
  bool before = true;
  return absl::c_all_of(*nest.core, [&](const Item& item) {
    if (const auto* declaration = item.As<Declaration>())
      return program[declaration->tensor].shape.empty();
    if (!IsStatement(item)) {
      before = false;
      return true;
    }
    const Footprint own = FootprintOf(program, item);
    return !own.Changes(accumulator) && !(before && own.reads.contains(accumulator)) &&
           !sums.reads.contains(item.As<Statement>()->target.tensor);
  });
}

// The core without its sums.
Scope EndsOf(const Scope& core, TensorId accumulator) {
  Scope ends;
  absl::c_copy_if(core, std::back_inserter(ends), [&](const Item& item) {
    const auto* declaration = item.As<Declaration>();
    return declaration != nullptr ? declaration->tensor != accumulator : IsStatement(item);
  });
  return ends;
}

// The core with `ends` after the sums, and nothing else.
Scope SumsOf(const Scope& core, TensorId accumulator, Scope ends) {
  Scope sums = {DeclarationOf(accumulator)};
  absl::c_copy_if(core, std::back_inserter(sums),
                  [](const Item& item) { return item.As<Loop>() != nullptr; });
  Append(sums, std::move(ends));
  return sums;
}

class SecondRuns {
 public:
  SecondRuns(Program& program, Ranges& ranges) : program_(program), ranges_(ranges) {}

  Scope WithSecondRun(const SumNest& nest, size_t depth, Loop whole,
                      absl::Span<const ValueId> others) {
    const LoopsAround inside(nest.band.begin() + static_cast<int64_t>(depth), nest.band.end());
    Runs runs = RunsOf(nest, inside, std::move(whole));
    Scope scope = std::move(runs.before);
    Append(scope, ScopeOf(std::move(runs.whole)));
    SecondRun again(program_, ranges_);
    const IndexId is_doubtful = again.Flag("not_a_number", scope);
    const ValueId sum = program_.AddLoad({runs.kept.tensor, runs.kept.place});
    LoopsAround along = inside;
    absl::c_stable_partition(
        along, [&](const Loop* loop) { return !IsAlong(program_, runs.kept, *loop); });
    Append(scope,
           again.FlagIf(program_.AddApply(ScalarOp::kNe, {sum, sum}), is_doubtful, {}, along));
    const IndexId is_wrong = again.Flag("not_finite", scope);
    LoopsAround loops = inside;
    for (const Loop& sum : nest.hulls) loops.push_back(&sum);
    Append(scope, again.FlagIfNotFinite(others, is_wrong, again.IsSet(is_doubtful), loops));
    again.OnlyWhere(again.IsSet(is_wrong), runs.sums);
    Append(scope, again.Copied(inside, std::move(runs.sums)));
    Append(scope, again.Copied(inside, std::move(runs.ends)));
    return scope;
  }

 private:
  // The parts that the nest becomes: `whole`, with all steps; the sums as they were; and the
  // statements that use them afterwards.
  struct Runs {
    Scope before;  // declarations
    Loop whole;
    Scope sums, ends;
    Access kept;  // where a sum is stored in between
  };

  // Results must be read again to be searched. Where the core only stores what is NaN as the sum is,
  // they are; else the sums are kept in a temporary, and all other statements run after the search.
  Runs RunsOf(const SumNest& nest, const LoopsAround& inside, Loop whole) {
    Runs runs{{}, std::move(whole), {}, {}, {}};
    if (IsStoreAlone(nest, inside)) {
      runs.sums = *nest.core;
      runs.kept = nest.core->back().As<Statement>()->target;
      return runs;
    }
    const TensorId accumulator = nest.step->target.tensor;
    const KeptSum padded(program_, ranges_, "padded", accumulator, inside);
    runs.before.push_back(DeclarationOf(padded.tensor()));
    const Scope store = padded.Store();
    runs.kept = store[0].As<Statement>()->target;
    runs.sums = SumsOf(*nest.core, accumulator, store);
    runs.ends = EndsOf(*nest.core, accumulator);
    padded.LoadInstead(runs.ends);
    Scope& core = CoreIn(nest, runs.whole);
    core = SumsOf(core, accumulator, store);
    return runs;
  }

  // Whether the sum is only stored, element by element, so that it is read again as quickly as
  // from a temporary.
  bool IsStoreAlone(const SumNest& nest, const LoopsAround& inside) {
    const auto* store = nest.core->back().As<Statement>();
    return store != nullptr && !store->op && !store->target.masked &&
           absl::c_count_if(*nest.core, IsStatement) == 1 &&
           ShowsNan(store->value, nest.step->target.tensor) &&
           absl::c_any_of(
               inside, [&](const Loop* loop) { return IsAlong(program_, store->target, *loop); });
  }

  // Whether the value is NaN if the sum is, except where it does not depend on the sum: operations
  // of floats keep NaN, but a comparison, or a cast to integers, would hide it.
  bool ShowsNan(ValueId value, TensorId sum) const {
    DependentValues of_sum(program_);
    of_sum.Add(value, {sum});
    bool shows = true;
    VisitValues(program_, value, [&](ValueId id, const Value& part) {
      shows = shows && (IsFloat(part.type) || !of_sum.Contains(id));
    });
    return shows;
  }

  Program& program_;
  Ranges& ranges_;
};

}  // namespace

absl::optional<SumNest> SumNestOf(const Program& program, const Loop& outermost) {
  SumNest nest;
  nest.band = BandOf(outermost);
  nest.core = &nest.band.back()->body;
  const Loop* sum = OneLoopAmong(*nest.core);
  if (sum == nullptr) return absl::nullopt;
  nest.sums = BandOf(*sum);
  nest.step = OnlyStatementIn(*sum);
  const bool is_sum =
      nest.step != nullptr && nest.step->op == ReduceOp::kSum && !nest.step->target.masked;
  if (!is_sum || !SumsGoFirst(program, nest)) return absl::nullopt;
  for (const Loop* one : nest.sums) {
    const absl::optional<Hull> hull = HullOf(program, *one);
    if (!hull) return absl::nullopt;
    nest.hulls.push_back({one->var, hull->begin, hull->end, 1, {}, {}});
  }
  return nest;
}

Scope& CoreIn(const SumNest& nest, Loop& whole) {
  Loop* innermost = &whole;
  while (innermost->var != nest.band.back()->var) innermost = innermost->body[0].As<Loop>();
  return innermost->body;
}

void PutSumsFirst(const SumNest& nest, Loop& whole) {
  Scope& core = CoreIn(nest, whole);
  const TensorId accumulator = nest.step->target.tensor;
  Scope ends = EndsOf(core, accumulator);
  core = SumsOf(core, accumulator, std::move(ends));
}

Scope WithSecondRun(Program& program, Ranges& ranges, const SumNest& nest, size_t depth, Loop whole,
                    absl::Span<const ValueId> others) {
  return SecondRuns(program, ranges).WithSecondRun(nest, depth, std::move(whole), others);
}

}  // namespace nestor::loop
