// A long sum with one result, or few, has no loop that could run on threads. Here its steps are cut
// into pieces whose partial sums are independent, and a short loop adds up the pieces: a two-level
// reduction (Blelloch, "Prefix sums and their applications", 1990). The nest is copied twice: a
// copy in which the sum takes the steps of a piece, and one in which it combines the pieces.
// Lengths of loops decide at run time which of the nests have iterations.
//
// The number of pieces follows from sizes alone, never from the number of threads, so that each
// call gives the same bits. How many there are balances two costs: a piece must take long beside
// waking a thread, and each one costs a store and an addition for each result.
#include "jit/schedule/parallel_sums.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/attributes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/lane_gain.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/reordering.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// The most pieces, of one result; more results have fewer.
constexpr int64_t kMostPieces = 64;
// Columns of a sum across rows that a thread takes at least.
constexpr int64_t kLeastColumns = 512;
// Steps of a piece for each result: storing and combining the results takes little beside them.
constexpr int64_t kLeastStepsOfResult = 64;
// Where lengths of more loops over results are unknown, there are mostly many results, and
// code for few is not worth the time to compile it. (Sizes of one row, or of a few, are
// numbers in variants, jit/size_classes.h.)
constexpr int64_t kMostUnknownLengths = 1;
// Pieces of a sum along memory begin at multiples of this many elements: whole vectors.
constexpr int64_t kUnit = 64;

class ParallelSums {
 public:
  ParallelSums(Program& program, const ParallelSumsOptions& options)
      : program_(program), pool_(program.pool), options_(options), ranges_(program) {}

  bool Run() {
    bool changed = false;
    Scope items;
    for (Item& item : program_.body) {
      auto* loop = item.As<Loop>();
      absl::optional<Scope> split = loop == nullptr ? absl::nullopt : Split(*loop);
      changed |= split.has_value();
      split ? Append(items, *std::move(split)) : items.push_back(std::move(item));
    }
    program_.body = std::move(items);
    return changed;
  }

 private:
  // Loops over results, outermost first, and the sum in them.
  struct Nest {
    std::vector<const Loop*> results;
    const Loop* sum;
    std::vector<TensorId> accumulators;
  };
  // How the steps of the sum are cut: into `count` pieces of `length`, or none; `are_any`: 0 or 1.
  struct Pieces {
    IndexId count, length, are_any;
  };

  // Rows of sums in memory are tried first; then a nest that holds sums in scalars.
  absl::optional<Scope> Split(Loop& top) {
    if (ScheduledOf(top) != Scheduled::kNothing || top.attributes.parallel) return absl::nullopt;
    const std::vector<TensorId> carried = CarriedTensors(program_, top);
    if (absl::optional<Scope> rows = SplitRows(top, carried)) return rows;
    const absl::optional<Nest> nest = NestOf(top, carried);
    if (!nest) return absl::nullopt;
    const absl::optional<Pieces> pieces = PiecesOf(*nest);
    if (!pieces) return absl::nullopt;
    Scope scope;
    std::vector<TensorId> parts;
    const Shape results = LengthsOf(ranges_, nest->results);
    for (TensorId sum : nest->accumulators) parts.push_back(AddParts(sum, *pieces, results, scope));
    absl::optional<Scope> sums = SumPieces(*nest, *pieces, parts);
    absl::optional<Scope> combined = Combine(top, *nest, *pieces, parts);
    if (!sums || !combined) return absl::nullopt;
    Append(scope, *std::move(sums));
    Append(scope, *std::move(combined));
    if (!pool_.IsConst(pieces->are_any, 1)) Append(scope, ScopeOf(Whole(top, *pieces)));
    return scope;
  }

  // ---- What is taken

  // `carried`: tensors that one iteration of the loop hands on to the next.
  // The outermost loop is itself the sum if it carries something; else it runs over results.
  absl::optional<Nest> NestOf(const Loop& top, absl::Span<const TensorId> carried) {
    Nest nest{{}, &top, {carried.begin(), carried.end()}};
    if (carried.empty() && !FindSum(top, nest)) return absl::nullopt;
    const auto is_fixed = [&](const Loop* loop) { return IsFixed(*loop); };
    const auto is_unknown = [&](const Loop* loop) {
      return !KnownLength(program_, *loop).has_value();
    };
    if (absl::c_count_if(nest.results, is_unknown) > kMostUnknownLengths) return absl::nullopt;
    if (!absl::c_all_of(nest.results, is_fixed) || !is_fixed(nest.sum) || !OnlyAccumulates(nest))
      return absl::nullopt;
    return nest;
  }

