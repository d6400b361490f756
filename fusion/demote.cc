// Loop interchange needs a perfect nest, and an accumulator that is declared between two loops is
// in its way. Demoted to a tensor with an element for each iteration of the loops around (scalar
// expansion), it leaves a perfect nest over the terms, whose loops may be interchanged to join a
// walk in another order. It costs memory, and is done only where it saves a walk over a matrix.
//
// A nest qualifies if its band holds declarations of accumulators, one inner nest that does nothing
// but accumulate into them, and statements after that. Before anything is changed, MatchNests
// matches the walk that it would become with each other nest.
#include "fusion/demote.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fusion/match_nests.h"
#include "fusion/nest.h"
#include "fusion/scopes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/elements.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "uops/graph.h"

namespace nestor::loop {
namespace {

// A nest taken apart.
struct Reduction {
  std::vector<LoopHead> kept;  // the band
  std::vector<TensorId> accumulators;
  std::vector<LoopHead> reduced;   // the inner band
  std::vector<Statement> steps;    // accumulations
  std::vector<Statement> results;  // the statements after the terms
};

Scope ItemsOf(const std::vector<Statement>& statements) {
  Scope scope;
  for (const Statement& statement : statements) scope.push_back(Item{statement});
  return scope;
}

class Demoter {
 public:
  explicit Demoter(Program& program) : program_(program) {}

  // The nests stand beside the items, because profit is found from them.
  bool Run() {
    Scope& items = program_.body;
    for (const Item& item : items) nests_.push_back(NestOf(program_, item));
    bool changed = false;
    for (size_t i = 0; i < items.size(); ++i) {
      const absl::optional<Reduction> reduction = TakeApart(items[i]);
      if (!reduction || !Pays(items, i, *reduction)) continue;
      Scope parts = Demote(*reduction);
      changed = true;
      nests_.erase(nests_.begin() + static_cast<int64_t>(i));
      items.erase(items.begin() + static_cast<int64_t>(i));
      for (size_t k = 0; k < parts.size(); ++k) {
        nests_.insert(nests_.begin() + static_cast<int64_t>(i + k), NestOf(program_, parts[k]));
        items.insert(items.begin() + static_cast<int64_t>(i + k), std::move(parts[k]));
      }
      i += parts.size() - 1;
    }
    return changed;
  }

 private:
  // ---- Which nests

  // The parts of the nest; nullopt where it has another form, or its loops are no rectangle.
  absl::optional<Reduction> TakeApart(const Item& item) const {
    const Loop* loop = item.As<Loop>();
    if (loop == nullptr) return absl::nullopt;
    Reduction reduction;
    reduction.kept = HeadsOf(*loop);
    bool reduced = false;
    for (const Item& inner : CoreOf(*loop)) {
      if (const auto* declaration = inner.As<Declaration>()) {
        reduction.accumulators.push_back(declaration->tensor);
      } else if (const Loop* sum = inner.As<Loop>()) {
        if (reduced || !TakeSteps(*sum, reduction)) return absl::nullopt;
        reduced = true;
      } else {
        const Statement& statement = *inner.As<Statement>();
        if (!reduced || statement.op) return absl::nullopt;
        reduction.results.push_back(statement);
      }
    }
    const bool all_rectangular =
        std::all_of(reduction.kept.begin(), reduction.kept.end(), [&](const LoopHead& head) {
          return program_.pool.IsConst(head.begin, 0) && head.step == 1 &&
                 !program_.pool.HasVar(head.end);
        });
    if (!reduced || !all_rectangular || !IsSeparable(reduction)) return absl::nullopt;
    return reduction;
  }

  // All terms may be accumulated before any result is stored: steps read neither accumulators nor
  // stored tensors, results read no stored tensors, each tensor is stored to once, and accumulators
  // are read as values only.
  bool IsSeparable(const Reduction& reduction) const {
    std::vector<TensorId> stored;
    for (const Statement& result : reduction.results) {
      if (Contains(stored, result.target.tensor)) return false;
      stored.push_back(result.target.tensor);
    }
    for (TensorId accumulator : reduction.accumulators) {
      if (program_[accumulator].storage != Storage::kAccumulator) return false;
      if (CountReads(accumulator, reduction.steps) > 0) return false;
      if (CountReads(accumulator, reduction.results) != CountLoads(accumulator, reduction.results))
        return false;
    }
    return std::none_of(stored.begin(), stored.end(), [&](TensorId tensor) {
      return CountReads(tensor, reduction.steps) > 0 || CountReads(tensor, reduction.results) > 0;
    });
  }

