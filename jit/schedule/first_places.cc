// Why the result is the same: a maximum is one of the elements, or NaN if one of them is NaN. If it
// is a number, no element is NaN, and the first one that equals it, 0 and -0 being equal, is the
// one at which no later element was larger. If it is NaN, nothing equals it, and the first element
// that is NaN has won. Over nothing, the minimum stays the largest integer, which is no position.
//
// The scope that declares the accumulator is read in order: all its steps must be in loops there,
// and nothing reads it before the last of these is done.
#include "jit/schedule/first_places.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"
#include "uops/scalar_rounding.h"

namespace nestor::loop {
namespace {

// Values of more parts are stored rather than computed twice.
constexpr int kMostParts = 8;

// A step of an argmax, in these loops within an item of the scope.
struct Step {
  LoopsAround loops;
  Statement* statement;
  bool is_repeatable;
};

// An argmax that item number `declaration` of a scope declares, and whose last steps are in item
// number `last`.
struct Search {
  size_t declaration, last;
  TensorId best;
  std::vector<Step> steps;
};

class PlaceFinder {
  using Changed = absl::flat_hash_set<TensorId>;

 public:
  explicit PlaceFinder(Program& program)
      : program_(program), pool_(program.pool), ranges_(program) {}

  bool Run() {
    VisitScopes(program_.body, [&](Scope& scope) {
      for (size_t i = 0; i < scope.size(); ++i) {
        const absl::optional<Search> search = SearchAt(scope, i);
        if (search) Replace(scope, *search);
        changed_ |= search.has_value();
      }
    });
    return changed_;
  }

 private:
  // ---- What can be replaced

  absl::optional<Search> SearchAt(Scope& scope, size_t number) const {
    const auto* declaration = scope[number].As<Declaration>();
    if (declaration == nullptr) return absl::nullopt;
    const TensorInfo& info = program_[declaration->tensor];
    if (info.storage != Storage::kAccumulator || !IsArg(info.op) || !info.shape.empty())
      return absl::nullopt;
    Search search{number, number, declaration->tensor, {}};
    bool is_read = false;
    for (size_t i = number + 1; i < scope.size(); ++i) {
      const Footprint footprint = FootprintOf(program_, scope[i]);
      is_read |= footprint.reads.contains(search.best);
      if (!footprint.Changes(search.best)) continue;
      if (is_read || !AddSteps(scope[i], search)) return absl::nullopt;
      search.last = i;
    }
    return search.steps.empty() ? absl::nullopt : absl::make_optional(std::move(search));
  }

  // False where a step of the item has no place among the two reductions.
  bool AddSteps(Item& item, Search& search) const {
    const Changed changed = ChangedIn(item);
    bool good = item.As<Loop>() != nullptr;
    VisitStatements(item, [&](Statement& statement, const LoopsAround& loops) {
      if (statement.target.tensor != search.best) return;
      const bool is_repeatable = IsRepeatable(statement.value, changed);
      good = good && !statement.target.masked && statement.needed_if.empty() &&
             IsComputedOutside(statement.position, changed) && (is_repeatable || IsStorable(loops));
      search.steps.push_back({loops, &statement, is_repeatable});
    });
    return good;
  }

  // Whether the value costs little, and has the same bits wherever it is computed: it rounds at
  // most once, so that there is nothing to reassociate or to fuse.
  bool IsRepeatable(ValueId value, const Changed& changed) const {
    int parts = 0, roundings = 0;
    VisitValues(program_, value, [&](ValueId, const Value& part) {
      ++parts;
      const auto* apply = absl::get_if<ApplyValue>(&part.node);
      if (apply != nullptr && IsFloat(part.type)) roundings += RoundingsOf(apply->op);
    });
    return parts <= kMostParts && roundings < kManyRoundings && IsComputedOutside(value, changed);
  }

  bool IsComputedOutside(ValueId value, const Changed& changed) const {
    const Scope reads = Assignment({}, {}, value);
    return absl::c_none_of(FootprintOf(program_, reads).reads,
                           [&](TensorId tensor) { return changed.contains(tensor); });
  }

  // The tensors that the item writes, its own included.
  static Changed ChangedIn(const Item& item) {
    Changed changed;
    VisitItems(item, [&](const Item& inner) {
      if (const auto* statement = inner.As<Statement>()) changed.insert(statement->target.tensor);
    });
    return changed;
  }