  bool IsFixed(const Loop& loop) const { return loop.step == 1 && !BoundsMove(pool_, loop); }

  // Finds the sum that is all of the nest except accumulators, and statements after it.
  bool FindSum(const Loop& top, Nest& nest) const {
    nest.results = BandOf(top);
    const Scope& body = nest.results.back()->body;
    nest.sum = nullptr;
    for (const Item& item : body) {
      const auto* loop = item.As<Loop>();
      if (item.As<Declaration>() != nullptr) continue;
      if ((loop != nullptr) == (nest.sum != nullptr)) return false;
      if (loop != nullptr) nest.sum = loop;
    }
    if (nest.sum == nullptr) return false;
    nest.accumulators = CarriedTensors(program_, *nest.sum);
    const std::vector<TensorId> declared = DeclaredIn(body);
    return !declared.empty() && absl::c_is_permutation(declared, nest.accumulators) &&
           AreIndependent(program_, top, *nest.results.back());
  }

  // Whether the sum does nothing but add to its scalars, in an order that may change.
  bool OnlyAccumulates(const Nest& nest) const {
    const Footprint footprint = FootprintOf(program_, nest.sum->body);
    const auto may_reorder = [&](TensorId tensor) {
      const TensorInfo& info = program_[tensor];
      return info.storage == Storage::kAccumulator && info.shape.empty() && !IsArg(info.op) &&
             MayReorder(StepOp(info.op), info.type, options_.reorders_rounding) &&
             !footprint.reads.contains(tensor);
    };
    return footprint.writes.empty() && footprint.accumulates.size() == nest.accumulators.size() &&
           absl::c_all_of(nest.accumulators, may_reorder);
  }

  // ---- How it is cut

  // length = max(least_steps / (results * steps inside), 64 / steps inside, ceil(all * tasks /
  // 64)), in whole vectors for sums along memory. So there are at most 64 pieces of one result, and
  // fewer where results themselves make tasks for threads.
  absl::optional<Pieces> PiecesOf(const Nest& nest) {
    const IndexId all = ranges_.LengthOf(*nest.sum);
    IndexId inside = pool_.Const(1), results = pool_.Const(1), tasks = pool_.Const(1);
    double gain = LaneGain(program_, *nest.sum);
    for (const Loop* inner = nest.sum;
         (inner = OnlyLoopIn(inner->body)) != nullptr && IsFixed(*inner);) {
      inside = pool_.Mul(inside, ranges_.LengthOf(*inner));
      gain = std::max(gain, LaneGain(program_, *inner));
    }
    const bool holds_loops =
        absl::c_any_of(nest.sum->body, [](const Item& item) { return item.As<Loop>() != nullptr; });
    for (const Loop* loop : nest.results) {
      const IndexId count = ranges_.LengthOf(*loop);
      const bool in_lanes = loop == nest.results.back() && LaneGain(program_, *loop) > gain;
      results = pool_.Mul(results, count);
      tasks = pool_.Mul(tasks, in_lanes ? OverUp(count, pool_.Const(kLeastColumns)) : count);
    }
    // Sums of as few steps as those over pieces are not worth cutting.
    if (!holds_loops && HasFewSteps(*nest.sum)) return absl::nullopt;
    const bool along = !holds_loops && gain > 0;
    const IndexId steps =
        Over(pool_.Const(options_.least_steps), AtLeastOne(pool_.Mul(results, inside)));
    const IndexId least = pool_.Max(steps, Over(StepsOfResult(), AtLeastOne(inside)));
    const IndexId length =
        pool_.Max(least, OverUp(pool_.Mul(all, tasks), pool_.Const(kMostPieces)));
    return CutInto(all, along ? InUnits(length) : AtLeastOne(length), nest.results.empty());
  }

  bool HasFewSteps(const Loop& sum) {
    const absl::optional<int64_t> most = MostIterations(program_, sum);
    return most ? *most <= kMostPieces
                : ranges_.LessEqual(ranges_.LengthOf(sum), pool_.Const(kMostPieces));
  }

