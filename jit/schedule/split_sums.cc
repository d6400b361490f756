// Loop distribution at one sum: the loop runs once for the sum, for all steps, and once for the
// rest. So the rest may not change what the sum reads, and may read what the sum stores only at the
// same step. If a statement stores the bare sum in an element of the step, that element holds it in
// between, and the statement moves along; else a new temporary does.
#include "jit/schedule/split_sums.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/dependence.h"
#include "loop_ir/elements.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

using IsWanted = absl::FunctionRef<bool(const Loop& sum, const Statement& step)>;

class Splitter {
 public:
  Splitter(Program& program, Ranges& ranges, const Loop& loop)
      : program_(program), pool_(program.pool), ranges_(ranges), loop_(loop),
        declared_(DeclaredIn(loop.body)) {}

  absl::optional<SplitSum> Run(IsWanted is_wanted) {
    if (!FindSum(is_wanted)) return absl::nullopt;
    if (IsWhole()) return SplitSum{loop_, absl::nullopt, absl::nullopt};
    if (!MayGoFirst()) return absl::nullopt;
    return Split();
  }

 private:
  // The first loop of the body that sums into a scalar of the body and is wanted.
  bool FindSum(IsWanted is_wanted) {
    for (; sum_ < loop_.body.size(); ++sum_) {
      const auto* sum = loop_.body[sum_].As<Loop>();
      const Statement* step = sum == nullptr ? nullptr : OnlyStatementIn(*sum);
      if (step == nullptr || !step->op || !absl::c_linear_search(declared_, step->target.tensor))
        continue;
      accumulator_ = step->target.tensor;
      if (program_[accumulator_].shape.empty() && is_wanted(*sum, *step)) return true;
    }
    return false;
  }

  bool HoldsIndex(const IndexList& place) const {
    return absl::c_any_of(place, [&](IndexId e) { return pool_.VarValue(e) == loop_.var; });
  }

  // Whether only statements on scalars and elements of this step follow the sum, and nothing
  // is before it.
  bool IsWhole() const {
    for (size_t i = 0; i < loop_.body.size(); ++i) {
      if (i == sum_ || loop_.body[i].As<Declaration>() != nullptr) continue;
      const auto* statement = loop_.body[i].As<Statement>();
      if (statement == nullptr || i < sum_ || statement->op) return false;
      if (!HoldsIndex(statement->target.place) &&
          !absl::c_linear_search(declared_, statement->target.tensor))
        return false;
    }
    return true;
  }

  // All items but the sum and declarations.
  Scope Others() const {
    Scope others;
    for (size_t i = 0; i < loop_.body.size(); ++i) {
      if (i != sum_ && loop_.body[i].As<Declaration>() == nullptr) others.push_back(loop_.body[i]);
    }
    return others;
  }

  // Whether all that the sum reads is the same before the rest has run.
  bool MayGoFirst() const {
    const Footprint others = FootprintOf(program_, Others()),
                    sum = FootprintOf(program_, loop_.body[sum_]);
    return !others.Changes(accumulator_) && absl::c_none_of(sum.reads, [&](TensorId tensor) {
      return others.Changes(tensor) || absl::c_linear_search(declared_, tensor);
    });
  }

  // Takes the sum and its store out of the body; what is left is `rest`, with loads of the sum
  // replaced.
  SplitSum Split() {
    Scope rest = Others();
    SplitSum split;
    absl::optional<Access> stored = TakeStore(rest);
    if (!stored) stored = NewStore(split);
    split.sums = Sums(*stored);
    VisitStatements(rest, [&](Statement& statement) { ReadStored(statement, *stored); });
    if (rest.empty()) return split;
    declared_.erase(absl::c_find(declared_, accumulator_));
    split.rest =
        Loop{loop_.var, loop_.begin, loop_.end,
             1,         {},          WithDeclarations(program_, std::move(rest), declared_)};
    return split;
  }

  // Loads of the sum become loads of the element, with the same conditions and fill.
  void ReadStored(Statement& statement, const Access& stored) {
    RewriteLoads(program_, statement, accumulator_, [&](Access& sum) {
      sum.tensor = stored.tensor;
      sum.place = stored.place;
    });
  }

  // Takes the statement out of `rest` that stores the bare sum to an element of this step, and
  // returns that element; nullopt if there is no such statement that may run first.
  absl::optional<Access> TakeStore(Scope& rest) const {
    for (size_t i = 0; i < rest.size(); ++i) {
      const auto* statement = rest[i].As<Statement>();
      if (statement == nullptr || !IsStore(*statement) ||
          !IsOnlyReadThere(rest, i, statement->target))
        continue;
      const Access stored = statement->target;
      rest.erase(rest.begin() + static_cast<int64_t>(i));
      return stored;
    }
    return absl::nullopt;
  }

  bool IsStore(const Statement& statement) const {
    return !statement.op && !statement.target.masked &&
           IsElement(program_, statement.value, {accumulator_}) &&
           HoldsIndex(statement.target.place) &&
           absl::c_none_of(statement.target.place, [&](IndexId e) { return pool_.HasLoad(e); });
  }

  // Whether the other items only read the element that item number `store` stores, after it, and
  // touch nothing else of its tensor.
  bool IsOnlyReadThere(const Scope& items, size_t store, const Access& target) const {
    bool good = true;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i == store) continue;
      const auto look = [&](const Item& item) {
        VisitAccesses(program_, item,
                      [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
                        if (tensor != target.tensor) return;
                        good = good && i > store && kind == AccessKind::kRead &&
                               absl::c_equal(place, target.place);
                      });
      };
      look(items[i]);
      if (const auto* loop = items[i].As<Loop>()) VisitItems(loop->body, look);
    }
    return good;
  }

  // A new temporary with as many elements as the loop's hull, so that it suffices whatever moves
  // the loop's bounds.
  Access NewStore(SplitSum& split) {
    const Hull hull = HullOf(program_, loop_).value_or(Hull{loop_.begin, loop_.end});
    TensorInfo info;
    info.name = program_[accumulator_].name;
    info.type = program_[accumulator_].type;
    info.shape = {ranges_.LengthOf({loop_.var, hull.begin, hull.end, 1, {}, {}})};
    split.kept = program_.AddTensor(std::move(info));
    return {*split.kept, {pool_.Sub(pool_.Var(loop_.var), hull.begin)}};
  }

  // The loop over the sum, with an index of its own.
  Loop Sums(const Access& stored) {
    Loop sums{program_.AddVar(program_.vars[loop_.var]), loop_.begin, loop_.end, 1, {}, {}};
    sums.body.push_back(DeclarationOf(accumulator_));
    sums.body.push_back(loop_.body[sum_]);
    Append(sums.body, Assignment(stored.tensor, stored.place, program_.AddLoad({accumulator_})));
    VarReplacement replace(program_);
    replace.Set(loop_.var, pool_.Var(sums.var));
    RewriteIndices(program_, sums.body, [&](IndexId e) { return replace(e); });
    return sums;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const Loop& loop_;
  std::vector<TensorId> declared_;  // in the loop's body
  size_t sum_ = 0;                  // an item of it
  TensorId accumulator_;
};

}  // namespace

absl::optional<SplitSum> SplitSumOff(Program& program, Ranges& ranges, const Loop& loop,
                                     IsWanted is_wanted) {
  return Splitter(program, ranges, loop).Run(is_wanted);
}

}  // namespace nestor::loop