  // Whether a temporary declared around the loops can have an element for each step, and none
  // around them walks along memory: that one has lanes, each with an argmax of its own.
  bool IsStorable(const LoopsAround& loops) const {
    const auto has_elements = [&](const Loop* loop) {
      return loop->step == 1 && pool_.ConstValue(loop->begin) == 0 && !pool_.HasVar(loop->end);
    };
    return absl::c_all_of(loops, has_elements) && !IsWalkedAround(loops);
  }

  // Whether some access that moves with the loops moves along its last axis with one around them.
  bool IsWalkedAround(const LoopsAround& loops) const {
    const auto is_inside = [&](int64_t var) {
      return absl::c_any_of(loops, [&](const Loop* loop) { return loop->var == var; });
    };
    bool is_walked = false;
    for (const Item& item : loops.back()->body) {
      VisitAccesses(program_, item, [&](TensorId, absl::Span<const IndexId> place, AccessKind) {
        std::vector<int64_t> all, along;
        for (const IndexId e : place) CollectVars(pool_, e, all);
        if (!place.empty()) CollectVars(pool_, place.back(), along);
        is_walked |= absl::c_any_of(all, is_inside) && !absl::c_all_of(along, is_inside);
      });
    }
    return is_walked;
  }

  // ---- The two reductions

  void Replace(Scope& scope, const Search& search) {
    const TensorInfo best = program_[search.best];
    program_[search.best] = {best.name, DType::kI64, {}, Storage::kTemp};
    const ReduceOp op = best.op == ReduceOp::kArgmax ? ReduceOp::kMax : ReduceOp::kMin;
    const TensorId extreme = AddAccumulator("extreme", best.type, op);
    const TensorId first = AddAccumulator("first", DType::kI64, Foremost());
    Scope before = {DeclarationOf(extreme)}, extremes, firsts = {DeclarationOf(first)};
    for (const Step& step : search.steps) {
      Statement& statement = *step.statement;
      ValueId value = statement.value;
      const ValueId position = statement.position;
      statement = {{extreme}, op, value, {}};
      if (!step.is_repeatable) {
        const Access kept = AddKept(step, best.type);
        before.push_back(DeclarationOf(kept.tensor));
        statement = {kept, absl::nullopt, value, {}};
        value = program_.AddLoad(kept);
        extremes.push_back(InOwnLoops(program_, step.loops, {{extreme}, op, value, {}}));
      }
      firsts.push_back(
          InOwnLoops(program_, step.loops,
                     {{first}, Foremost(), PositionWhereExtreme(value, extreme, position), {}}));
    }
    Append(extremes, std::move(firsts));
    Append(extremes, Assignment(search.best, {}, PositionOrNone(first)));
    Insert(scope, search.last + 1, std::move(extremes));
    Insert(scope, search.declaration + 1, std::move(before));
  }

  // An element of a new temporary for each step.
  Access AddKept(const Step& step, DType type) {
    const Shape shape = LengthsOf(ranges_, step.loops);
    const TensorId kept = program_.AddTensor({"kept", type, shape, Storage::kTemp});
    AssumeFewElements(program_, shape);
    return {kept, IterationsOf(pool_, step.loops)};
  }

  static ReduceOp Foremost() {
    return NESTOR_MUTANT("argmax_last_of_equals") ? ReduceOp::kMax : ReduceOp::kMin;
  }

  TensorId AddAccumulator(absl::string_view name, DType type, ReduceOp op) {
    return program_.AddTensor({std::string(name), type, {}, Storage::kAccumulator, op});
  }

  ValueId NoPosition() { return program_.AddConstant(Identity(Foremost(), DType::kI64)); }

  // where(value == extreme || value != value, position, none)
  ValueId PositionWhereExtreme(ValueId value, TensorId extreme, ValueId position) {
    ValueId is_extreme = program_.AddApply(ScalarOp::kEq, {value, program_.AddLoad({extreme})});
    if (IsFloat(program_[value].type)) {
      const ValueId is_nan = program_.AddApply(ScalarOp::kNe, {value, value});
      is_extreme = program_.AddApply(ScalarOp::kOr, {is_extreme, is_nan});
    }
    return program_.AddApply(ScalarOp::kSelect, {is_extreme, position, NoPosition()});
  }

  // where(first == none, -1, first)
  ValueId PositionOrNone(TensorId first) {
    const ValueId position = program_.AddLoad({first});
    const ValueId is_none = program_.AddApply(ScalarOp::kEq, {position, NoPosition()});
    return program_.AddApply(ScalarOp::kSelect,
                             {is_none, program_.AddConstant(Scalar::I64(-1)), position});
  }

  Program& program_;
  IndexPool& pool_;
  Ranges ranges_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> FindFirstPlaces(Program& program) { return PlaceFinder(program).Run(); }

}  // namespace nestor::loop
