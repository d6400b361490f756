// Products with padding are products with 0. First, a load is found that makes a step 0 where it
// lies outside, then the sums along which it leaves its tensor. Where the subscript moves with the
// sum and with batch loops alone, the sum's bounds are cut, so that the steps do not run at all;
// where it moves with a row or column, rows of one tile differ, and a condition on the step
// (needed_if) says for which it counts.
//
//   x[h + r - 1, ..]: 0 <= h + r - 1 < H   ->   r in [max(0, 1 - h), min(R, H + 1 - h))
//
// Leaving out a product with 0 changes no bit if the other factors are finite: a sum that starts at
// +0 is never -0. Only bound factors can be searched for inf and NaN once, outside of the calls.
#include "jit/schedule/trimmed_sums.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_orientation.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/second_run.h"
#include "jit/schedule/zero_factor.h"
#include "jit/target/products.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class SumTrimmer {
 public:
  SumTrimmer(Program& program, Ranges& ranges, std::vector<bool> bound)
      : program_(program), pool_(program.pool), ranges_(ranges), bound_(std::move(bound)) {}

  // The nest without steps in the padding, followed by its second run where the other factors may
  // be inf or NaN; nullopt where there is no such padding.
  absl::optional<Scope> Trimmed(const Loop& outermost) {
    // Looking for padding takes less time than looking for a contraction.
    if (!IsOutermost(program_, outermost) || !HoldsPadding(outermost)) return absl::nullopt;
    const absl::optional<Contraction> nest = ContractionOf(program_, outermost);
    if (!nest || nest->is_ragged || nest->step->op != ReduceOp::kSum) return absl::nullopt;
    if (!nest->step->needed_if.empty()) return absl::nullopt;
    for (const ZeroFactor& zero : PaddingOf(nest->step->value)) {
      const Inside inside = StepsInside(*nest, zero.load);
      if (inside.sums.empty() && inside.needed_if.empty()) continue;
      if (zero.others.empty()) return ScopeOf(Only(inside, nest->accumulator, outermost));
      const bool moves =
          absl::c_any_of(nest->sums, [&](const Loop* sum) { return BoundsMove(pool_, *sum); });
      if (moves || !MayRunTwice(*nest->core)) continue;
      Loop trimmed = Only(inside, nest->accumulator, outermost);
      return WithSecondRun(*nest, zero, BandOf(outermost), std::move(trimmed));
    }
    return absl::nullopt;
  }

 private:
  // The loads that make the value +0 where they lie outside of their tensors, if everything else
  // that must be finite then is bound.
  std::vector<ZeroFactor> PaddingOf(ValueId value) const {
    std::vector<ZeroFactor> padding;
    for (const ValueId load : LoadsOf(program_, value)) {
      const Access& access = absl::get<LoadValue>(program_[load].node).access;
      if (!access.masked || !jit::IsPlusZero(program_, access.fill)) continue;
      absl::optional<ZeroFactor> zero = ZeroFactorOf(program_, value, load);
      if (zero && AreBound(zero->others)) padding.push_back(*std::move(zero));
    }
    return padding;
  }

  // A cheap test before the expensive one.
  bool HoldsPadding(const Loop& loop) const {
    bool holds = false;
    VisitItems(loop.body, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      holds = holds || (statement != nullptr && statement->op == ReduceOp::kSum &&
                        !PaddingOf(statement->value).empty());
    });
    return holds;
  }

  // The steps that read a load within its tensor: sums that do not at all steps, without bodies,
  // restricted to steps that may; and conditions that say for which rows and columns they do.
  struct Inside {
    std::vector<Loop> sums;
    IndexList needed_if;
  };

  Inside StepsInside(const Contraction& nest, ValueId load) {
    const Access& access = absl::get<LoadValue>(program_[load].node).access;
    LoopsAround around = nest.batch;
    around.insert(around.end(), {nest.row, nest.column});
    around.insert(around.end(), nest.sums.begin(), nest.sums.end());
    for (const Loop* loop : around) ranges_.Enter(*loop);
    Inside inside;
    for (const Loop* sum : nest.sums) {
      if (BoundsMove(pool_, *sum)) continue;
      Loop narrow{sum->var, sum->begin, sum->end, 1, {}, {}};
      if (Narrow(nest, access, narrow, inside.needed_if)) inside.sums.push_back(std::move(narrow));
    }
    for (size_t i = 0; i < around.size(); ++i) ranges_.Leave();
    return inside;
  }

  // The nest with these steps only.
  static Loop Only(const Inside& inside, TensorId sum, Loop nest) {
    VisitScopes(nest.body, [&](Scope& scope) {
      for (Item& item : scope) {
        auto* loop = item.As<Loop>();
        if (loop == nullptr) continue;
        for (const Loop& sum : inside.sums) {
          if (sum.var == loop->var) loop->begin = sum.begin, loop->end = sum.end;
        }
      }
    });
    VisitStatements(nest.body, [&](Statement& statement) {
      if (statement.target.tensor == sum)
        absl::c_copy(inside.needed_if, std::back_inserter(statement.needed_if));
    });
    return nest;
  }

  // Narrows the sum to steps at which axes that move with it, and otherwise with batch loops alone,
  // are in the tensor. For axes that move with a row or column as well, it adds conditions.
  bool Narrow(const Contraction& nest, const Access& access, Loop& sum, IndexList& needed_if) {
    const Shape& shape = program_[access.tensor].shape;
    const Loop before = sum;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const IndexId place = access.place[axis], zero = pool_.Const(0);
      if (StrideIn(pool_, place, sum.var) != 1) continue;
      const IndexId rest = pool_.Sub(place, pool_.Var(sum.var));
      if (MovesWithAny(pool_, rest, nest.sums)) continue;
      const bool may_be_before = !ranges_.LessEqual(zero, place),
                 may_be_behind = !ranges_.Less(place, shape[axis]);
      if (MovesWithAny(pool_, rest, {nest.row, nest.column})) {
        if (may_be_before) needed_if.push_back(pool_.Condition(IndexKind::kLe, zero, place));
        if (may_be_behind) needed_if.push_back(pool_.Condition(IndexKind::kLt, place, shape[axis]));
      } else if (MovesWithAny(pool_, rest, nest.batch)) {
        if (may_be_before) sum.begin = pool_.Max(sum.begin, pool_.Sub(zero, rest));
        if (may_be_behind) sum.end = pool_.Min(sum.end, pool_.Sub(shape[axis], rest));
      }
    }
    return sum.begin != before.begin || sum.end != before.end;
  }

  // Whether the statements have the same results when they run again: they assign, and read nothing
  // that they write.
  bool MayRunTwice(const Scope& core) const {
    const Footprint footprint = FootprintOf(program_, core);
    const bool reads_own =
        absl::c_any_of(footprint.reads, [&](TensorId tensor) { return footprint.Changes(tensor); });
    return !reads_own && absl::c_all_of(core, [](const Item& item) {
      const auto* statement = item.As<Statement>();
      return statement == nullptr || !statement->op;
    });
  }

  bool AreBound(const std::vector<ValueId>& values) const {
    return absl::c_all_of(values, [&](ValueId value) {
      return absl::c_all_of(LoadsOf(program_, value), [&](ValueId load) {
        return IsBound(program_, bound_, absl::get<LoadValue>(program_[load].node).access.tensor);
      });
    });
  }

  // flag if a factor is not finite; the trimmed nest; the nest as it was, if the flag is set.
  Scope WithSecondRun(const Contraction& nest, const ZeroFactor& zero, const LoopsAround& band,
                      Loop trimmed) {
    Scope scope;
    SecondRun again(program_, ranges_);
    const IndexId not_finite = again.Flag("not_finite", scope);
    LoopsAround loops = band;
    loops.insert(loops.end(), nest.sums.begin(), nest.sums.end());
    Append(scope, again.FlagIfNotFinite(zero.others, not_finite, {}, loops));
    Append(scope, ScopeOf(std::move(trimmed)));
    Scope core = *nest.core;
    VisitStatements(core, [&](Statement& statement) { SayWhereInside(zero.load, statement); });
    again.OnlyWhere(again.IsSet(not_finite), core);
    Append(scope, again.Copied(band, std::move(core)));
    return scope;
  }

  // Adds conditions that say where the load is in its tensor, one for each axis: so two axes of a
  // temporary may still be merged (fusion/merge_axes.h).
  void SayWhereInside(ValueId load, Statement& statement) {
    statement.value =
        RewriteValues(program_, statement.value, [&](ValueId id) -> absl::optional<ValueId> {
          if (id != load) return absl::nullopt;
          Access access = absl::get<LoadValue>(program_[id].node).access;
          for (size_t axis = 0; axis < access.place.size(); ++axis) {
            const IndexId place = access.place[axis];
            if (pool_.VarValue(place) >= 0) continue;
            access.conditions.push_back(pool_.Condition(IndexKind::kLe, pool_.Const(0), place));
            access.conditions.push_back(
                pool_.Condition(IndexKind::kLt, place, program_[access.tensor].shape[axis]));
          }
          return program_.AddLoad(std::move(access));
        });
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const std::vector<bool> bound_;
};

}  // namespace

absl::StatusOr<bool> TrimSums(Program& program, jit::Isa isa, const std::vector<bool>& bound) {
  Ranges ranges(program);
  SumTrimmer trimmer(program, ranges, LeavesOutPadding(isa) ? bound : std::vector<bool>());
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return trimmer.Trimmed(loop); });
}

}  // namespace nestor::loop