  IndexId StepsOfResult() {
    return pool_.Const(std::min(kLeastStepsOfResult, options_.least_steps));
  }
  IndexId InUnits(IndexId length) {
    const IndexId unit = pool_.Const(kUnit);
    return pool_.Mul(unit, OverUp(length, unit));
  }

  // `always`: there is a piece even if there are not enough steps for two.
  absl::optional<Pieces> CutInto(IndexId all, IndexId length, bool always) {
    if (ranges_.Less(all, pool_.Mul(pool_.Const(2), length))) return absl::nullopt;
    // OverUp is no more than kMostPieces; in this form provers see it.
    const IndexId count = pool_.Min(OverUp(all, length), pool_.Const(kMostPieces));
    if (always) return Pieces{count, length, pool_.Const(1)};
    const IndexId are_any = pool_.Min(Over(all, pool_.Mul(pool_.Const(2), length)), pool_.Const(1));
    return Pieces{OnlyIf(pool_, are_any, count), length, are_any};
  }

  IndexId Over(IndexId e, IndexId divisor) { return pool_.Div(e, divisor); }
  IndexId OverUp(IndexId e, IndexId divisor) { return loop::OverUp(pool_, e, divisor); }
  IndexId AtLeastOne(IndexId e) { return ranges_.Positive(e) ? e : pool_.Max(e, pool_.Const(1)); }

  // ---- The nests that replace it

  // for p { for results { acc s  for the steps of piece p { s += .. }  parts[p, ..] = s } }
  absl::optional<Scope> SumPieces(const Nest& nest, const Pieces& pieces,
                                  absl::Span<const TensorId> parts) {
    const int32_t piece = program_.AddVar("p");
    const IndexId first = pool_.Mul(pool_.Var(piece), pieces.length);
    // The code is built in the nest itself, so that a copy has indices and accumulators of its own.
    Scope sum;
    const IndexList place = With(pool_.Var(piece), IterationsOf(pool_, nest.results));
    for (TensorId accumulator : nest.accumulators) sum.push_back(DeclarationOf(accumulator));
    Append(sum, ScopeOf(StepsOfPiece(*nest.sum, pieces, first)));
    for (size_t i = 0; i < parts.size(); ++i) {
      Append(sum, Assignment(parts[i], place, program_.AddLoad({nest.accumulators[i]})));
    }
    Loop over{piece, pool_.Const(0), pieces.count, 1, {}, Around(nest.results, std::move(sum))};
    absl::optional<Loop> fresh = FreshCopy(program_, ranges_, over);
    return fresh ? absl::make_optional(ScopeOf(*std::move(fresh))) : absl::nullopt;
  }

  // A temporary for results of each piece, which `scope` declares.
  TensorId AddParts(TensorId sum, const Pieces& pieces, Shape shape, Scope& scope) {
    shape.insert(shape.begin(), pieces.count);
    AssumeFewElements(program_, shape);
    const TensorInfo& info = program_[sum];
    const TensorId parts =
        program_.AddTensor({absl::StrCat(info.name, "_parts"), info.type, shape, Storage::kTemp});
    scope.push_back(DeclarationOf(parts));
    return parts;
  }

  // The steps of the piece that begins at step `first`.
  Loop StepsOfPiece(const Loop& sum, const Pieces& pieces, IndexId first) {
    Loop steps = sum;
    steps.var = program_.AddVar(program_.vars[sum.var]);
    steps.begin = pool_.Const(0);
    steps.end = pool_.Min(pieces.length, pool_.Sub(ranges_.LengthOf(sum), first));
    if (NESTOR_MUTANT("last_piece_whole")) steps.end = pieces.length;
    VarReplacement replace(program_);
    replace.Set(sum.var, pool_.Add(sum.begin, pool_.Add(first, pool_.Var(steps.var))));
    RewriteIndices(program_, steps.body, [&](IndexId e) { return replace(e); });
    return steps;
  }