  static bool Contains(const std::vector<TensorId>& tensors, TensorId tensor) {
    return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
  }

  // Reads by values, those in index expressions left out.
  int CountLoads(TensorId tensor, const std::vector<Statement>& statements) const {
    int count = 0;
    for (const Statement& statement : statements) {
      VisitLoads(program_, statement.value,
                 [&](ValueId, const Access& access) { count += access.tensor == tensor; });
    }
    return count;
  }

  // Every statement in the sum's loop must add onto one of its scalars.
  bool TakeSteps(const Loop& sum, Reduction& reduction) const {
    reduction.reduced = HeadsOf(sum);
    for (const Item& inner : CoreOf(sum)) {
      const auto* statement = inner.As<Statement>();
      if (statement == nullptr || !statement->op || IsArg(*statement->op)) return false;
      if (!Contains(reduction.accumulators, statement->target.tensor) ||
          !statement->target.place.empty())
        return false;
      reduction.steps.push_back(*statement);
    }
    return true;
  }

  // One walk over the terms, with accumulators as if they had the dimensions of the kept loops.
  Item WalkOf(const Reduction& reduction) {
    std::vector<Statement> steps = reduction.steps;
    for (Statement& step : steps) {
      for (const LoopHead& head : reduction.kept)
        step.target.place.push_back(program_.pool.Var(head.var));
    }
    return std::move(Around(reduction.kept, Around(reduction.reduced, ItemsOf(steps)))[0]);
  }

  // Whether the nest shares no loop with any other now, but demoted would walk a matrix together
  // with one that it can meet. Contractions stay: their loops are for tiles.
  bool Pays(const Scope& items, size_t position, const Reduction& reduction) {
    const Nest& nest = nests_[position];
    if (nest.contraction) return false;
    const Item walk = WalkOf(reduction);
    const Nest walk_nest = NestOf(program_, walk);
    bool pays = false;
    for (size_t other = 0; other < items.size() && !pays; ++other) {
      if (other == position || nests_[other].band.empty() || !WalkSame(nests_[other], nest))
        continue;
      if (Match(items, other, items[position], nest, position)) return false;
      const auto match = Match(items, other, walk, walk_nest, position);
      pays = match && match->gain >= 2 && MayMeet(other, position);
    }
    return pays;
  }

  absl::optional<NestMatch> Match(const Scope& items, size_t other, const Item& item,
                                  const Nest& nest, size_t position) const {
    if (other < position) return MatchNests(program_, items[other], nests_[other], item, nest);
    return MatchNests(program_, item, nest, items[other], nests_[other]);
  }

  // A tensor of two or more dimensions in both.
  static bool WalkSame(const Nest& a, const Nest& b) {
    return std::any_of(a.touches.begin(), a.touches.end(), [&](const Touch& touch) {
      return b.Find(touch.tensor) != nullptr && a.AccessesOf(touch.tensor)[0].place.size() >= 2;
    });
  }

  bool MayMeet(size_t a, size_t b) const {
    std::vector<const Nest*> nests;
    for (size_t i = std::min(a, b); i <= std::max(a, b); ++i) nests.push_back(&nests_[i]);
    return MovedBehind(nests, scratch_).has_value();
  }

  // ---- The rewrite

  // Up to three nests: resets of targets, the walk over the terms, and what is computed from the
  // sums.
  Scope Demote(Reduction reduction) {
    std::vector<Statement> resets;
    Scope parts;
    for (TensorId accumulator : reduction.accumulators) {
      if (Replace(accumulator, reduction, resets)) continue;
      Widen(accumulator, reduction);
      parts.push_back(DeclarationOf(accumulator));
    }
    if (!resets.empty()) {
      const std::vector<LoopHead> heads = Fresh(reduction.kept, resets);
      parts.push_back(std::move(Around(heads, ItemsOf(resets))[0]));
    }
    parts.push_back(
        std::move(Around(reduction.kept, Around(reduction.reduced, ItemsOf(reduction.steps)))[0]));
    if (!reduction.results.empty()) {
      const std::vector<LoopHead> heads = Fresh(reduction.kept, reduction.results);
      parts.push_back(std::move(Around(heads, ItemsOf(reduction.results))[0]));
    }
    return parts;
  }