  // The nest with a loop over the pieces instead of the sum.
  absl::optional<Scope> Combine(const Loop& top, const Nest& nest, const Pieces& pieces,
                                absl::Span<const TensorId> parts) {
    const int32_t piece = program_.AddVar("p");
    Loop combine{piece, pool_.Const(0), pieces.count, 1, {}, {}};
    const IndexList place = With(pool_.Var(piece), IterationsOf(pool_, nest.results));
    for (size_t i = 0; i < parts.size(); ++i) {
      const TensorId sum = nest.accumulators[i];
      Append(combine.body, Step({sum}, program_[sum].op, {parts[i], place}));
    }
    if (nest.results.empty()) return ScopeOf(std::move(combine));
    Scope body = nest.results.back()->body;
    for (Item& item : body) {
      if (item.As<Loop>() != nullptr) item.node = combine;
    }
    Scope scope = Around(nest.results, std::move(body));
    Loop& ends = *scope[0].As<Loop>();
    ends.end = pool_.Add(top.begin, OnlyIf(pool_, pieces.are_any, ranges_.LengthOf(top)));
    // It is marked so that it is not taken again.
    ends.attributes.parallel = true;
    absl::optional<Loop> fresh = FreshCopy(program_, ranges_, ends);
    return fresh ? absl::make_optional(ScopeOf(*std::move(fresh))) : absl::nullopt;
  }

  // sum op= part
  Scope Step(const Access& sum, ReduceOp op, Access part) {
    Scope step = Assignment(sum.tensor, sum.place, program_.AddLoad(std::move(part)));
    step[0].As<Statement>()->op = op;
    return step;
  }

  // The nest as it was, which runs where there are no pieces.
  Loop Whole(const Loop& top, const Pieces& pieces) {
    Loop whole = top;
    whole.end = pool_.Add(
        top.begin, OnlyIf(pool_, pool_.Sub(pool_.Const(1), pieces.are_any), ranges_.LengthOf(top)));
    whole.attributes.parallel = true;
    return whole;
  }

  // ---- Sums that lie in memory

  struct RowSum {
    TensorId sum;
    ReduceOp op;
    TensorId parts;  // once there are pieces
  };

  // A loop whose iterations accumulate into rows of memory, into each element once, and
  // are independent otherwise.
  absl::optional<Scope> SplitRows(Loop& top, absl::Span<const TensorId> carried) {
    std::vector<RowSum> sums = RowSumsOf(top, carried);
    if (sums.empty() || !IsFixed(top)) return absl::nullopt;
    const IndexId all = ranges_.LengthOf(top);
    if (ranges_.LessEqual(all, pool_.Const(kMostPieces))) return absl::nullopt;
    IndexId elements = pool_.Const(1);
    for (IndexId extent : program_[sums[0].sum].shape) elements = pool_.Mul(elements, extent);
    const IndexId steps = Over(pool_.Const(options_.least_steps), AtLeastOne(elements));
    const IndexId least = pool_.Max(steps, StepsOfResult());
    const auto pieces =
        CutInto(all, pool_.Max(least, OverUp(all, pool_.Const(kMostPieces))), /*always=*/true);
    if (!pieces) return absl::nullopt;
    Scope scope;
    for (RowSum& sum : sums) sum.parts = AddParts(sum.sum, *pieces, program_[sum.sum].shape, scope);
    Append(scope, RowsOfPieces(top, sums, *pieces));
    for (const std::vector<RowSum>& alike : ByShape(sums)) Append(scope, AddPieces(alike, *pieces));
    return scope;
  }

  // The carried tensors, if all are such sums; else nothing.
  std::vector<RowSum> RowSumsOf(Loop& top, absl::Span<const TensorId> carried) const {
    if (carried.empty()) return {};
    const Footprint footprint = FootprintOf(program_, top.body);
    const bool lie_in_memory = absl::c_all_of(carried, [&](TensorId t) {
      const bool only_accumulates = !footprint.reads.contains(t) && !footprint.writes.contains(t);
      return only_accumulates && !program_[t].shape.empty() && !program_[t].is_register;
    });
    if (!lie_in_memory) return {};
    std::vector<RowSum> sums;
    bool good = true;
    const auto visit = [&](const Statement& statement, const LoopsAround& loops) {
      const TensorId target = statement.target.tensor;
      if (!absl::c_linear_search(carried, target)) return;
      good = good && statement.op && !IsArg(*statement.op) && WalksAll(statement.target, loops) &&
             MayReorder(StepOp(*statement.op), program_[target].type, options_.reorders_rounding) &&
             absl::c_none_of(sums, [&](const RowSum& other) { return other.sum == target; });
      if (good) sums.push_back({target, *statement.op, {}});
    };
    for (Item& item : top.body) VisitStatements(item, visit);
    return good ? sums : std::vector<RowSum>();
  }