  // The same loops with indices of their own, which are put into the statements.
  std::vector<LoopHead> Fresh(std::vector<LoopHead> heads, std::vector<Statement>& statements) {
    VarReplacement rename(program_);
    for (LoopHead& head : heads) {
      const int32_t var = program_.AddVar(program_.vars[head.var]);
      rename.Set(head.var, program_.pool.Var(var));
      head.var = var;
    }
    Scope scope = ItemsOf(statements);
    RewriteIndices(program_, scope, [&](IndexId e) { return rename(e); });
    for (size_t i = 0; i < scope.size(); ++i) statements[i] = *scope[i].As<Statement>();
    return heads;
  }

  // `target[kept] = accumulator` is removed; the target is reset and accumulated into.
  bool Replace(TensorId accumulator, Reduction& reduction, std::vector<Statement>& resets) {
    auto& results = reduction.results;
    const auto result = std::find_if(
        results.begin(), results.end(),
        [&](const Statement& statement) { return IsCopy(statement, accumulator, reduction); });
    if (result == results.end() || CountReads(accumulator, results) != 1) return false;
    const Access target = result->target;
    const ReduceOp op = program_[accumulator].op;
    const ValueId identity = program_.AddConstant(Identity(op, program_[accumulator].type));
    resets.push_back({target, absl::nullopt, identity, ValueId()});
    for (Statement& step : reduction.steps) {
      if (step.target.tensor == accumulator) Retarget(step, target);
    }
    results.erase(result);
    return true;
  }

  // A dropped step keeps its conditions.
  static void Retarget(Statement& step, const Access& target) {
    step.target.tensor = target.tensor;
    step.target.place = target.place;
  }

  // out[i, j] = acc, with one subscript for each kept loop: then out can take the accumulator's
  // place.
  bool IsCopy(const Statement& statement, TensorId accumulator, const Reduction& reduction) const {
    if (statement.target.masked || !IsElement(program_, statement.value, {accumulator}))
      return false;
    const auto& place = statement.target.place;
    return place.size() == reduction.kept.size() &&
           std::all_of(reduction.kept.begin(), reduction.kept.end(), [&](const LoopHead& head) {
             return std::any_of(place.begin(), place.end(),
                                [&](IndexId e) { return program_.pool.VarValue(e) == head.var; });
           });
  }

  int CountReads(TensorId tensor, const std::vector<Statement>& statements) const {
    int count = 0;
    for (const Statement& statement : statements) {
      VisitAccesses(program_, Item{statement},
                    [&](TensorId t, absl::Span<const IndexId>, AccessKind kind) {
                      count += t == tensor && kind == AccessKind::kRead;
                    });
    }
    return count;
  }

  // The accumulator itself gets the kept loops' dimensions.
  void Widen(TensorId accumulator, Reduction& reduction) {
    IndexList place;
    for (const LoopHead& head : reduction.kept) {
      program_[accumulator].shape.push_back(head.end);
      place.push_back(program_.pool.Var(head.var));
    }
    for (Statement& step : reduction.steps) {
      if (step.target.tensor == accumulator) step.target.place = place;
    }
    for (Statement& result : reduction.results) {
      result.value =
          RewriteValues(program_, result.value, [&](ValueId id) -> absl::optional<ValueId> {
            const auto* load = absl::get_if<LoadValue>(&program_[id].node);
            if (load == nullptr || load->access.tensor != accumulator) return absl::nullopt;
            Access access = load->access;
            access.place = place;
            return program_.AddLoad(std::move(access));
          });
    }
  }

  Program& program_;
  std::vector<Nest> nests_;   // of the items at the top
  mutable TouchSet scratch_;  // empty
};

}  // namespace

absl::StatusOr<bool> DemoteAccumulators(Program& program) {
  bool changed = false;
  // A walk that was made may be one for another nest to join.
  while (Demoter(program).Run()) changed = true;
  return changed;
}

}  // namespace nestor::loop