  // Whether each axis is walked from end to end by a loop of its own.
  bool WalksAll(const Access& access, const LoopsAround& loops) const {
    absl::flat_hash_set<int64_t> walking;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const int64_t var = pool_.VarValue(access.place[axis]);
      const auto loop = absl::c_find_if(loops, [&](const Loop* l) { return l->var == var; });
      if (loop == loops.end() || !walking.insert(var).second) return false;
      const IndexId extent = program_[access.tensor].shape[axis];
      if ((*loop)->step != 1 || !pool_.IsConst((*loop)->begin, 0) || (*loop)->end != extent)
        return false;
    }
    return !access.masked;
  }

  // for p { parts[p, ..] = identity  the iterations of a piece }
  Scope RowsOfPieces(const Loop& top, absl::Span<const RowSum> sums, const Pieces& pieces) {
    return LoopMaker(program_).Counted("p", pieces.count, kPlain, [&](IndexId piece) {
      Scope body;
      Loop steps = StepsOfPiece(top, pieces, pool_.Mul(piece, pieces.length));
      for (const std::vector<RowSum>& alike : ByShape(sums)) {
        Append(body, ForAll(alike, [&](const RowSum& sum, const IndexList& place) {
                 const ValueId identity =
                     program_.AddConstant(Identity(sum.op, program_[sum.sum].type));
                 return Assignment(sum.parts, With(piece, place), identity);
               }));
      }
      VisitStatements(steps.body, [&](Statement& statement) {
        Access& target = statement.target;
        const auto sum =
            absl::c_find_if(sums, [&](const RowSum& s) { return s.sum == target.tensor; });
        if (sum != sums.end()) target = {sum->parts, With(piece, target.place)};
      });
      Append(body, ScopeOf(std::move(steps)));
      return body;
    });
  }

  Scope AddPieces(absl::Span<const RowSum> alike, const Pieces& pieces) {
    return LoopMaker(program_).Counted("p", pieces.count, kPlain, [&](IndexId piece) {
      return ForAll(alike, [&](const RowSum& sum, const IndexList& place) {
        return Step({sum.sum, place}, sum.op, {sum.parts, With(piece, place)});
      });
    });
  }

  // Groups sums by shape: those of one shape share loops.
  std::vector<std::vector<RowSum>> ByShape(absl::Span<const RowSum> sums) const {
    std::vector<std::vector<RowSum>> groups;
    for (const RowSum& sum : sums) {
      const auto alike = absl::c_find_if(groups, [&](const std::vector<RowSum>& group) {
        return program_[group[0].sum].shape == program_[sum.sum].shape;
      });
      alike == groups.end() ? groups.push_back({sum}) : alike->push_back(sum);
    }
    return groups;
  }

  static IndexList With(IndexId piece, IndexList place) {
    place.insert(place.begin(), piece);
    return place;
  }

  // Loops over all places of sums of one shape, around `each` for each sum; the first indices
  // are in `begun`.
  using Each = absl::FunctionRef<Scope(const RowSum& sum, const IndexList& place)>;
  // `each` for every element of sums of one shape, in one nest of loops.
  Scope ForAll(absl::Span<const RowSum> alike, Each each, const IndexList& begun = {}) {
    const Shape shape = program_[alike[0].sum].shape;
    Scope scope;
    if (begun.size() == shape.size()) {
      for (const RowSum& sum : alike) Append(scope, each(sum, begun));
      return scope;
    }
    return LoopMaker(program_).Counted("c", shape[begun.size()], kPlain, [&](IndexId index) {
      IndexList more = begun;
      more.push_back(index);
      return ForAll(alike, each, more);
    });
  }

  Program& program_;
  IndexPool& pool_;
  const ParallelSumsOptions& options_;
  Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> SumInParallel(Program& program, const ParallelSumsOptions& options) {
  return ParallelSums(program, options).Run();
}

}  // namespace nestor::loop
